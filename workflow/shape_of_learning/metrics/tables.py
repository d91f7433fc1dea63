"""What is gathered of the tidy tables of a model: estimates and changes, with intervals.

All intervals follow from left-out values: what a value would be without one of the groups of windows. The
groups are the same for all layers and checkpoints, so an average or a difference has left-out values of its
own, the averages or differences of theirs, and what its parts share is in its interval.
"""

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shape_of_learning.files import write_table
from shape_of_learning.metrics.intervals import interval, standard_error
from shape_of_learning.metrics.suspects import Conditions, find_reasons, write_reasons
from shape_of_learning.metrics.tidy import (
    AVERAGED_LAYERS,
    CHANGE_COLUMNS,
    ESTIMATE_COLUMNS,
    LEFT_OUT_COLUMNS,
    MEASUREMENT_COLUMNS,
    UNDEFINED,
    TidyRow,
    layer_table,
    read_tidy,
    whole,
)

logger = logging.getLogger(__name__)

Checkpoint = tuple[str, int | None, int | None]  # revision, step and tokens


@dataclass(frozen=True)
class MeasuredModel:
    """A model whose checkpoints were measured.

    Attributes
    ----------
    name, role : str
    layers : int
        Hidden states are 0 to `layers`.
    checkpoints : sequence of (str, int or None, int or None)
        Revision, step and tokens of each, by ascending step.
    average_over : {"block_outputs", "all_layers"}
        Layers 1 to L, or 0 to L.
    width : int
        Coordinates of a hidden state; 0 where nobody says.
    """

    name: str
    role: str
    layers: int
    checkpoints: Sequence[Checkpoint]
    average_over: str
    width: int = 0

    @property
    def first(self) -> int:
        """The first layer in an average."""
        return AVERAGED_LAYERS[self.average_over]


@dataclass(frozen=True)
class MeasuredSeries:
    """One measure over checkpoints of a model.

    Attributes
    ----------
    estimator, family : str
    conditions : Conditions
        What it needs of its values; where its intervals do not cover, there are none.
    revisions : sequence of str
        Where it was measured.
    """

    estimator: str
    family: str
    conditions: Conditions
    revisions: Sequence[str]


class CheckpointValues(NamedTuple):
    """One measure at one checkpoint: which, its values of batches, and of layers by number, ascending."""

    checkpoint: Checkpoint
    batches: list[TidyRow]
    layers: dict[int, TidyRow]

    def list_defined_layers(self, first: int) -> list[int]:
        """The layers from `first` on that have a value."""
        return [n for n, row in self.layers.items() if n >= first and not math.isnan(row.value)]

    def broken(self, first: int) -> list[int]:
        """The layers from `first` on whose hidden states hold NaN or infinity, or all are one vector.

        What there is no measure of is then a block of the model, and an average without it is of another model.
        """
        found = {row.layer for row in self.batches if math.isnan(row.value) and row.n_unique <= 1}
        return sorted(layer for layer in found if layer >= first)


