"""The tidy table ``measurements.csv``, and the small files that it is gathered from."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from shape_of_learning.storage.csv_table import write_table


@dataclass(frozen=True)
class BatchValue:
    """One estimate on one batch.

    Attributes
    ----------
    batch : int
        Number of the batch within its layer.
    n, n_unique : int
        Vectors of the batch, and distinct ones among them.
    value : float
        The estimate; NaN where it is undefined, which the table shows as an empty cell.
    """

    batch: int
    n: int
    n_unique: int
    value: float


BATCH_COLUMNS = tuple(field.name for field in fields(BatchValue))
COLUMNS = (
    *("model", "role", "revision", "step", "tokens", "layer", "depth", "estimator"),
    *BATCH_COLUMNS,
)


def write_batch_values(path: Path, values: Iterable[BatchValue]) -> None:
    """Write the estimates of one layer."""
    write_table(path, BATCH_COLUMNS, map(astuple, values))
