"""Measure one checkpoint, from its folder or its hidden states, and compare it with another."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shape_of_learning.corpus.clean import clean
from shape_of_learning.corpus.fetch import read_demo_text
from shape_of_learning.embeddings.layers import measure_layers
from shape_of_learning.embeddings.model import (
    find_device,
    read_shape,
    refuse_two_stacks,
    sees_later_tokens,
)
from shape_of_learning.embeddings.protocol import SamplingProtocol
from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
from shape_of_learning.embeddings.tokenised_windows import draw_windows
from shape_of_learning.errors import InputError
from shape_of_learning.machine import count_cores
from shape_of_learning.metrics.measure import Part
from shape_of_learning.metrics.measure_entry import FAMILIES, Measure
from shape_of_learning.metrics.protocol import MeasuringProtocol
from shape_of_learning.metrics.registry import find_measure, list_measure_names
from shape_of_learning.metrics.selections import HiddenStates, require_batches
from shape_of_learning.metrics.series import MeasuredModel, MeasuredSeries
from shape_of_learning.metrics.suspects import (
    FEW_WINDOWS,
    REASONS,
    WIDE_INTERVAL,
    Reason,
    format_reasons,
    read_reasons,
)
from shape_of_learning.metrics.tables import (
    CheckpointValues,
    average_layers,
    list_change_rows,
    list_estimate_rows,
    sort_checkpoint_rows,
)
from shape_of_learning.metrics.tidy import CHANGE_COLUMNS, ESTIMATE_COLUMNS, TidyRow
from shape_of_learning.one_model.options import NEIGHBOURS, WINDOW_CHARACTERS, MeasurementOptions
from shape_of_learning.validation import make_unknown_name_error

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

INTEGERS = {"step": "Int64", "tokens": "Int64", "layer": "Int64"}  # columns that may be empty
Progress = Callable[[str, int, int], None]  # called with a unit, the number done and the total


class CheckpointName(NamedTuple):
    """The model, role, revision and step in the rows of a table."""

    model: str
    role: str
    revision: str = "main"
    step: int | None = None


@dataclass(frozen=True)
class MeasurementResult:
    """The values of all measures at one checkpoint.

    Attributes
    ----------
    model : MeasuredModel
    curves : list of (MeasuredSeries, CheckpointValues)
        One for each measure.
    windows : int
        The number of windows of the text, or of groups of vectors.
    """

    model: MeasuredModel
    curves: list[tuple[MeasuredSeries, CheckpointValues]]
    windows: int

    @property
    def estimates(self) -> list[list[object]]:
        """Rows of ``tables/estimates.csv``, with the columns :data:`.ESTIMATE_COLUMNS`."""
        rows: list[list[object]] = []
        for curve, values in self.curves:
            rows += list_estimate_rows(self.model, curve, [values])
        return rows

    @property
    def label(self) -> str:
        """The name of the model, with its revision unless that is `main`."""
        revision = self.model.checkpoints[0][0]
        return self.model.name if revision == "main" else f"{self.model.name}@{revision}"

    def make_table(self) -> "pd.DataFrame":
        """Return the estimates as a table, whose column ``suspect`` is true or false."""
        return make_estimate_table(self.estimates)

    def compare(self, other: "MeasurementResult") -> list[dict[str, Any]]:
        """Subtract this checkpoint's values from another's on the same windows, with paired intervals.

        Returns
        -------
        list of dict
            The columns of ``tables/changes.csv``, and ``suspect`` and ``reason`` of either checkpoint. Layers are
            compared if both models have the same layers; means over blocks in any case.

        Raises
        ------
        InputError
            If the numbers of windows differ, so that they cannot be paired.
        """
        if self.windows != other.windows:
            raise InputError(
                f"`{self.label}` has {self.windows} windows and `{other.label}` {other.windows}, but a difference is "
                "of the same windows; give both the same texts, without `window_tokens`"
            )
        has_equal_layers = [*self.curves[0][1].layers] == [*other.curves[0][1].layers]
        rows = []
        for (curve, values), (_, other_values) in zip(self.curves, other.curves, strict=True):
            pair = [
                self._rename_checkpoint(values, has_equal_layers),
                other._rename_checkpoint(other_values, has_equal_layers),
            ]
            for cells in list_change_rows(self.model, curve, pair):
                row = dict(zip(CHANGE_COLUMNS, cells, strict=True))
                # Models of unequal depth are compared by means alone, which also appear as one layer.
                if has_equal_layers or row["layer"] is None:
                    rows.append(row)
        reasons_of_both = [result._find_reasons() for result in (self, other)]
        for row in rows:
            place = row["estimator"], row["layer"]
            names = {
                reason
                for reasons_by_place in reasons_of_both
                for reason in reasons_by_place.get(place, ())
            }
            ordered_reasons = [reason for reason in REASONS.values() if reason in names]
            row |= {
                "suspect": "yes" if ordered_reasons else "no",
                "reason": format_reasons(ordered_reasons),
            }
        return rows

    def _find_reasons(self) -> dict[tuple[object, object], list[Reason]]:
        """Return the reasons not to trust values, except the reasons that the interval of a difference shows."""
        rows = (dict(zip(ESTIMATE_COLUMNS, row, strict=True)) for row in self.estimates)
        return {
            (row["estimator"], row["layer"]): [
                reason
                for reason in read_reasons(str(row["reason"]))
                if reason not in (WIDE_INTERVAL, FEW_WINDOWS)
            ]
            for row in rows
        }

    def _rename_checkpoint(self, values: CheckpointValues, all_layers: bool) -> CheckpointValues:
        """Name a checkpoint by model and revision; unless `all_layers`, replace its layers by their mean."""
        revision, step, tokens = values.checkpoint
        checkpoint = (f"{self.model.name}@{revision}", step, tokens)
        if all_layers:
            return values._replace(checkpoint=checkpoint)
        mean, _ = average_layers(values, self.model.first)
        return CheckpointValues(checkpoint, [], {self.model.first: mean})


def make_estimate_table(rows: Sequence[Sequence[object]]) -> "pd.DataFrame":
    """Make a table of rows of estimates, whose column ``suspect`` is true or false."""
    import pandas as pd

    table = pd.DataFrame(rows, columns=list(ESTIMATE_COLUMNS)).astype(INTEGERS)
    return table.assign(suspect=table["suspect"] == "yes")


def find_measures(names: Iterable[str]) -> list[Measure]:
    """Find measures of hidden states by their names, with their default settings."""
    if (
        isinstance(names, str)
        or not isinstance(names, Iterable)
        or not (measure_names := list(names))
    ):
        raise InputError(f"measures are a list of names, not {names!r:.80}; give some names")
    registry = list_measure_names()
    measures = []
    for name in dict.fromkeys(map(str, measure_names)):
        if name not in registry:
            raise make_unknown_name_error(name, registry, "measure", "the measures")
        measure = find_measure(name).configure(name, {})
        if measure.family not in FAMILIES:
            raise InputError(f"`{name}` measures weights, not hidden states; leave it out")
        if "last_layer" in measure.rows:
            raise InputError(
                f"`{name}` measures the state before the final norm; measure it by the workflow"
            )
        if measure.family == "dimension" and not measure.neighbours:
            measure = replace(measure, neighbours=NEIGHBOURS)
        measures.append(measure)
    return measures


def measure_checkpoint(
    folder: Path,
    text: Path,
    options: MeasurementOptions = MeasurementOptions(),  # noqa: B008 (frozen)
    *,
    name: str,
    revision: str = "main",
    shuffle_name: str = "",
    progress: Progress | None = None,
) -> MeasurementResult:
    """Measure a checkpoint as the workflow does, with the same rows of ``tables/estimates.csv``, bit for bit.

    Parameters
    ----------
    folder : Path
        Checkpoint in the format of transformers, with its tokenizer.
    text : Path
        Plain text in UTF-8, from which windows are drawn.
    options : MeasurementOptions
    name, revision : str
        The name and revision in the workflow's entry for this model.
    shuffle_name : str
        The name that decides the batches for dimensions. With another model's name, the two are compared batch by
        batch.
    progress : callable, optional
        Called with ``"windows"`` or ``"layers"``, the number of them that are done, and their total.

    Raises
    ------
    InputError
        If the checkpoint or the text cannot be used.
    """
    measures = find_measures(options.measures)
    shape = read_shape(folder, name)
    refuse_two_stacks(shape, folder)
    sampling = SamplingProtocol(options.windows, options.window_characters, options.seed)
    threads = options.threads or count_cores()
    sample = SampleRun.load(
        folder,
        _clean_and_draw(text, sampling),
        sampling,
        shape,
        threads=threads,
        device=find_device(options.device),
        needs_memory=True,
    )
    # No loss is needed.
    sample = replace(sample, predicted_tokens=None, batch_size=options.batch_size)
    states = StatesInMemory(sample)
    protocol = MeasuringProtocol(
        shuffle_name or name, options.windows, options.seed, options.batch_vectors, NEIGHBOURS
    )
    require_batches(protocol, states.rows, measures)
    sample.store_states(ProgressStates(states, options.windows, progress) if progress else states)
    role = shape.role or ("encoder" if sees_later_tokens(sample.forward.model) else "decoder")
    return measure_states(
        states,
        measures,
        protocol,
        CheckpointName(name, role, revision),
        threads=threads if states.measuring_device.type == "cpu" else 1,
        progress=progress,
    )


def draw_built_in_windows(windows: int, seed: int) -> list[str]:
    """Draw windows from the documentation that comes with Python, as the command does."""
    with TemporaryDirectory() as folder:
        text = Path(folder, "python_topics.txt")
        text.write_text(read_demo_text(), encoding="utf-8")
        return _clean_and_draw(text, SamplingProtocol(windows, WINDOW_CHARACTERS, seed))


def _clean_and_draw(text: Path, sampling: SamplingProtocol) -> list[str]:
    with TemporaryDirectory() as folder:
        cleaned_text = Path(folder, "text.txt")
        clean(text, cleaned_text, Path(folder, "alphabet.json"), format="text")
        return draw_windows(cleaned_text, sampling, label=text.name)


class ProgressStates:
    """A store that passes hidden states on to another store, and reports the number of windows.

    Parameters
    ----------
    states : HiddenStateStore
    windows : int
        The total number of windows.
    progress : callable
    """

    def __init__(self, states: Any, windows: int, progress: Progress):
        self.device = states.device
        self._states, self._windows, self._progress = states, windows, progress
        self._first_rows: set[int] = set()  # after exhausted memory, a window is written again

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Store one state of a window, and count the window after its last layer."""
        self._states.write(state, rows, values)
        if state == self._states.layers:
            self._first_rows.add(rows.start)
            self._progress("windows", len(self._first_rows), self._windows)


