"""The tidy table of a layer: a row per measure and batch, and one of the layer with its left-out values."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from shape_of_learning.files import read_rows, write_table
from shape_of_learning.metrics.table_columns import GROUPS, TIDY_COLUMNS

UNDEFINED = (math.nan,) * GROUPS  # left-out values from which no interval follows


class TidyRow(NamedTuple):
    """A row of the tidy table: what one measure says of one batch, or of a layer.

    Attributes
    ----------
    estimator, selection : str
        Names of the measure and of the selection of rows.
    layer : int
    batch : int or None
        Number of the batch within its layer; None for the mean over batches.
    n, n_unique : float
        Vectors of the batch, and distinct ones among them; of a layer in the mean over batches.
    near_duplicates : float
        Of a layer: share of the vectors with a near-duplicate, :meth:`.NeighbourLists.near_duplicates`, in
        the mean over batches. NaN for measures that are not of neighbours.
    windows : int or None
        Of a layer: how many windows have vectors in the batches.
    value : float
        NaN where it is undefined, of a layer if it is so in any batch.
    without : tuple of float
        Of a layer: values without each group of windows, means over the batches, as far as vectors are left.
        NaN where undefined, and all of them where there are not windows of every group.
    """

    estimator: str
    selection: str
    layer: int
    batch: int | None
    n: float
    n_unique: float
    near_duplicates: float
    windows: int | None
    value: float
    without: tuple[float, ...] = UNDEFINED

    @property
    def cells(self) -> tuple[object, ...]:
        """As tables write it: each left-out value has a column."""
        return *self[:-1], *self.without


def layer_table(folder: Path, family: str, layer: int) -> Path:
    """Where one family of measures of one layer is, in the folder of a checkpoint's measurements."""
    return folder / family / f"layer_{layer}.csv"


def write_tidy(path: Path, rows: Iterable[TidyRow]) -> None:
    """Write the tidy table; what is undefined is an empty cell."""
    write_table(path, TIDY_COLUMNS, (row.cells for row in rows))


def read_tidy(path: Path) -> list[TidyRow]:
    """Read what :func:`write_tidy` wrote."""
    return [_tidy_row(row) for row in read_rows(path, TIDY_COLUMNS)]


def _tidy_row(cells: Sequence[str]) -> TidyRow:
    estimator, selection, layer, batch, n, n_unique, near, windows, *numbers = cells
    value, *without = [float(cell or "nan") for cell in numbers]
    return TidyRow(
        *(estimator, selection, int(layer), int(batch) if batch else None),
        *(whole(float(n)), whole(float(n_unique))),
        *(float(near or "nan"), int(windows) if windows else None),
        *(value, tuple(without)),
    )


def whole(number: float) -> float:
    """The number, as a whole one where it is one."""
    return int(number) if number.is_integer() else number
