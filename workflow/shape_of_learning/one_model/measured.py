"""What is measured of one checkpoint: its rows of the workflow's tables, and how it differs from another."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from shape_of_learning.embeddings.layers import measure_layers
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure import Part
from shape_of_learning.metrics.measure_entry import FAMILIES, Measure
from shape_of_learning.metrics.registry import find_measure, measure_names
from shape_of_learning.metrics.selections import HiddenStates, MeasuringProtocol
from shape_of_learning.metrics.tables import (
    AtCheckpoint,
    Checkpoint,
    Curve,
    MeasuredModel,
    at_checkpoint,
    average,
    change_rows,
    estimate_rows,
)
from shape_of_learning.metrics.tidy import CHANGE_COLUMNS, ESTIMATE_COLUMNS, TidyRow
from shape_of_learning.one_model.defaults import NEIGHBOURS
from shape_of_learning.refusals import unknown_name

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

# Above it most neighbours of TwoNN are the same token, and it says more of the text than of the model.
MOST_COPIES = 0.5
KINDS = {"step": "Int64", "tokens": "Int64", "layer": "Int64"}
Progress = Callable[[str, int, int], None]  # what is done, how much of it, and how much there is


@dataclass(frozen=True)
class Measured:
    """What was measured of one checkpoint.

    Attributes
    ----------
    model : MeasuredModel
    curves : list of (Curve, AtCheckpoint)
        Of each measure.
    width : int
        Coordinates of a hidden state; 0 where nobody says.
    """

    model: MeasuredModel
    curves: list[tuple[Curve, AtCheckpoint]]
    width: int = 0

    @property
    def estimates(self) -> list[list[object]]:
        """Cells of :data:`.ESTIMATE_COLUMNS`, as the workflow writes them."""
        rows = (estimate_rows(self.model, curve, [at]) for curve, at in self.curves)
        return [row for of_measure in rows for row in of_measure]

    def table(self) -> "pd.DataFrame":
        """The estimates, and in the column ``suspect`` whether TwoNN finds mostly copies."""
        import pandas as pd

        table = pd.DataFrame(self.estimates, columns=list(ESTIMATE_COLUMNS)).astype(KINDS)
        limits = table["estimator"].map(lambda each: find_measure(each).suspect_above)
        table["suspect"] = limits.notna() & (
            (table["near_duplicates"] > limits.astype(float)) | (table["same_token"] > MOST_COPIES)
        )
        return table

    def compared(self, other: "Measured") -> "pd.DataFrame":
        """How much higher another checkpoint is, measured on the same windows, with paired intervals.

        Returns
        -------
        pandas.DataFrame
            The columns of ``tables/changes.csv``, and ``suspect``, of either checkpoint. Layers are compared if both
            have as many; means over blocks in any case.
        """
        import pandas as pd

        rows = []
        are_alike = self.model.layers == other.model.layers
        for (curve, one), (_, two) in zip(self.curves, other.curves, strict=True):
            pair = [self._at(one, are_alike), other._at(two, are_alike)]
            rows += list(change_rows(self.model, curve, pair))
        columns = list(CHANGE_COLUMNS)
        if not are_alike:  # what stands for a layer is the mean
            rows = [row for row in rows if row[columns.index("layer")] is None]
        table = pd.DataFrame(rows, columns=columns).astype({"layer": "Int64"})
        place = ["estimator", "layer"]
        either = pd.concat([each.table()[[*place, "suspect"]] for each in (self, other)])
        return table.merge(either.groupby(place, dropna=False, as_index=False).any(), "left", place)

    def _at(self, at: AtCheckpoint, all_layers: bool) -> AtCheckpoint:
        """Its layers, or their mean alone, named after the model."""
        named = (f"{self.model.name}@{at.checkpoint[0]}", *at.checkpoint[1:])
        if all_layers:
            return at._replace(checkpoint=named)
        return AtCheckpoint(named, [], {self.model.first: average(at, self.model.first)[0]})


def measures_named(names: Iterable[str]) -> list[Measure]:
    """Look measures up, with the settings that are their own."""
    known, found = measure_names(), []
    if isinstance(names, str) or not isinstance(names, Iterable) or not (listed := list(names)):
        raise InputError(f"measures are a list of names, not {names!r:.80}; give some")
    for name in dict.fromkeys(map(str, listed)):
        if name not in known:
            raise unknown_name(name, known, "measure", "the measures")
        measure = find_measure(name).chosen(name, {})
        if measure.family not in FAMILIES:
            raise InputError(f"`{name}` is of weights, not of hidden states; leave it out")
        if "last_layer" in measure.rows:
            raise InputError(
                f"`{name}` is of the state before the final norm; measure it by the workflow"
            )
        if measure.family == "dimension" and not measure.neighbours:
            measure = replace(measure, neighbours=NEIGHBOURS)
        found.append(measure)
    return found


def measured(  # noqa: PLR0913 (keywords)
    states: HiddenStates,
    measures: Sequence[Measure],
    how: MeasuringProtocol,
    role: str,
    checkpoint: Checkpoint,
    places: Sequence[tuple[int, str]] = (),
    *,
    threads: int = 1,
    progress: Progress | None = None,
    name: str = "",
) -> Measured:
    """Measure the layers; `name` is the model's in tables, if its batches are those of another one."""
    found: list[TidyRow] = []
    number, last = len(places) or states.layers + 1, None
    for layer, *_, rows in measure_layers(states, [Part(how, measures)], threads, places):
        found += rows
        if progress and layer != last:
            last = layer
            progress("layers", layer + 1, number)
    curves = []
    for measure in measures:
        if own := [row for row in found if row.estimator == measure.name]:
            curve = Curve(measure.name, measure.family, measure.interval, [checkpoint[0]])
            curves.append((curve, at_checkpoint(checkpoint, own, Path(how.model))))
    has_blocks = any(row.layer for row in found)
    averaged = "block_outputs" if has_blocks else "all_layers"
    model = MeasuredModel(name or how.model, role, max(states.layers, 1), [checkpoint], averaged)
    _say_what_is_undefined(model, [at for _, at in curves])
    return Measured(model, curves)


def _say_what_is_undefined(model: MeasuredModel, curves: Sequence[AtCheckpoint]) -> None:
    """Log why a mean over blocks is undefined, or of how many blocks it is."""
    if broken := sorted({layer for at in curves for layer in at.broken(0)}):
        logger.warning(
            "%s: the hidden states of layers %s hold NaN or infinity, or all are one vector: what is measured of "
            "them is undefined%s",
            *(model.name, broken, ", and so are means" * (max(broken) >= model.first)),
        )
    for at in curves:
        defined = at.defined(model.first)
        some = [layer for layer in at.layers if layer >= model.first and layer not in defined]
        if some and defined and not at.broken(model.first):
            measure = next(row.estimator for row in at.layers.values())
            logger.warning(
                "%s: `%s` is undefined at layers %s: its mean is of the other %d",
                *(model.name, measure, some, len(defined)),
            )
