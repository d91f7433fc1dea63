"""What is measured of the matrices of a model itself, and the tables that hold it."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.estimators.arrays import NotFiniteError
from shape_of_learning.estimators.weights import principal_coordinates
from shape_of_learning.metrics.measure_entry import ChosenMeasure
from shape_of_learning.metrics.table_columns import FINAL_NORM
from shape_of_learning.random_streams import random_stream
from shape_of_learning.storage.csv_table import read_rows, write_table

# Of one checkpoint; of the tables of a model and of all, after what says which checkpoint it is.
VALUE_COLUMNS = ("matrix", "estimator", "n", "d", "value")
POINT_COLUMNS = ("matrix", "centered", "entry", "x", "y")
CHECKPOINT_COLUMNS = ("model", "role", "revision", "step", "tokens")
TABLES = {"weights": VALUE_COLUMNS, "weight_points": POINT_COLUMNS}
MOST_POINTS = 20_000
DIGITS = 6  # of a point: more than a page shows

Matrix = tuple[str, Any]


@dataclass(frozen=True)
class WeightMeasurement:
    """What is asked of the matrices of one checkpoint.

    Attributes
    ----------
    measures : sequence of ChosenMeasure
        Of weights; none where no figure draws this checkpoint.
    points : bool
        Whether a figure draws its points.
    seed : int
        Of the run.
    """

    measures: Sequence[ChosenMeasure]
    points: bool
    seed: int

    @classmethod
    def from_json(cls, text: str) -> "WeightMeasurement":
        """Read the argument of a script."""
        fields = json.loads(text)
        measures = [ChosenMeasure.from_json(entry) for entry in fields.pop("measures")]
        return cls(measures, **fields)


def write_weight_tables(
    matrices: Sequence[Matrix], measurement: WeightMeasurement, values: Path, points: Path
) -> None:
    """Measure the matrices of one checkpoint and write both tables; what is not asked for has no rows.

    Parameters
    ----------
    matrices : sequence of (str, array)
        As in :func:`weight_values`.
    """
    write_table(values, VALUE_COLUMNS, weight_values(matrices, measurement.measures))
    drawn = weight_points(matrices, measurement.seed) if measurement.points else ()
    write_table(points, POINT_COLUMNS, drawn)


def checkpoint_rows(
    path: Path, columns: tuple[str, ...], checkpoint: Sequence[Any]
) -> Iterator[list[Any]]:
    """Read one of these tables and say in each row which checkpoint it is of, :data:`CHECKPOINT_COLUMNS`."""
    for row in read_rows(path, columns):
        yield [*checkpoint, *row]


def weight_values(
    matrices: Iterable[Matrix], measures: Sequence[ChosenMeasure]
) -> Iterator[tuple[str, str, int, int, float]]:
    """Measure the matrices of one checkpoint.

    Parameters
    ----------
    matrices : iterable of (str, array)
        ``input``, ``output`` or ``tied``, embeddings of shape (V, d), read by rows; and ``final_norm``, gain
        and, if there is one, bias, (1, d) or (2, d).
    measures : sequence of ChosenMeasure
        Of weights.

    Yields
    ------
    tuple
        Columns :data:`VALUE_COLUMNS`. `n` is the number of vectors: 1 for the final norm. The value is NaN
        where it is undefined, or the matrix holds NaN or infinity.
    """
    for name, matrix in matrices:
        n, d = matrix.shape
        for measure in measures:
            if (measure.matrix == FINAL_NORM) != (name == FINAL_NORM):
                continue
            taken = (matrix,)
            if name == FINAL_NORM:
                n, taken = 1, (matrix[0], matrix[1] if len(matrix) == 2 else None)
            try:
                value = measure.load()(*taken)
            except NotFiniteError:
                value = math.nan
            yield name, measure.name, n, d, value


def weight_points(
    matrices: Iterable[Matrix], seed: int
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
        Columns :data:`POINT_COLUMNS`, ``centered`` being ``yes`` or ``no``. None of a matrix that holds NaN
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
