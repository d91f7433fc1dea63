"""What is measured of one checkpoint: its rows of the workflow's tables, and how it differs from another."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shape_of_learning.embeddings.layers import measure_layers
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure import Part
from shape_of_learning.metrics.measure_entry import FAMILIES, Measure
from shape_of_learning.metrics.protocol import MeasuringProtocol
from shape_of_learning.metrics.registry import find_measure, list_measure_names
from shape_of_learning.metrics.selections import HiddenStates
from shape_of_learning.metrics.series import MeasuredModel, MeasuredSeries
from shape_of_learning.metrics.suspects import (
    FEW_WINDOWS,
    REASONS,
    WIDE_INTERVAL,
    Reason,
    read_reasons,
    write_reasons,
)
from shape_of_learning.metrics.tables import (
    Checkpoint,
    CheckpointValues,
    average_layers,
    list_change_rows,
    list_estimate_rows,
    sort_checkpoint_rows,
)
from shape_of_learning.metrics.tidy import CHANGE_COLUMNS, ESTIMATE_COLUMNS, TidyRow
from shape_of_learning.one_model.defaults import NEIGHBOURS
from shape_of_learning.validation import make_unknown_name_error

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

KINDS = {"step": "Int64", "tokens": "Int64", "layer": "Int64"}
Progress = Callable[[str, int, int], None]  # what is done, how much of it, and how much there is


@dataclass(frozen=True)
class MeasurementResult:
    """What was measured of one checkpoint.

    Attributes
    ----------
    model : MeasuredModel
    curves : list of (Curve, AtCheckpoint)
        Of each measure.
    """

    model: MeasuredModel
    curves: list[tuple[MeasuredSeries, CheckpointValues]]

    @property
    def estimates(self) -> list[list[object]]:
        """Cells of :data:`.ESTIMATE_COLUMNS`, as the workflow writes them."""
        rows = (list_estimate_rows(self.model, curve, [at]) for curve, at in self.curves)
        return [row for of_measure in rows for row in of_measure]

    @property
    def label(self) -> str:
        """What pages and pictures call it."""
        revision = self.model.checkpoints[0][0]
        return self.model.name if revision == "main" else f"{self.model.name}@{revision}"

    def make_table(self) -> "pd.DataFrame":
        """The estimates; the column ``suspect`` is true or false."""
        return estimate_table(self.estimates)

    def compare(self, other: "MeasurementResult") -> list[dict[str, Any]]:
        """Say how much higher another checkpoint is, measured on the same windows, with paired intervals.

        Returns
        -------
        list of dict
            The columns of ``tables/changes.csv``, and ``suspect`` and ``reason``, of either checkpoint. Layers are
            compared if both have as many; means over blocks in any case.
        """
        rows = []
        are_alike = self.model.layers == other.model.layers
        for (curve, one), (_, two) in zip(self.curves, other.curves, strict=True):
            pair = [
                self._select_checkpoint(one, are_alike),
                other._select_checkpoint(two, are_alike),
            ]
            rows += list(list_change_rows(self.model, curve, pair))
        compared = [dict(zip(CHANGE_COLUMNS, row, strict=True)) for row in rows]
        if not are_alike:  # what stands for a layer is the mean
            compared = [row for row in compared if row["layer"] is None]
        reasons = [measured._find_reasons() for measured in (self, other)]
        for row in compared:
            place = row["estimator"], row["layer"]
            names = {reason for own in reasons for reason in own.get(place, ())}
            ordered = [reason for reason in REASONS.values() if reason in names]
            row |= {"suspect": "yes" if ordered else "no", "reason": write_reasons(ordered)}
        return compared

    def _find_reasons(self) -> dict[tuple[object, object], list[Reason]]:
        """Why values are suspect, but for what an interval of a difference shows itself."""
        rows = (dict(zip(ESTIMATE_COLUMNS, row, strict=True)) for row in self.estimates)
        return {
            (row["estimator"], row["layer"]): [
                r for r in read_reasons(str(row["reason"])) if r not in (WIDE_INTERVAL, FEW_WINDOWS)
            ]
            for row in rows
        }

    def _select_checkpoint(self, at: CheckpointValues, all_layers: bool) -> CheckpointValues:
        """Its layers, or their mean alone, named after the model."""
        named = (f"{self.model.name}@{at.checkpoint[0]}", *at.checkpoint[1:])
        if all_layers:
            return at._replace(checkpoint=named)
        return CheckpointValues(
            named, [], {self.model.first: average_layers(at, self.model.first)[0]}
        )


def estimate_table(rows: Sequence[Sequence[object]]) -> "pd.DataFrame":
    """Make a table of rows of estimates; the column ``suspect`` is true or false."""
    import pandas as pd

    table = pd.DataFrame(rows, columns=list(ESTIMATE_COLUMNS)).astype(KINDS)
    return table.assign(suspect=table["suspect"] == "yes")


def find_measures(names: Iterable[str]) -> list[Measure]:
    """Look measures up, with the settings that are their own."""
    known, found = list_measure_names(), []
    if isinstance(names, str) or not isinstance(names, Iterable) or not (listed := list(names)):
        raise InputError(f"measures are a list of names, not {names!r:.80}; give some")
    for name in dict.fromkeys(map(str, listed)):
        if name not in known:
            raise make_unknown_name_error(name, known, "measure", "the measures")
        measure = find_measure(name).configure(name, {})
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


def measure_states(  # noqa: PLR0913 (keywords)
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
) -> MeasurementResult:
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
            curve = MeasuredSeries(
                measure.name, measure.family, measure.conditions, [checkpoint[0]]
            )
            curves.append((curve, sort_checkpoint_rows(checkpoint, own, Path(how.model))))
    has_blocks = any(row.layer for row in found)
    averaged = "block_outputs" if has_blocks else "all_layers"
    width = states[0].shape[-1]
    layers = max(states.layers, 1)
    model = MeasuredModel(name or how.model, role, layers, [checkpoint], averaged, width)
    _say_what_is_undefined(model, [at for _, at in curves])
    return MeasurementResult(model, curves)


def _say_what_is_undefined(model: MeasuredModel, curves: Sequence[CheckpointValues]) -> None:
    """Log why a mean over blocks is undefined, or of how many blocks it is."""
    if broken := sorted({layer for at in curves for layer in at.list_broken_layers(0)}):
        logger.warning(
            "%s: the hidden states of layers %s hold NaN or infinity, or all are one vector: what is measured of "
            "them is undefined%s",
            *(model.name, broken, ", and so are means" * (max(broken) >= model.first)),
        )
    for at in curves:
        defined = at.list_defined_layers(model.first)
        some = [layer for layer in at.layers if layer >= model.first and layer not in defined]
        if some and defined and not at.list_broken_layers(model.first):
            measure = next(row.estimator for row in at.layers.values())
            logger.warning(
                "%s: `%s` is undefined at layers %s: its mean is of the other %d",
                *(model.name, measure, some, len(defined)),
            )
