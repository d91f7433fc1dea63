"""Gather the tidy tables of a model into estimates and changes, with intervals.

Intervals come from jackknife values: the values without each group of windows. All layers and checkpoints have the
same groups, so the jackknife values of an average or a difference are the averages or differences of jackknife values,
and the interval allows for shared errors.
"""

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from shape_of_learning.files import write_table
from shape_of_learning.metrics.intervals import interval, standard_error
from shape_of_learning.metrics.measure_entry import find_first_layer
from shape_of_learning.metrics.series import MeasuredCheckpoint, MeasuredModel, MeasuredSeries
from shape_of_learning.metrics.suspects import find_reasons, format_reasons
from shape_of_learning.metrics.tidy import (
    CHANGE_COLUMNS,
    ESTIMATE_COLUMNS,
    JACKKNIFE_COLUMNS,
    MEASUREMENT_COLUMNS,
    UNDEFINED,
    TidyRow,
    name_layer_table,
    read_tidy,
    shorten_number,
)

logger = logging.getLogger(__name__)


class CheckpointValues(NamedTuple):
    """One measure at one checkpoint: the rows of its batches, and the rows of its layers by ascending number."""

    checkpoint: MeasuredCheckpoint
    batches: list[TidyRow]
    layers: dict[int, TidyRow]

    def list_defined_layers(self, first: int) -> list[int]:
        """List the layers from `first` on with a defined value."""
        return [n for n, row in self.layers.items() if n >= first and not math.isnan(row.value)]

    def list_broken_layers(self, first: int) -> list[int]:
        """List the layers from `first` on whose hidden states hold NaN or infinity, or are all one vector.

        An average without a broken block would describe another model, so it is undefined.
        """
        broken = {row.layer for row in self.batches if row.n_unique <= 1 < row.n}
        return sorted(layer for layer in broken if layer >= first)


def write_model_tables(
    folder: Path, model: MeasuredModel, series: Iterable[MeasuredSeries], tables: Mapping[str, Path]
) -> None:
    """Gather the measurements of the checkpoints of a model.

    Parameters
    ----------
    folder : Path
        The folder of the measurements, with ``{revision}/{family}/layer_{layer}.csv``.
    model : MeasuredModel
    series : iterable of MeasuredSeries
        In the order of the tables.
    tables : mapping of str to Path
        The files of ``measurements``, ``estimates``, ``changes`` and ``jackknife``.

    Raises
    ------
    InputError
        If a table has other columns.
    """
    writers = {
        "measurements": (MEASUREMENT_COLUMNS, list_measurement_rows),
        "estimates": (ESTIMATE_COLUMNS, list_estimate_rows),
        "changes": (CHANGE_COLUMNS, list_change_rows),
        "jackknife": (JACKKNIFE_COLUMNS, list_jackknife_rows),
    }

    @cache
    def read_family(revision: str, family: str) -> list[TidyRow]:
        layers = range(find_first_layer(family), model.layers + 1)
        paths = [name_layer_table(folder / revision, family, layer) for layer in layers]
        return [row for path in paths for row in read_tidy(path)]

    values_by_series: list[tuple[MeasuredSeries, list[CheckpointValues]]] = []
    for measure_series in series:
        checkpoint_values = []
        for checkpoint in model.checkpoints:
            if checkpoint[0] in measure_series.revisions:
                rows = read_family(checkpoint[0], measure_series.family)
                rows = [row for row in rows if row.estimator == measure_series.estimator]
                checkpoint_values.append(sort_checkpoint_rows(checkpoint, rows, folder))
        values_by_series.append((measure_series, checkpoint_values))
    for name, path in tables.items():
        columns, list_rows = writers[name]
        table = (
            row
            for measure_series, series_values in values_by_series
            for row in list_rows(model, measure_series, series_values)
        )
        write_table(path, columns, table)


def sort_checkpoint_rows(
    checkpoint: MeasuredCheckpoint, rows: Sequence[TidyRow], folder: Path
) -> CheckpointValues:
    """Sort the rows of one measure; warn if it has no value although the vectors are distinct."""
    batches = [row for row in rows if row.batch is not None]
    # A value may be undefined because hidden states hold NaN or few vectors are distinct.
    distinct = any(2 * row.n_unique > row.n for row in batches)
    if distinct and all(math.isnan(row.value) for row in batches):
        logger.warning(
            "%s has no value of `%s`, although its vectors are distinct: all neighbours may be equally far, or blocks "
            "may change the width. Correct the measure if it is your own",
            folder / checkpoint[0],
            rows[0].estimator,
        )
    layers = {
        row.layer: row._replace(jackknife_values=UNDEFINED) if math.isnan(row.value) else row
        for row in rows
        if row.batch is None
    }
    return CheckpointValues(checkpoint, batches, layers)


def list_measurement_rows(
    model: MeasuredModel, series: MeasuredSeries, values: Sequence[CheckpointValues]
) -> Iterator[list[object]]:
    """List the rows of ``measurements.csv``, one per layer and batch."""
    for checkpoint, batches, _ in values:
        identity = [model.name, model.role, *checkpoint]
        for row in batches:
            place = [row.layer, row.layer / model.layers, series.estimator]
            yield [*identity, *place, row.batch, row.n, row.n_unique, row.value]


