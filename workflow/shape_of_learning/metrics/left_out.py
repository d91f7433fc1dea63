"""Values of a measure on a batch: of all its vectors, and without each group of windows."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from shape_of_learning.metrics.batches import Batch, Spectra
from shape_of_learning.metrics.neighbour_lists import NeighbourLists
from shape_of_learning.metrics.registry import ChosenMeasure
from shape_of_learning.metrics.resampling import GROUPS


def value_of(batch: Batch, measure: ChosenMeasure) -> float:
    """Measure a batch; NaN if it holds NaN or infinity."""
    content = batch.content
    if content is None:
        return math.nan
    function = measure.load()
    if isinstance(content, NeighbourLists):
        return function(content.nearest(measure.neighbours, measure.collapse))
    return function(content.eigenvalues if isinstance(content, Spectra) else content)


def values_without_groups(
    batch: Batch, measure: ChosenMeasure, groups: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Measure a batch without each group of windows that it has vectors of.

    Parameters
    ----------
    batch : Batch
        What the measure is taken of; not of a broken checkpoint.
    measure : ChosenMeasure
        Which.
    groups : ndarray of int64, shape (windows,)
        From :func:`.window_groups`.

    Returns
    -------
    rows, anew : ndarray of float64, shape (16,)
        Two kinds for measures of neighbours, as :func:`.left_out_values` describes them; for others the same.
        NaN where undefined, and where the batch has no vectors of that group.
    """
    group_of = groups[batch.windows]
    present = [group for group in range(GROUPS) if (group_of == group).any()]
    rows, anew = np.full(GROUPS, np.nan), np.full(GROUPS, np.nan)
    if isinstance(batch.content, NeighbourLists):
        function, lists = measure.load(), batch.content
        wanted = (measure.neighbours, measure.collapse)
        for group in present:
            left = group_of != group
            rows[group] = _defined(function, lists.nearest_as_found(left, *wanted))
            anew[group] = _defined(function, lists.nearest_anew(left, *wanted))
        return rows, anew
    rows[present] = list(_values(batch.content, group_of, present, measure))
    return rows, rows


def _values(
    content: Any, group_of: np.ndarray, groups: list[int], measure: ChosenMeasure
) -> Iterator[float]:
    """Values of vectors or spectra without each of some groups."""
    function = measure.load()
    if isinstance(content, Spectra):
        for group in groups:
            eigenvalues = content.without[group]
            yield _defined(function, eigenvalues[~np.isnan(eigenvalues)])
        return
    for group in groups:
        rows = np.flatnonzero(group_of != group)
        try:
            yield function(content[rows]) if len(rows) > 1 else math.nan
        except ValueError:  # which says that these are too few
            yield math.nan


def _defined(function: Callable[[Any], float], taken: np.ndarray) -> float:
    return function(taken) if len(taken) else math.nan
