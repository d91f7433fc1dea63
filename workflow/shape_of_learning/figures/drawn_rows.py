"""The estimates that a figure draws: its models and measures, the checkpoints that the verdicts show."""

import logging

import pandas as pd

from shape_of_learning.errors import InputError
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.table_reader import Table

logger = logging.getLogger(__name__)

CHECKPOINT = ["model", "revision", "step"]


def drawn_estimates(inputs: FigureInputs) -> Table:
    """Keep what one figure draws.

    Returns
    -------
    Table
        Without checkpoints that the verdicts do not show, and hence without models of which none is shown.

    Raises
    ------
    InputError
        If a measured checkpoint has no verdict, if one that is to be shown, filled or hollow, lacks a
        measure, if none is shown, if a value is there twice, or if measures whose value depends on the size
        of batches were taken of batches of several sizes.
    """
    assert inputs.estimates is not None
    rows, source = inputs.estimates.rows, inputs.estimates.source
    names = [model.name for model in inputs.models]
    of_models = rows[rows["model"].isin(names)]
    shown = of_models[CHECKPOINT].drop_duplicates()
    if inputs.verdicts is not None:
        shown = _shown(shown, names, inputs)
    elif absent := [name for name in names if name not in set(of_models["model"])]:
        raise InputError(f"{source} has no model {absent[0]!r}; gather the estimates again")
    chosen = of_models.merge(shown, on=CHECKPOINT)
    for measure in inputs.measures:
        present = chosen[chosen["estimator"] == measure.name]
        if (without := _beyond(shown, present)) is not None:
            raise InputError(
                f"{source} has no {measure.name} of {without}, which is to be shown; "
                "gather the estimates again"
            )
    chosen = chosen[chosen["estimator"].isin([measure.name for measure in inputs.measures])]
    chosen = Table(chosen.reset_index(drop=True), source)
    _refuse_repeated_values(chosen)
    _refuse_mixed_batch_sizes(chosen, inputs)
    if undefined := int(chosen.rows["value"].isna().sum()):
        logger.info("%d of %d values are undefined", undefined, len(chosen.rows))
    return chosen


def require_steps(estimates: Table) -> None:
    """Raise InputError unless every row says its step."""
    rows = estimates.rows
    without = rows.loc[rows["step"].isna(), "model"]
    if not without.empty:
        raise InputError(
            f"{estimates.source} gives no step for checkpoints of {without.iloc[0]}; "
            "draw only models whose entry says it"
        )


def require_one_checkpoint(estimates: Table) -> None:
    """Raise InputError unless there is one checkpoint of each model."""
    for model, revisions in estimates.rows.groupby("model")["revision"]:
        if revisions.nunique() > 1:
            raise InputError(
                f"{estimates.source} has {revisions.nunique()} checkpoints of {model}, but the figure "
                "draws one; say `checkpoints: last` in paper.yaml"
            )


def with_verdicts(table: pd.DataFrame, verdicts: Table | None) -> pd.DataFrame:
    """Add the column ``verdict`` after ``tokens`` and, at the end, ``hollow``.

    Parameters
    ----------
    table : pandas.DataFrame
        With the columns ``model``, ``revision`` and ``tokens``.
    verdicts : Table or None
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


def _shown(measured: pd.DataFrame, names: list[str], inputs: FigureInputs) -> pd.DataFrame:
    """Checkpoints of these models that the verdicts show; every measured one must have a verdict."""
    assert inputs.verdicts is not None
    assert inputs.estimates is not None
    judged = inputs.verdicts.rows[inputs.verdicts.rows["model"].isin(names)]
    if (without := _beyond(measured, judged)) is not None:
        raise InputError(
            f"{inputs.verdicts.source} has no verdict on {without}, which {inputs.estimates.source} "
            "holds; delete it and run again"
        )
    shown = judged.loc[judged["shown"] != "no", CHECKPOINT]
    if shown.empty:
        raise InputError(
            f"{inputs.verdicts.source} leaves out every checkpoint of {', '.join(names)}: "
            "there is nothing to draw"
        )
    return shown


def _beyond(checkpoints: pd.DataFrame, others: pd.DataFrame) -> str | None:
    """Name the first of `checkpoints` that is not among the `others`."""
    others = others[CHECKPOINT].drop_duplicates()
    both = checkpoints[CHECKPOINT].merge(others, "left", on=CHECKPOINT, indicator=True)
    missing = both[both["_merge"] == "left_only"]
    if missing.empty:
        return None
    first = missing.iloc[0]
    step = "" if pd.isna(first["step"]) else f" (step {first['step']})"
    return f"{first['model']} {first['revision']}{step}"


def _refuse_repeated_values(estimates: Table) -> None:
    rows = estimates.rows
    stepped = rows[rows["step"].notna()]
    for who, table in (("revision", rows), ("step", stepped)):
        repeated = table.duplicated(["model", who, "layer", "estimator"])
        if repeated.any():
            first = table[repeated].iloc[0]
            layer = "the average" if pd.isna(first["layer"]) else f"layer {first['layer']}"
            raise InputError(
                f"{estimates.source} has {first['estimator']} of {layer} twice for {first['model']}, "
                f"{who} {first[who]}; give every {who} of a model once"
            )


def _refuse_mixed_batch_sizes(estimates: Table, inputs: FigureInputs) -> None:
    rows = estimates.rows
    dependent = [measure.name for measure in inputs.measures if measure.depends_on_n]
    rows = rows[rows["estimator"].isin(dependent)]
    sizes = sorted(rows["n"].dropna().unique())
    if len(sizes) > 1:
        raise InputError(
            f"{estimates.source} mixes batches of {' and '.join(f'{n:g}' for n in sizes)} vectors in "
            f"{', '.join(sorted(rows['estimator'].unique()))}, whose value depends on that size; "
            "measure all models of a figure with the same batch size"
        )