def measure_states(
    states: HiddenStates,
    measures: Sequence[Measure],
    protocol: MeasuringProtocol,
    checkpoint: CheckpointName,
    places: Sequence[tuple[int, str]] = (),
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> MeasurementResult:
    """Measure hidden states.

    Parameters
    ----------
    states : HiddenStates
    measures : sequence of Measure
    protocol : MeasuringProtocol
    checkpoint : CheckpointName
        Its model may differ from the protocol's model, whose name decides the batches for dimensions.
    places : sequence of (int, str)
        Layers, and the state of the last one, as in :func:`.measure_layers`; by default all layers.
    threads : int, optional
        Number of layers measured at a time; by default PyTorch's number of threads, and 1 on a GPU.
    progress : callable, optional
    """
    layers = [layer for layer, _ in places] or range(states.layers + 1)
    require_layers(measures, layers)
    if threads is None:
        import torch

        threads = torch.get_num_threads() if isinstance(states[0], np.ndarray) else 1
    rows: list[TidyRow] = []
    last = None
    for layer, *_, layer_rows in measure_layers(
        states, [Part(protocol, measures)], threads, places
    ):
        rows += layer_rows
        if progress and layer != last:
            last = layer
            progress("layers", layer + 1, len(layers))
    steps = (checkpoint.revision, checkpoint.step, None)
    curves = []
    for measure in measures:
        measure_rows = [row for row in rows if row.estimator == measure.name]
        series = MeasuredSeries(
            measure.name, measure.family, measure.conditions, [checkpoint.revision]
        )
        curves.append((series, sort_checkpoint_rows(steps, measure_rows, Path(protocol.model))))
    model = MeasuredModel(
        checkpoint.model,
        checkpoint.role,
        max(states.layers, 1),
        [steps],
        "block_outputs" if any(row.layer for row in rows) else "all_layers",
        states[0].shape[-1],
    )
    _warn_of_undefined_values(model, [values for _, values in curves])
    return MeasurementResult(model, curves, protocol.windows)


def require_layers(measures: Sequence[Measure], layers: Iterable[int]) -> None:
    """Raise InputError for a measure of blocks if no layer is the output of a block."""
    last = max(layers)
    for measure in measures:
        if last < measure.first_layer:
            raise InputError(
                f"`{measure.name}` is a measure of blocks, and layer 0 alone has none; give further layers, or leave "
                f"`{measure.name}` out"
            )


def _warn_of_undefined_values(model: MeasuredModel, curves: Sequence[CheckpointValues]) -> None:
    """Warn of layers whose values are undefined, and of means that leave out some blocks."""
    if broken := sorted({layer for values in curves for layer in values.list_broken_layers(0)}):
        logger.warning(
            "%s: the hidden states of layers %s hold NaN or infinity, or all their vectors are equal, so their "
            "measures are undefined%s",
            model.name,
            broken,
            ", and so are means" if max(broken) >= model.first else "",
        )
    for values in curves:
        defined_layers = values.list_defined_layers(model.first)
        undefined_layers = [
            layer for layer in values.layers if layer >= model.first and layer not in defined_layers
        ]
        if undefined_layers and defined_layers and not values.list_broken_layers(model.first):
            logger.warning(
                "%s: `%s` is undefined at layers %s; its mean is over the other %d layers",
                model.name,
                next(row.estimator for row in values.layers.values()),
                undefined_layers,
                len(defined_layers),
            )
