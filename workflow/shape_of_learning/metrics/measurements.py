"""Values of measures, the tables that hold them, and their columns."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from shape_of_learning.metrics.batches import Batch
from shape_of_learning.metrics.registry import ChosenMeasure
from shape_of_learning.storage.csv_table import write_table


@dataclass(frozen=True)
class BatchValue:
    """One value of one batch.

    Attributes
    ----------
    batch : int
        Number of the batch within its layer.
    n, n_unique : int
        Vectors of the batch, and distinct ones among them.
    value : float
        NaN where it is undefined, which the table shows as an empty cell.
    """

    batch: int
    n: int
    n_unique: int
    value: float


# Of one checkpoint and estimator, and of measurements.csv.
LAYER_COLUMNS = ("layer", *(field.name for field in fields(BatchValue)))
COLUMNS = (
    *("model", "role", "revision", "step", "tokens", "layer", "depth", "estimator"),
    *LAYER_COLUMNS[1:],
)


def relative_depth(layer: int, layers: int) -> float:
    """Layer over number of layers: 0 for the embedding output, 1 for the last hidden state."""
    return layer / layers


def batch_values(batches: Iterable[Batch], measure: ChosenMeasure) -> list[BatchValue]:
    """Measure each batch of a layer; `batches` hold what the measure is taken of.

    Returns
    -------
    list of BatchValue
        NaN where a batch holds NaN or infinity.

    Raises
    ------
    ValueError
        If the measure refuses what it is given, such as distances that are none.
    """
    function = measure.load()
    return [
        BatchValue(
            number,
            batch.n,
            batch.n_unique,
            math.nan if batch.content is None else function(batch.content),
        )
        for number, batch in enumerate(batches)
    ]


def write_measurements(path: Path, layers: Mapping[int, Iterable[BatchValue]]) -> None:
    """Write the values of one checkpoint and estimator, all layers."""
    rows = ((layer, *astuple(value)) for layer, values in layers.items() for value in values)
    write_table(path, LAYER_COLUMNS, rows)
