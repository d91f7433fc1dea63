"""The measurements of those checkpoints that the verdicts let a figure show."""

from collections.abc import Sequence

import pandas as pd

from shape_of_learning.errors import InputError
from shape_of_learning.figures.style import DrawnModel
from shape_of_learning.figures.tidy_table import Measurements, select
from shape_of_learning.figures.verdicts import Verdicts

KEY = ["model", "revision", "step"]


def select_shown(
    measurements: Measurements,
    verdicts: Verdicts | None,
    models: Sequence[DrawnModel],
    estimators: Sequence[str],
) -> Measurements:
    """Keep what one figure draws, see :func:`~shape_of_learning.figures.tidy_table.select`.

    Parameters
    ----------
    measurements : Measurements
    verdicts : Verdicts or None
        Checkpoints that they do not show are left out, and so are models of which none is shown.
        None shows every checkpoint.
    models : sequence of DrawnModel
    estimators : sequence of str

    Returns
    -------
    Measurements

    Raises
    ------
    InputError
        If a measured checkpoint has no verdict, if one that is to be shown, filled or hollow, was
        not measured, or if none is shown; else as ``select`` does.
    """
    names = [model.name for model in models]
    if verdicts is None:
        return select(measurements, names, estimators)
    judged = verdicts.rows[verdicts.rows["model"].isin(names)]
    _require_verdicts(measurements, judged, names, verdicts.source)
    visible = judged[judged["shown"] != "no"]
    hidden = set(judged["model"]) - set(visible["model"])
    names = [name for name in names if name not in hidden]
    if not names:
        raise InputError(
            f"{verdicts.source} leaves out every checkpoint of {', '.join(sorted(hidden))}: "
            "there is nothing to draw"
        )
    kept = measurements.rows.merge(visible[KEY], on=KEY)
    chosen = select(Measurements(kept, measurements.source), names, estimators)
    for estimator in estimators:
        _require_measurements(chosen, estimator, visible)
    return chosen


def with_verdicts(table: pd.DataFrame, verdicts: Verdicts | None) -> pd.DataFrame:
    """Add the column ``verdict`` after ``tokens`` and, at the end, ``hollow``.

    Parameters
    ----------
    table : pandas.DataFrame
        With the columns ``model``, ``revision`` and ``tokens``.
    verdicts : Verdicts or None
        If None, the verdicts are empty and nothing is hollow.

    Returns
    -------
    pandas.DataFrame
        ``hollow`` is boolean; it is for drawing and not for the figure's CSV.
    """
    table = table.copy()
    verdict, hollow = "", False
    if verdicts is not None:
        known = verdicts.rows.set_index(["model", "revision"])
        known = known.loc[pd.MultiIndex.from_frame(table[["model", "revision"]])]
        verdict, hollow = known["verdict"].to_numpy(), (known["shown"] == "hollow").to_numpy()
    table.insert(table.columns.get_loc("tokens") + 1, "verdict", verdict)
    table["hollow"] = hollow
    return table


def _require_verdicts(
    measurements: Measurements, judged: pd.DataFrame, names: Sequence[str], source: str
) -> None:
    rows = measurements.rows
    measured = rows.loc[rows["model"].isin(names), KEY].drop_duplicates()
    if (without := _beyond(measured, judged)) is not None:
        raise InputError(
            f"{source} has no verdict on {without}, which {measurements.source} holds: "
            "write the verdicts again"
        )


def _require_measurements(
    measurements: Measurements, estimator: str, visible: pd.DataFrame
) -> None:
    rows = measurements.rows
    if (without := _beyond(visible, rows[rows["estimator"] == estimator])) is not None:
        raise InputError(
            f"{measurements.source} has no {estimator} of {without}, which is to be shown: "
            "gather the measurements again"
        )


def _beyond(checkpoints: pd.DataFrame, others: pd.DataFrame) -> str | None:
    """Name the first of `checkpoints` that is not among the `others`."""
    both = checkpoints[KEY].merge(others[KEY].drop_duplicates(), "left", on=KEY, indicator=True)
    missing = both[both["_merge"] == "left_only"]
    if missing.empty:
        return None
    first = missing.iloc[0]
    return f"{first['model']} {first['revision']} (step {first['step']})"
