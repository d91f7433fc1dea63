"""The tidy table of measurements, checked at the door."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from shape_of_learning.errors import InputError
from shape_of_learning.figures.table_files import named, numbers, read_text
from shape_of_learning.metrics.measurements import COLUMNS
from shape_of_learning.metrics.registry import ESTIMATORS

logger = logging.getLogger(__name__)

INTEGERS = ("step", "tokens", "layer", "batch", "n", "n_unique")
REALS = ("depth", "value")
TEXT = tuple(name for name in COLUMNS if name not in (*INTEGERS, *REALS))
MAY_BE_EMPTY = frozenset({"step", "tokens", "n_unique", "value"})

CHECKPOINT = ["model", "role", "revision", "step", "tokens"]


@dataclass(frozen=True)
class Measurements:
    """Rows of the tidy table and the files that they came from.

    Parameters
    ----------
    rows : pandas.DataFrame
        Columns :data:`TEXT`, :data:`INTEGERS` (Int64) and :data:`REALS` (float64), one row per
        batch; an undefined value is NaN.
    source : str
        The files, as messages name them.
    """

    rows: pd.DataFrame
    source: str


def read_measurements(paths: Sequence[Path]) -> Measurements:
    """Read and concatenate tidy tables.

    Parameters
    ----------
    paths : sequence of Path
        CSV files with the columns :data:`shape_of_learning.metrics.measurements.COLUMNS`; others are
        ignored. An empty ``value`` is an undefined one.

    Returns
    -------
    Measurements

    Raises
    ------
    InputError
        If a file is missing, lacks a column, holds something else than numbers where numbers
        belong, or if there is no row at all.
    """
    rows = pd.concat([_read_one(Path(path)) for path in paths], ignore_index=True)
    source = named(paths)
    if rows.empty:
        raise InputError(f"{source} holds no measurement: run the metrics first")
    return Measurements(rows, source)


def select(
    measurements: Measurements, models: Sequence[str], estimators: Sequence[str]
) -> Measurements:
    """Keep what one figure draws.

    Parameters
    ----------
    measurements : Measurements
    models, estimators : sequence of str
        Names as in the table.

    Returns
    -------
    Measurements

    Raises
    ------
    InputError
        If a model or one of its estimators is not there, if a batch is there twice, or if
        estimators whose value depends on the batch size were measured on batches of several sizes.
    """
    rows, source = measurements.rows, measurements.source
    for model in models:
        present = set(rows.loc[rows["model"] == model, "estimator"])
        if not present:
            known = ", ".join(sorted(rows["model"].unique()))
            raise InputError(
                f"{source} has no model {model!r}, only {known}: correct the figure's models"
            )
        if missing := [name for name in estimators if name not in present]:
            raise InputError(
                f"{source} has no {' and no '.join(missing)} of {model}: "
                "add what is missing to key `measurement.estimators` and measure again"
            )
    kept = rows[rows["model"].isin(models) & rows["estimator"].isin(estimators)]
    chosen = Measurements(kept.reset_index(drop=True), source)
    _refuse_repeated_batches(chosen)
    _refuse_mixed_batch_sizes(chosen)
    if undefined := int(chosen.rows["value"].isna().sum()):
        logger.info("%d of %d values are undefined", undefined, len(chosen.rows))
    return chosen


def depends_on_batch_size(estimator: str) -> bool:
    """Whether values from batches of different sizes must not meet; true where nothing is known."""
    return estimator not in ESTIMATORS or ESTIMATORS[estimator].needs_neighbours


def last_checkpoints(measurements: Measurements) -> Measurements:
    """Keep each model's checkpoint with the largest step, or its only one.

    Raises
    ------
    InputError
        If a model has several revisions and not all of them say their step.
    """
    kept = []
    for model, rows in measurements.rows.groupby("model", sort=False):
        if rows["revision"].nunique() > 1:
            if rows["step"].isna().any():
                raise InputError(
                    f"{measurements.source} has several revisions of {model} and not every one "
                    "has a step, so that none is the last: give each its step or pass one only"
                )
            rows = rows[rows["step"] == rows["step"].max()]
            logger.info("%s: the last checkpoint, %s", model, rows["revision"].iloc[0])
        kept.append(rows)
    return Measurements(pd.concat(kept, ignore_index=True), measurements.source)


def require_progress(measurements: Measurements, progress: str) -> None:
    """Raise InputError unless every row says its `progress`, which is ``step`` or ``tokens``."""
    rows = measurements.rows
    without = rows.loc[rows[progress].isna(), "model"]
    if not without.empty:
        raise InputError(
            f"{measurements.source} gives no {progress} for checkpoints of {without.iloc[0]}: "
            "draw only models whose configuration says it"
        )


def _read_one(path: Path) -> pd.DataFrame:
    text = read_text(path, COLUMNS, of="measurements", remedy="gather the measurements")
    parsed = {
        name: numbers(
            text[name],
            path,
            whole=name in INTEGERS,
            may_be_empty=name in MAY_BE_EMPTY,
            remedy="measure it again",
        )
        for name in (*INTEGERS, *REALS)
    }
    return pd.DataFrame({name: text[name] for name in TEXT} | parsed)


def _refuse_repeated_batches(measurements: Measurements) -> None:
    rows = measurements.rows
    stepped = rows[rows["step"].notna()]
    for who, table in (("revision", rows), ("step", stepped)):
        repeated = table.duplicated(["model", who, "layer", "estimator", "batch"])
        if repeated.any():
            first = table[repeated].iloc[0]
            raise InputError(
                f"{measurements.source} has batch {first['batch']} of {first['estimator']} twice "
                f"for {first['model']}, {who} {first[who]}, layer {first['layer']}: "
                f"pass every file once and give every {who} of a model once"
            )


def _refuse_mixed_batch_sizes(measurements: Measurements) -> None:
    rows = measurements.rows
    rows = rows[rows["estimator"].map(depends_on_batch_size)]
    sizes = sorted(rows["n"].unique())
    if len(sizes) > 1:
        raise InputError(
            f"{measurements.source} mixes batches of {' and '.join(map(str, sizes))} vectors in "
            f"{', '.join(sorted(rows['estimator'].unique()))}, whose value depends on that size: "
            "measure all models of a figure with the same batch size"
        )
