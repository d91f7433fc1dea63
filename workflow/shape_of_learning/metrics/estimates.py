"""Estimates of layers and of averages over them, and changes between checkpoints, each with its interval.

All follow from left-out values: what a value would be without one of the groups of windows. The groups are
the same for all layers and checkpoints, so an average or a difference has left-out values of its own, the
averages or differences of theirs, and what its parts share is in its interval.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measurements import (
    LAYER_COLUMNS,
    LEFT_OUT_COLUMNS,
    Estimate,
    relative_depth,
)
from shape_of_learning.metrics.resampling import interval, standard_error
from shape_of_learning.metrics.table_columns import AVERAGED_LAYERS, GROUPS
from shape_of_learning.metrics.undefined_values import require_some_value
from shape_of_learning.storage.csv_table import read_rows

UNDEFINED = (math.nan,) * GROUPS  # left-out values from which no interval follows


@dataclass(frozen=True)
class MeasuredCurve:
    """One estimator over checkpoints of one model, as jobs are told of it.

    Attributes
    ----------
    model, role, estimator, selection : str
        As in the tables.
    layers : int
        Of the model: hidden states are 0 to `layers`.
    checkpoints : sequence of (str, int or None, int or None)
        Revision, step and tokens of each, by ascending step.
    average_over : {"block_outputs", "all_layers"}
        Layers 1 to L, or 0 to L.
    interval : bool
        Whether the intervals of single layers cover; if not, only averages over layers have some.
    first_layer : int
        The first that is measured: 1 where what is measured is blocks.
    """

    model: str
    role: str
    estimator: str
    selection: str
    layers: int
    checkpoints: Sequence[tuple[str, int | None, int | None]]
    average_over: str
    interval: bool
    first_layer: int = 0

    @classmethod
    def from_json(cls, text: str) -> "MeasuredCurve":
        """Read the argument of a script."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class MeasuredCheckpoint:
    """One estimator at one checkpoint.

    Attributes
    ----------
    batches : list of list of str
        Rows of the table of measurements: layer, batch, n, n_unique, value.
    layers : dict of int to Estimate
        Of each layer, ascending.
    """

    batches: list[list[str]]
    layers: dict[int, Estimate]


def read_checkpoint(measurements: Path, left_out: Path, curve: MeasuredCurve) -> MeasuredCheckpoint:
    """Read the two tables of one checkpoint of a curve.

    Returns
    -------
    MeasuredCheckpoint
        Left-out values are NaN where the value is.

    Raises
    ------
    InputError
        If a table is missing or damaged, or is not of all layers.
    """
    batches, rows = read_rows(measurements, LAYER_COLUMNS), read_rows(left_out, LEFT_OUT_COLUMNS)
    expected = [str(layer) for layer in range(curve.first_layer, curve.layers + 1)]
    numbered = [batch for layer, batch, *_ in batches if layer == expected[0]]
    whole = [[layer, batch] for layer in expected for batch in numbered]
    for path, is_whole in (
        (measurements, whole and [row[:2] for row in batches] == whole),
        (left_out, [row[0] for row in rows] == expected),
    ):
        if not is_whole:
            raise InputError(
                f"{path} does not hold all batches of the layers {expected[0]} to {curve.layers}; "
                "delete it and run again"
            )
    require_some_value(
        measurements, (dict(zip(LAYER_COLUMNS, row, strict=True)) for row in batches)
    )
    try:
        return MeasuredCheckpoint(batches, {int(row[0]): _estimate_of(row) for row in rows})
    except ValueError as error:
        raise InputError(f"{left_out}: {error}; delete it and run again") from error


def _estimate_of(row: list[str]) -> Estimate:
    _, *numbers = [float(cell or "nan") for cell in row]
    value, batch_sd, n, n_unique, near_duplicates, windows, *left_out = numbers
    if math.isnan(value):
        left_out = list(UNDEFINED)
    known = (n, n_unique, near_duplicates, int(windows))
    return Estimate(value, batch_sd, *known, left_out=tuple(left_out))


def average(checkpoint: MeasuredCheckpoint, first_layer: int) -> Estimate:
    """Average over the layers from `first_layer` on whose value is defined.

    Returns
    -------
    Estimate
        Its left-out values are the averages of theirs. ``batch_sd`` is the deviation over batches of the
        average within each batch. ``near_duplicates`` is the largest share of any layer in the average.
    """
    layers = {
        number: each
        for number, each in checkpoint.layers.items()
        if number >= first_layer and not math.isnan(each.value)
    }
    of_all = checkpoint.layers[max(first_layer, min(checkpoint.layers))]
    if not layers:
        return replace(of_all, value=math.nan, batch_sd=math.nan, left_out=UNDEFINED)
    by_batch: dict[str, list[float]] = {}
    for layer, batch, _, _, value in checkpoint.batches:
        if int(layer) in layers:
            by_batch.setdefault(batch, []).append(float(value or "nan"))
    means = [math.fsum(values) / len(values) for values in by_batch.values()]
    return Estimate(
        value=_mean([each.value for each in layers.values()]),
        batch_sd=float(np.std(means, ddof=1)) if len(means) > 1 else math.nan,
        n=_mean([each.n for each in layers.values()]),
        n_unique=_mean([each.n_unique for each in layers.values()]),
        near_duplicates=max(each.near_duplicates for each in layers.values()),
        windows=of_all.windows,
        left_out=tuple(np.mean([each.left_out for each in layers.values()], axis=0)),
    )


