"""The columns of all tables, and the tidy one of a layer: a row per measure and batch, and one of the layer."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from shape_of_learning.files import read_rows, write_table

GROUPS = 16  # of windows, each of which is left out in turn
# With fewer effective windows than groups, or than half of the windows, intervals of second moments are withheld.
# Ours: layers of MiniLM have 36 or more of 128. Massive tokens in 10 % of simulated windows make 5 to 22, and
# intervals of participation ratios held the truth in 83 to 87 % of the samples; in 20 %, 18 to 32, and in 93 %.
FEWEST_WINDOWS = GROUPS
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
        Of a layer: share of the vectors with a near-duplicate, :meth:`.NeighbourLists.near_duplicate_share`, in
        the mean over batches. NaN for measures that are not of neighbours.
    same_token : float
        Likewise the share of the vectors whose nearest neighbour is of the same entry of the vocabulary.
    windows : int or None
        Of a layer: how many windows have vectors in the batches.
    value : float
        NaN where it is undefined, of a layer if it is so in any batch.
    without : tuple of float
        Of a layer: values without each group of windows, means over the batches, as far as vectors are left.
        NaN where undefined, and all of them where there are not windows of every group, or few decide.
    effective_windows : float
        Of a layer: how many windows hold the largest variance, :func:`.effective_windows`, of a measure that
        few of them can decide; NaN of others.
    """

    estimator: str
    selection: str
    layer: int
    batch: int | None
    n: float
    n_unique: float
    near_duplicates: float
    same_token: float
    windows: int | None
    value: float
    without: tuple[float, ...] = UNDEFINED
    effective_windows: float = math.nan

    @property
    def cells(self) -> tuple[object, ...]:
        """As tables write it: each left-out value has a column."""
        return *self[:-3], self.effective_windows, self.value, *self.without


_CHECKPOINT = ("model", "role", "revision", "step", "tokens")
# Of one layer and family of measures: a row per batch, and one of the layer, whose `batch` is empty.
TIDY_COLUMNS = (
    *(*TidyRow._fields[:-3], "effective_windows", "value"),
    *(f"without_{group}" for group in range(GROUPS)),
)
# Of a model, and of all.
MEASUREMENT_COLUMNS = (
    *_CHECKPOINT,
    *("layer", "depth", "estimator", "batch", "n", "n_unique", "value"),
)
ESTIMATE_COLUMNS = (
    *(*_CHECKPOINT, "layer", "depth", "estimator", "selection", "value", "standard_error"),
    *("low", "high", "batch_sd", "n", "n_unique", "near_duplicates", "windows", "layers"),
    *("same_token", "effective_windows", "suspect", "reason"),
)
CHANGE_COLUMNS = (
    *("model", "estimator", "selection", "layer", "from_revision", "to_revision"),
    *("difference", "standard_error", "low", "high", "smallest_visible"),
)
# Of a model: what intervals of whatever is made of its values come from.
LEFT_OUT_COLUMNS = (*_CHECKPOINT, *TIDY_COLUMNS)
# Of null models beside a model.
CONTROL_COLUMNS = (*_CHECKPOINT, "control", *TIDY_COLUMNS)
# Of the matrices of a model itself: of one checkpoint, and of a model or all.
MATRIX_COLUMNS = ("matrix", "estimator", "n", "d", "value")
POINT_COLUMNS = ("matrix", "centered", "entry", "x", "y")
# Of each hidden state: what holds its variance, and which tokens are massive.
MASSIVE_COLUMNS = (
    *("layer", "largest_token_share", "largest_coordinate", "largest_coordinate_share"),
    *("norm_ratio", "massive_share", "massive", "n", "positions", "tokens_found"),
)
MASSIVE_TABLE_COLUMNS = (*_CHECKPOINT, *MASSIVE_COLUMNS)
WEIGHT_COLUMNS = (*_CHECKPOINT, *MATRIX_COLUMNS)
WEIGHT_POINT_COLUMNS = (*_CHECKPOINT, *POINT_COLUMNS)
CLAIM_COLUMNS = (
    *("claim", "sentence", "where", "statistic", "estimate", "low", "high", "smallest_visible"),
    *("verdict", "summary", "because", "models", "revisions", "n", "selections"),
    *("p_supported", "p_contradicted", "to_contradict", "besides"),
)
AVERAGED_LAYERS = {"block_outputs": 1, "all_layers": 0}  # the first layer that counts
FINAL_NORM = "final_norm"  # of a model's own matrices the one that holds no embeddings


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
    estimator, selection, layer, batch, n, n_unique, near, same, windows, *numbers = cells
    effective, value, *without = [float(cell or "nan") for cell in numbers]
    return TidyRow(
        *(estimator, selection, int(layer), int(batch) if batch else None),
        whole(float(n)),
        whole(float(n_unique)),
        float(near or "nan"),
        float(same or "nan"),
        int(windows) if windows else None,
        value,
        tuple(without),
        effective,
    )


def whole(number: float) -> float:
    """The number, as a whole one where it is one."""
    return int(number) if number.is_integer() else number