def list_estimate_rows(
    model: MeasuredModel, series: MeasuredSeries, values: Sequence[CheckpointValues]
) -> Iterator[list[object]]:
    """List the rows of ``estimates.csv``: for each checkpoint its layers, then their average, whose layer is empty."""
    for checkpoint_values in values:
        checkpoint, batches, layers = checkpoint_values
        identity = [model.name, model.role, *checkpoint]
        if not series.conditions.has_interval:
            layers = {
                layer: row._replace(jackknife_values=UNDEFINED) for layer, row in layers.items()
            }
        for layer, row in layers.items():
            place = [layer, layer / model.layers, series.estimator, row.selection]
            yield [*identity, *place, *_list_estimate_cells(row, batches, [layer], series, model)]
        mean, averaged_layers = average_layers(
            checkpoint_values._replace(layers=layers), model.first
        )
        place = [None, None, series.estimator, mean.selection]
        yield [
            *identity,
            *place,
            *_list_estimate_cells(mean, batches, averaged_layers, series, model),
        ]


def average_layers(values: CheckpointValues, first: int) -> tuple[TidyRow, list[int]]:
    """Average over the defined layers from `first` on; the mean is undefined if a layer is broken.

    ``near_duplicates`` and ``same_token`` are the largest shares of the layers, ``effective_windows`` is their smallest
    number.

    Returns
    -------
    mean : TidyRow
    layers : list of int
        The layers of the average.
    """
    averaged_layers = [] if values.list_broken_layers(first) else values.list_defined_layers(first)
    candidates = [layer for layer in values.layers if layer >= first] or values.layers
    row = values.layers[min(candidates)]
    if not averaged_layers:
        return row._replace(value=math.nan, jackknife_values=UNDEFINED), averaged_layers
    layers = [values.layers[layer] for layer in averaged_layers]
    mean = row._replace(
        value=_mean([row.value for row in layers]),
        n=shorten_number(_mean([row.n for row in layers])),
        n_unique=shorten_number(_mean([row.n_unique for row in layers])),
        near_duplicates=max(row.near_duplicates for row in layers),
        same_token=max(row.same_token for row in layers),
        effective_windows=min(row.effective_windows for row in layers),
        jackknife_values=tuple(np.mean([row.jackknife_values for row in layers], axis=0)),
    )
    return mean, averaged_layers


def list_change_rows(
    model: MeasuredModel, series: MeasuredSeries, values: Sequence[CheckpointValues]
) -> Iterator[list[object]]:
    """List the rows of ``changes.csv``: from each checkpoint to the next, and from the first to the last.

    Each pair has its layers, then an average with an empty layer, over the layers that are defined at both
    checkpoints. The average is undefined if a layer is broken at either checkpoint.
    """
    pairs = list(pairwise(values))
    if len(values) > 2:
        pairs.append((values[0], values[-1]))
    for earlier, later in pairs:
        changes = {
            layer: (b.value - a.value, np.subtract(b.jackknife_values, a.jackknife_values))
            for (layer, a), b in zip(earlier.layers.items(), later.layers.values(), strict=True)
        }
        is_broken = earlier.list_broken_layers(model.first) or later.list_broken_layers(model.first)
        averaged_changes = [
            change
            for layer, change in changes.items()
            if layer >= model.first and not is_broken and not math.isnan(change[0])
        ]
        differences, jackknife_values = zip(
            *averaged_changes or [(math.nan, UNDEFINED)], strict=True
        )
        mean = (_mean(differences), np.mean(jackknife_values, axis=0))
        selection = next(iter(later.layers.values())).selection
        for layer, (difference, jackknife) in [*changes.items(), (None, mean)]:
            if not series.conditions.has_interval:
                jackknife = UNDEFINED
            yield [
                model.name,
                series.estimator,
                selection,
                layer,
                earlier.checkpoint[0],
                later.checkpoint[0],
                difference,
                *_list_interval_cells(difference, jackknife),
                _list_interval_cells(0.0, jackknife)[2],
            ]


def list_jackknife_rows(
    model: MeasuredModel, series: MeasuredSeries, values: Sequence[CheckpointValues]
) -> Iterator[list[object]]:
    """List the rows of ``jackknife.csv``, one per layer."""
    for checkpoint_values in values:
        for row in checkpoint_values.layers.values():
            yield [model.name, model.role, *checkpoint_values.checkpoint, *row.cells]


def _list_estimate_cells(
    row: TidyRow,
    batches: Sequence[TidyRow],
    layers: Sequence[int],
    series: MeasuredSeries,
    model: MeasuredModel,
) -> list[object]:
    """List the cells from column ``value`` on, for the value of a layer or the average over `layers`."""
    values_by_batch: dict[int | None, list[float]] = {}
    for batch in batches:
        if batch.layer in layers:
            values_by_batch.setdefault(batch.batch, []).append(batch.value)
    means = [_mean(values) for values in values_by_batch.values()]
    error, low, high = _list_interval_cells(row.value, row.jackknife_values)
    reasons = find_reasons(
        series.conditions,
        row.value,
        low,
        high,
        near_duplicates=row.near_duplicates,
        same_token=row.same_token,
        width=model.width,
    )
    return [
        row.value,
        error,
        low,
        high,
        float(np.std(means, ddof=1)) if len(means) > 1 else math.nan,
        row.n,
        row.n_unique,
        row.near_duplicates,
        row.windows,
        len(layers),
        row.same_token,
        row.effective_windows,
        "yes" if reasons else "no",
        format_reasons(reasons),
    ]


def _list_interval_cells(value: float, jackknife_values: Sequence[float]) -> list[float]:
    """List the cells of the columns ``standard_error``, ``low`` and ``high``."""
    values = np.asarray(jackknife_values)
    low, high = interval(np.array(value), values)
    return [float(standard_error(values)), float(low), float(high)]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