def write_model_tables(
    folder: Path,
    model: Mapping[str, Any],
    curves: Iterable[Mapping[str, Any]],
    tables: Mapping[str, Path],
) -> None:
    """Gather what was measured of the checkpoints of a model.

    Parameters
    ----------
    folder : Path
        Of the model's measurements: ``{revision}/{family}/layer_{layer}.csv``.
    model : mapping
        Fields of :class:`MeasuredModel`.
    curves : iterable of mapping
        Fields of :class:`MeasuredSeries` of each, in the order of the tables.
    tables : mapping of str to Path
        Where ``measurements``, ``estimates``, ``changes`` and ``left_out`` are written to.

    Raises
    ------
    InputError
        If a table has other columns.
    """
    of_model = MeasuredModel(**model)
    writers = {
        "measurements": (MEASUREMENT_COLUMNS, measurement_rows),
        "estimates": (ESTIMATE_COLUMNS, estimate_rows),
        "changes": (CHANGE_COLUMNS, change_rows),
        "left_out": (LEFT_OUT_COLUMNS, left_out_rows),
    }

    @cache
    def tidy_rows(revision: str, family: str) -> list[TidyRow]:
        layers = range(family == "linearity", of_model.layers + 1)
        paths = [layer_table(folder / revision, family, layer) for layer in layers]
        return [row for path in paths for row in read_tidy(path)]

    measured = []
    for curve in (MeasuredSeries(**curve) for curve in curves):
        found = []
        for checkpoint in of_model.checkpoints:
            if checkpoint[0] in curve.revisions:
                rows = tidy_rows(checkpoint[0], curve.family)
                own = [row for row in rows if row.estimator == curve.estimator]
                found.append(sort_checkpoint_rows(checkpoint, own, folder))
        measured.append((curve, found))
    for name, path in tables.items():
        columns, rows_of = writers[name]
        write_table(path, columns, (row for each in measured for row in rows_of(of_model, *each)))


def sort_checkpoint_rows(
    checkpoint: Checkpoint, rows: Sequence[TidyRow], folder: Path
) -> CheckpointValues:
    """Sort the rows of one measure, and say if it has no value though the vectors are distinct."""
    batches = [row for row in rows if row.batch is not None]
    # Where hidden states hold NaN or infinity, or few vectors are distinct, nothing can be said.
    distinct = any(2 * row.n_unique > row.n for row in batches)
    if distinct and all(math.isnan(row.value) for row in batches):
        logger.warning(
            "%s holds no value of `%s`, though its vectors are distinct: as of ties everywhere, where the nearest "
            "neighbours are all as far; correct the measure if it is your own",
            *(folder / checkpoint[0], rows[0].estimator),
        )
    layers = {
        row.layer: row._replace(without=UNDEFINED) if math.isnan(row.value) else row
        for row in rows
        if row.batch is None
    }
    return CheckpointValues(checkpoint, batches, layers)


def measurement_rows(
    model: MeasuredModel, curve: MeasuredSeries, measured: Sequence[CheckpointValues]
) -> Iterator[list[object]]:
    """Rows of ``measurements.csv``: one per layer and batch."""
    for checkpoint, batches, _ in measured:
        identity = [model.name, model.role, *checkpoint]
        for row in batches:
            place = [row.layer, row.layer / model.layers, curve.estimator]
            yield [*identity, *place, row.batch, row.n, row.n_unique, row.value]


def estimate_rows(
    model: MeasuredModel, curve: MeasuredSeries, measured: Sequence[CheckpointValues]
) -> Iterator[list[object]]:
    """Rows of ``estimates.csv``: of each checkpoint its layers, then their average, whose layer is empty."""
    for at in measured:
        checkpoint, batches, layers = at
        identity = [model.name, model.role, *checkpoint]
        if not curve.conditions.has_interval:
            layers = {layer: row._replace(without=UNDEFINED) for layer, row in layers.items()}
        for layer, row in layers.items():
            place = [layer, layer / model.layers, curve.estimator, row.selection]
            yield [*identity, *place, *_estimate(row, batches, [layer], curve, model.width)]
        mean, averaged = average(at._replace(layers=layers), model.first)
        place = [None, None, curve.estimator, mean.selection]
        yield [*identity, *place, *_estimate(mean, batches, averaged, curve, model.width)]


