"""What is measured of the matrices of a model itself."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.estimators.arrays import NotFiniteError
from shape_of_learning.estimators.weights import principal_coordinates
from shape_of_learning.files import write_table
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.table_columns import FINAL_NORM, MATRIX_COLUMNS, POINT_COLUMNS
from shape_of_learning.random_streams import random_stream

MOST_POINTS = 20_000
DIGITS = 6  # of a point: more than a page shows


def write_matrix_tables(
    matrices: Mapping[str, Any],
    output: Mapping[str, str],
    measures: Sequence[Mapping[str, Any]],
    seed: int,
    *,
    points: bool,
) -> None:
    """Measure the matrices of one checkpoint and write two tables; what is not asked for has no rows.

    Parameters
    ----------
    matrices : mapping of str to array
        As :func:`weight_values` takes its items.
    output : mapping of str to str
        Paths of ``weights`` and ``weight_points``; nothing is done if they are absent.
    measures : sequence of mapping
        Fields of :class:`.Measure`.
    seed : int
        Of the run.
    points : bool
        Whether a figure draws the points of this checkpoint.
    """
    if "weights" not in output:
        return
    chosen = [Measure(**each) for each in measures]
    write_table(Path(output["weights"]), MATRIX_COLUMNS, weight_values(matrices.items(), chosen))
    drawn = weight_points(matrices.items(), seed) if points else ()
    write_table(Path(output["weight_points"]), POINT_COLUMNS, drawn)


def weight_values(
    matrices: Iterable[tuple[str, Any]], measures: Sequence[Measure]
) -> Iterator[tuple[str, str, int, int, float]]:
    """Measure the matrices of one checkpoint.

    Parameters
    ----------
    matrices : iterable of (str, array)
        ``input``, ``output`` or ``tied``, embeddings of shape (V, d), read by rows; and ``final_norm``, gain
        and, if there is one, bias, (1, d) or (2, d).
    measures : sequence of Measure
        Of weights.

    Yields
    ------
    tuple
        Columns ``MATRIX_COLUMNS``. `n` is the number of vectors: 1 for the final norm. The value is NaN
        where it is undefined, or the matrix holds NaN or infinity.
    """
    for name, matrix in matrices:
        n, d = matrix.shape
        taken = (matrix,)
        if name == FINAL_NORM:
            n, taken = 1, (matrix[0], matrix[1] if len(matrix) == 2 else None)
        for measure in measures:
            if (measure.matrix == FINAL_NORM) != (name == FINAL_NORM):
                continue
            try:
                value = measure.load()(*taken)
            except NotFiniteError:
                value = math.nan
            yield name, measure.name, n, d, value


def weight_points(
    matrices: Iterable[tuple[str, Any]], seed: int
) -> Iterator[tuple[str, str, int, float, float]]:
    """Find where entries of the vocabulary lie in the plane in which their embeddings are widest.

    Parameters
    ----------
    matrices : iterable of (str, array)
        As in :func:`weight_values`; the final norm has no points.
    seed : int
        Of the run. It chooses which entries are kept, the same ones at each checkpoint and in each matrix of
        a vocabulary, where there are more than :data:`MOST_POINTS`.

    Yields
    ------
    tuple
        Columns ``POINT_COLUMNS``, ``centered`` being ``yes`` or ``no``. None of a matrix that holds NaN
        or infinity.
    """
    for name, matrix in matrices:
        if name == FINAL_NORM:
            continue
        for center in (False, True):
            try:
                points = principal_coordinates(matrix, center)
            except NotFiniteError:
                continue
            kept = np.arange(len(points))
            if len(points) > MOST_POINTS:
                stream = random_stream(seed, "points of the plane")
                kept = np.sort(stream.choice(len(points), MOST_POINTS, replace=False))
            for entry, (x, y) in zip(kept.tolist(), points[kept].tolist(), strict=True):
                rounded = (float(f"{each:.{DIGITS}g}") for each in (x, y))
                yield name, "yes" if center else "no", entry, *rounded