def measurement_rows(
    curve: MeasuredCurve, checkpoints: Sequence[MeasuredCheckpoint]
) -> Iterator[list[object]]:
    """Rows of ``measurements.csv``: one per layer and batch."""
    for (revision, step, tokens), checkpoint in zip(curve.checkpoints, checkpoints, strict=True):
        for layer, *value in checkpoint.batches:
            identity = [curve.model, curve.role, revision, step, tokens, layer]
            depth = relative_depth(int(layer), curve.layers)
            yield [*identity, depth, curve.estimator, *value]


def estimate_rows(
    curve: MeasuredCurve, checkpoints: Sequence[MeasuredCheckpoint]
) -> Iterator[list[object]]:
    """Rows of ``estimates.csv``: of each checkpoint its layers, then their average, whose layer is empty."""
    first = AVERAGED_LAYERS[curve.average_over]
    for (revision, step, tokens), checkpoint in zip(curve.checkpoints, checkpoints, strict=True):
        identity = [curve.model, curve.role, revision, step, tokens]
        named = [curve.estimator, curve.selection]
        for layer, estimate in checkpoint.layers.items():
            place = [layer, relative_depth(layer, curve.layers)]
            shown = estimate if curve.interval else replace(estimate, left_out=UNDEFINED)
            yield [*identity, *place, *named, *_estimate(shown)]
        mean = average(checkpoint, first)
        yield [*identity, None, None, *named, *_estimate(mean)]


def left_out_rows(
    curve: MeasuredCurve, checkpoints: Sequence[MeasuredCheckpoint]
) -> Iterator[list[object]]:
    """Rows of ``left_out.csv`` of one model and estimator: of each checkpoint its layers."""
    for identity, checkpoint in zip(curve.checkpoints, checkpoints, strict=True):
        for layer, each in checkpoint.layers.items():
            named = [curve.model, *identity, layer, curve.estimator, curve.selection]
            yield [*named, each.value, each.n, each.near_duplicates, *each.left_out]


def change_rows(
    curve: MeasuredCurve, checkpoints: Sequence[MeasuredCheckpoint]
) -> Iterator[list[object]]:
    """Rows of ``changes.csv``: from each checkpoint to the next, and from the first to the last.

    Of each pair first the layers, then the average over layers, whose layer is empty. That is over the layers
    that are defined at both checkpoints.
    """
    pairs = [(i, i + 1) for i in range(len(checkpoints) - 1)]
    if len(checkpoints) > 2:
        pairs.append((0, len(checkpoints) - 1))
    first = AVERAGED_LAYERS[curve.average_over]
    for i, j in pairs:
        revisions = [curve.checkpoints[i][0], curve.checkpoints[j][0]]
        changes = {}
        for layer, a in checkpoints[i].layers.items():
            b = checkpoints[j].layers[layer]
            changes[layer] = (b.value - a.value, np.subtract(b.left_out, a.left_out))
        averaged = [
            change
            for layer, change in changes.items()
            if layer >= first and not math.isnan(change[0])
        ]
        differences, left_out = (
            zip(*averaged, strict=True) if averaged else ([math.nan], [UNDEFINED])
        )
        mean = (_mean(differences), np.mean(left_out, axis=0))
        for layer, (difference, left_out) in [*changes.items(), (None, mean)]:
            named = [curve.model, curve.estimator, curve.selection, layer]
            if layer is not None and not curve.interval:
                left_out = UNDEFINED
            _, _, smallest_visible = _bars(0.0, left_out)
            yield [*named, *revisions, difference, *_bars(difference, left_out), smallest_visible]


def _estimate(estimate: Estimate) -> list[object]:
    """Columns from ``value`` on."""
    sizes = [_whole_if_it_is(estimate.n), _whole_if_it_is(estimate.n_unique)]
    known = [estimate.batch_sd, *sizes, estimate.near_duplicates, estimate.windows]
    return [estimate.value, *_bars(estimate.value, estimate.left_out), *known]


def _bars(value: float, left_out: Sequence[float]) -> list[float]:
    """Columns ``standard_error``, ``low`` and ``high``."""
    without = np.asarray(left_out)
    return [float(each) for each in (standard_error(without), *interval(np.array(value), without))]


def _whole_if_it_is(number: float) -> float:
    return int(number) if number.is_integer() else number


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