def average(at: CheckpointValues, first: int) -> tuple[TidyRow, list[int]]:
    """Average over the layers from `first` on whose value is defined; undefined if any of them is broken.

    Its left-out values are the averages of theirs. ``near_duplicates`` and ``same_token`` are the largest
    shares of any layer, and ``effective_windows`` the smallest number.

    Returns
    -------
    mean : TidyRow
    layers : list of int
        That it is of.
    """
    averaged = [] if at.broken(first) else at.list_defined_layers(first)
    row = at.layers[min((layer for layer in at.layers if layer >= first), default=min(at.layers))]
    if not averaged:
        return row._replace(value=math.nan, without=UNDEFINED), averaged
    layers = [at.layers[layer] for layer in averaged]
    mean = row._replace(
        value=_mean([row.value for row in layers]),
        n=whole(_mean([row.n for row in layers])),
        n_unique=whole(_mean([row.n_unique for row in layers])),
        near_duplicates=max(row.near_duplicates for row in layers),
        same_token=max(row.same_token for row in layers),
        effective_windows=min(row.effective_windows for row in layers),
        without=tuple(np.mean([row.without for row in layers], axis=0)),
    )
    return mean, averaged


def change_rows(
    model: MeasuredModel, curve: MeasuredSeries, measured: Sequence[CheckpointValues]
) -> Iterator[list[object]]:
    """Rows of ``changes.csv``: from each checkpoint to the next, and from the first to the last.

    Of each pair first the layers, then the average over layers, whose layer is empty. That is over the layers
    that are defined at both checkpoints, and undefined where one of them is broken at either.
    """
    pairs = list(pairwise(measured))
    if len(measured) > 2:
        pairs.append((measured[0], measured[-1]))
    for before, after in pairs:
        changes = {
            layer: (b.value - a.value, np.subtract(b.without, a.without))
            for (layer, a), b in zip(before.layers.items(), after.layers.values(), strict=True)
        }
        averaged = [change for layer, change in changes.items() if layer >= model.first]
        is_broken = before.broken(model.first) or after.broken(model.first)
        defined = [each for each in averaged if not (is_broken or math.isnan(each[0]))]
        defined = defined or [(math.nan, UNDEFINED)]
        differences, left_out = zip(*defined, strict=True)
        mean = (_mean(differences), np.mean(left_out, axis=0))
        selection = next(iter(after.layers.values())).selection
        for layer, (difference, without) in [*changes.items(), (None, mean)]:
            if not curve.conditions.has_interval:
                without = UNDEFINED
            yield [
                *(model.name, curve.estimator, selection, layer),
                *(before.checkpoint[0], after.checkpoint[0]),
                *(difference, *_bars(difference, without), _bars(0.0, without)[2]),
            ]


def left_out_rows(
    model: MeasuredModel, curve: MeasuredSeries, measured: Sequence[CheckpointValues]
) -> Iterator[list[object]]:
    """Rows of ``left_out.csv``: of each checkpoint its layers."""
    for at in measured:
        for row in at.layers.values():
            yield [model.name, model.role, *at.checkpoint, *row.cells]


def _estimate(
    row: TidyRow,
    batches: Sequence[TidyRow],
    layers: Sequence[int],
    curve: MeasuredSeries,
    width: int,
) -> list[object]:
    """Columns from ``value`` on, of the layers of which there is the value or the average."""
    by_batch: dict[int | None, list[float]] = {}
    for batch in batches:
        if batch.layer in layers:
            by_batch.setdefault(batch.batch, []).append(batch.value)
    values = [_mean(values) for values in by_batch.values()]
    batch_sd = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    bars = _bars(row.value, row.without)
    reasons = find_reasons(
        curve.conditions,
        row.value,
        *bars[1:],
        near_duplicates=row.near_duplicates,
        same_token=row.same_token,
        width=width,
    )
    return [
        *(row.value, *bars, batch_sd),
        *(row.n, row.n_unique, row.near_duplicates, row.windows, len(layers)),
        *(row.same_token, row.effective_windows),
        *("yes" if reasons else "no", write_reasons(reasons)),
    ]


def _bars(value: float, left_out: Sequence[float]) -> list[float]:
    """Columns ``standard_error``, ``low`` and ``high``."""
    without = np.asarray(left_out)
    return [float(each) for each in (standard_error(without), *interval(np.array(value), without))]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
