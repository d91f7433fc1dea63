"""A measure of a batch: of all its vectors, and without each group of windows."""

import math
from typing import Any

import numpy as np

from shape_of_learning.metrics.batches import Batch, Labelled, Spectra
from shape_of_learning.metrics.measure_entry import ChosenMeasure
from shape_of_learning.metrics.neighbour_lists import NeighbourLists
from shape_of_learning.metrics.resampling import GROUPS

Values = tuple[float, np.ndarray, np.ndarray]


def measure_batch(batch: Batch, measure: ChosenMeasure, group_of: np.ndarray) -> Values:
    """Measure a batch with all its vectors, and without each group of windows.

    Parameters
    ----------
    batch : Batch
        What the measure is taken of.
    measure : ChosenMeasure
        Which.
    group_of : ndarray of int64, shape (n,)
        The group of each vector's window, from 0 to 15; -1 where none is left out.

    Returns
    -------
    value : float
        NaN if the batch holds NaN or infinity.
    rows, anew : ndarray of float64, shape (16,)
        Two kinds for measures of neighbours, as :func:`.left_out_values` describes them; for others the same.
        The value itself without a group that the batch has no vectors of; NaN where undefined.
    """
    content = batch.content
    if content is None:
        return math.nan, np.full(GROUPS, np.nan), np.full(GROUPS, np.nan)
    groups = [group for group in range(GROUPS) if (group_of == group).any()]
    if isinstance(content, NeighbourLists):
        value, rows, anew = _of_neighbours(content, measure, group_of, groups)
    else:
        of = _of_spectra if isinstance(content, Spectra) else _of_hidden_states
        value, rows = of(content, measure, group_of, groups)
        anew = rows
    return value, _of_all_groups(value, rows, groups), _of_all_groups(value, anew, groups)


def _of_all_groups(value: float, without: Any, groups: list[int]) -> np.ndarray:
    all_groups = np.full(GROUPS, value)
    all_groups[groups] = without
    return all_groups


def _of_neighbours(
    lists: NeighbourLists, measure: ChosenMeasure, group_of: np.ndarray, groups: list[int]
) -> tuple[float, list[float], list[float]]:
    function, k, collapse = measure.load(), measure.neighbours, measure.collapse
    nearest = lists.nearest(k, collapse)
    value = function(nearest)

    def without(distances: np.ndarray) -> float:
        return function(distances) if len(distances) else math.nan

    left = [group_of != group for group in groups]
    rows = [without(lists.nearest_as_found(some, nearest, collapse)) for some in left]
    anew = [without(found) for found in lists.nearest_anew(left, k, collapse)]
    return value, rows, anew


def _of_spectra(
    spectra: Spectra, measure: ChosenMeasure, group_of: np.ndarray, groups: list[int]
) -> tuple[float, list[float]]:
    function = measure.load()
    without = [row[~np.isnan(row)] for row in spectra.without[groups]]
    return function(spectra.eigenvalues), [
        function(eigenvalues) if len(eigenvalues) else math.nan for eigenvalues in without
    ]


def _of_hidden_states(
    content: Any, measure: ChosenMeasure, group_of: np.ndarray, groups: list[int]
) -> tuple[float, Any]:
    taken = (content.x, content.y) if measure.of == "pair" else (content,)
    if isinstance(content, Labelled):
        taken = content
    leaving_out = measure.load_leaving_out()
    if leaving_out is not None:
        parts = [np.flatnonzero(group_of == group) for group in groups]
        # All measures of a pair share what one of them has found.
        return leaving_out(*((content,) if measure.of == "pair" else taken), parts)
    function = measure.load()
    without = []
    for group in groups:
        rows = np.flatnonzero(group_of != group)
        try:
            without.append(function(*(each[rows] for each in taken)) if len(rows) > 1 else math.nan)
        except ValueError:  # which says that these are too few
            without.append(math.nan)
    return function(*taken), without
