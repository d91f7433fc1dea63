"""Define the columns of all tables, and read and write the tidy table of a layer."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shape_of_learning.files import read_rows, write_table

GROUPS = 16  # groups of windows, for the jackknife
# Measures of second moments have no interval if there are fewer effective windows than groups, and fewer than half of
# the windows.
# This bound is ours. Layers of MiniLM have at least 36 effective windows of 128. If 10 % of simulated windows have
# massive tokens, there are 5 to 22, and intervals of participation ratios hold the truth in 83 to 87 % of the samples.
# If 20 % have them, there are 18 to 32, and intervals hold the truth in 93 %.
FEWEST_WINDOWS = GROUPS
VALUE_COLUMNS = ("value", *(f"without_{group}" for group in range(GROUPS)))
UNDEFINED = (math.nan,) * GROUPS  # jackknife values without an interval


def have_few_windows(effective_windows: Any, windows: Any) -> Any:
    """Return whether too few windows decide a measure of second moments, for numbers or arrays; False if unknown."""
    return (effective_windows < FEWEST_WINDOWS) & (effective_windows < windows / 2)


class TidyRow(NamedTuple):
    """A row of the tidy table: one measure of one batch, or of a layer.

    Attributes
    ----------
    estimator, selection : str
        Names of the measure and of the selection of rows.
    layer : int
    batch : int or None
        Number of the batch in its layer; None for the layer, the mean over its batches.
    n, n_unique : float
        Number of vectors and of distinct vectors.
    near_duplicates : float
        For a layer: share of the vectors with a near-duplicate, :meth:`.NeighbourLists.near_duplicate_share`. NaN for
        measures without neighbours.
    same_token : float
        For a layer: share of the vectors whose nearest neighbour is of the same token type.
    windows : int or None
        For a layer: number of windows with vectors in the batches.
    value : float
        NaN if undefined; the value of a layer is undefined if the value of a batch is.
    jackknife_values : tuple of float
        For a layer: values without each group of windows, means over the batches that have vectors of other groups. NaN
        if undefined, and all NaN if a group has no window or few windows decide the value.
    effective_windows : float
        For a layer: number of windows that hold the largest variance, :func:`.effective_windows`; NaN if a few windows
        cannot decide the measure.
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
    jackknife_values: tuple[float, ...] = UNDEFINED
    effective_windows: float = math.nan

    @property
    def cells(self) -> tuple[object, ...]:
        """The row of the table, with a column per jackknife value."""
        return *self[:-3], self.effective_windows, self.value, *self.jackknife_values


CHECKPOINT_COLUMNS = ("model", "role", "revision", "step", "tokens")
# One layer and family of measures: a row per batch, and one for the layer, whose `batch` is empty.
TIDY_COLUMNS = (*TidyRow._fields[:-3], "effective_windows", *VALUE_COLUMNS)
MEASUREMENT_COLUMNS = (
    *CHECKPOINT_COLUMNS,
    "layer",
    "depth",
    "estimator",
    "batch",
    "n",
    "n_unique",
    "value",
)
ESTIMATE_COLUMNS = (
    *CHECKPOINT_COLUMNS,
    "layer",
    "depth",
    "estimator",
    "selection",
    "value",
    "standard_error",
    "low",
    "high",
    "batch_sd",
    "n",
    "n_unique",
    "near_duplicates",
    "windows",
    "layers",
    "same_token",
    "effective_windows",
    "suspect",
    "reason",
)
TEXT_COLUMNS = ("model", "role", "revision", "estimator", "selection", "suspect", "reason")
RECORD_COLUMN = "record"  # the last one of a file of the command `measure`
CHANGE_COLUMNS = (
    "model",
    "estimator",
    "selection",
    "layer",
    "from_revision",
    "to_revision",
    "difference",
    "standard_error",
    "low",
    "high",
    "smallest_visible",
)
JACKKNIFE_COLUMNS = (*CHECKPOINT_COLUMNS, *TIDY_COLUMNS)  # jackknife values
CONTROL_COLUMNS = (*CHECKPOINT_COLUMNS, "control", *TIDY_COLUMNS)  # null models
MATRIX_COLUMNS = ("matrix", "estimator", "n", "d", "value")
POINT_COLUMNS = ("matrix", "centered", "entry", "x", "y")
MASSIVE_COLUMNS = (
    "layer",
    "largest_token_share",
    "largest_coordinate",
    "largest_coordinate_share",
    "norm_ratio",
    "massive_share",
    "massive",
    "massive_in_any_layer",
    "n",
    "positions",
    "tokens_found",
)
MASSIVE_TABLE_COLUMNS = (*CHECKPOINT_COLUMNS, *MASSIVE_COLUMNS)
WEIGHT_COLUMNS = (*CHECKPOINT_COLUMNS, *MATRIX_COLUMNS)
WEIGHT_POINT_COLUMNS = (*CHECKPOINT_COLUMNS, *POINT_COLUMNS)
CLAIM_COLUMNS = (
    "claim",
    "sentence",
    "where",
    "statistic",
    "estimate",
    "low",
    "high",
    "smallest_visible",
    "verdict",
    "summary",
    "because",
    "models",
    "revisions",
    "n",
    "selections",
    "p_supported",
    "p_contradicted",
    "to_contradict",
    "besides",
    "criteria",
)
AVERAGED_LAYERS = {"block_outputs": 1, "all_layers": 0}  # the first layer of an average
FINAL_NORM = "final_norm"  # the only matrix of a model that holds no embeddings


def name_layer_table(folder: Path, family: str, layer: int) -> Path:
    """Return the path of a layer's tidy table in the folder of a checkpoint's measurements."""
    return folder / family / f"layer_{layer}.csv"


def write_tidy(path: Path, rows: Iterable[TidyRow]) -> None:
    """Write a tidy table; undefined values are empty cells."""
    write_table(path, TIDY_COLUMNS, (row.cells for row in rows))


def read_tidy(path: Path) -> list[TidyRow]:
    """Read a tidy table."""
    return [_parse_row(cells) for cells in read_rows(path, TIDY_COLUMNS)]


def _parse_row(cells: Sequence[str]) -> TidyRow:
    estimator, selection, layer, batch, n, n_unique, near, same, windows, *numbers = cells
    effective, value, *jackknife_values = [float(cell or "nan") for cell in numbers]
    return TidyRow(
        estimator,
        selection,
        int(layer),
        int(batch) if batch else None,
        shorten_number(float(n)),
        shorten_number(float(n_unique)),
        float(near or "nan"),
        float(same or "nan"),
        int(windows) if windows else None,
        value,
        tuple(jackknife_values),
        effective,
    )


def shorten_number(number: float) -> float:
    """Return a whole number as an int, so that tables show 600 and not 600.0."""
    return int(number) if number.is_integer() else number
