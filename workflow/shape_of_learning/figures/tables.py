"""The rows that a figure draws: values by layer, or their averages over layers."""

import numpy as np
import pandas as pd

from shape_of_learning.errors import InputError
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.metrics.suspects import FEW_WINDOWS, Reason, read_reasons
from shape_of_learning.metrics.tidy import AVERAGED_LAYERS

CHECKPOINT = ["model", "revision"]
AVERAGED_LAYERS_IN_WORDS = {
    "block_outputs": "Averages are over block outputs.",
    "all_layers": "Averages are over block outputs and the embedding output.",
}


def select_layers(inputs: FigureInputs) -> pd.DataFrame:
    """Keep the rows of layers that a figure draws.

    Returns
    -------
    pandas.DataFrame
        The columns of estimates and, after the model, its ``label``; ``marked``, whether the value is suspect for
        another reason than few windows; ``bare``, whether it has no interval although others of its measure have
        one; ``hollow``, whether a verdict says to mark the checkpoint; where there are verdicts, ``verdict``.
        `marked`, `bare` and `hollow` are not in the figure's CSV.
        Models are in the order of `inputs`, steps ascend, then follow measures in their order.

    Raises
    ------
    InputError
        If the verdicts leave out every checkpoint.
    """
    table = _mark_suspects(select_estimates(inputs), first=0)
    return add_labels_and_verdicts(table, inputs)


def select_averages(inputs: FigureInputs, average_over: str = "block_outputs") -> pd.DataFrame:
    """Keep the averages over layers, and count what went into them.

    Parameters
    ----------
    inputs : FigureInputs
    average_over : {"block_outputs", "all_layers"}
        What the averages are of: layers 1 to L, or 0 to L. Layer 0 is a function of the token alone in models
        that do not add positions to the embeddings.

    Returns
    -------
    pandas.DataFrame
        As :func:`select_layers`, without ``layer`` and ``depth`` and with ``layers`` (averaged),
        ``layers_left_out`` (undefined ones) and ``suspect_layers``. An average is ``marked`` if any of its
        layers is.
    """
    estimates = select_estimates(inputs)
    layers = _mark_suspects(estimates, first=AVERAGED_LAYERS[average_over])
    defined = layers["value"].notna()
    counted = {
        "layers": defined,
        "layers_left_out": ~defined,
        "suspect_layers": defined & layers["marked"],
    }
    keys = [*CHECKPOINT, "estimator"]
    counts = layers.assign(**counted).groupby(keys, sort=False)[[*counted]].sum()
    averages = estimates[estimates["layer"].isna()].drop(columns=["layer", "depth"])
    table = averages.join(counts, on=keys).assign(marked=lambda rows: rows["suspect_layers"] > 0)
    return add_labels_and_verdicts(table, inputs)


def select_estimates(inputs: FigureInputs) -> pd.DataFrame:
    """Keep the estimates of a figure's measures at the checkpoints that it shows."""
    rows = inputs.tables["estimates"].drop(columns="layers", errors="ignore")
    order = {measure.name: place for place, measure in enumerate(inputs.measures)}
    rows = rows[rows["estimator"].isin(order)].merge(list_shown_checkpoints(inputs), on=CHECKPOINT)
    is_bare = lacks_interval(rows)
    of_measure = is_bare.groupby(rows["estimator"]).transform("mean")
    rows = rows.assign(bare=is_bare & (of_measure < 1))
    return rows.sort_values("estimator", key=lambda names: names.map(order), kind="stable")


def lacks_interval(rows: pd.DataFrame) -> pd.Series:
    """Return of each row whether it has a value without an interval."""
    return np.isfinite(rows["value"]) & rows["low"].isna()


def list_shown_checkpoints(inputs: FigureInputs) -> pd.DataFrame:
    """List ``model`` and ``revision`` of what is drawn: one of each model, or what the verdicts show."""
    names = [model.name for model in inputs.models]
    if inputs.verdicts is None:
        revisions = [model.revision for model in inputs.models]
        return pd.DataFrame({"model": names, "revision": revisions}, dtype="str")
    judged = inputs.verdicts[inputs.verdicts["model"].isin(names)]
    shown = judged[judged["shown"] != "no"]
    return require(shown, inputs, "the verdicts leave out every checkpoint")[CHECKPOINT]


def require(rows: pd.DataFrame, inputs: FigureInputs, lacking: str) -> pd.DataFrame:
    """Refuse to draw nothing, for what is lacking."""
    if rows.empty:
        names = ", ".join(model.label for model in inputs.models)
        raise InputError(f"there is nothing to draw of {names}: {lacking}; leave them out")
    return rows


def add_labels_and_verdicts(table: pd.DataFrame, inputs: FigureInputs) -> pd.DataFrame:
    """Add, at the end, ``hollow``; where there are verdicts, ``verdict`` after ``tokens``; then labels."""
    table = table.assign(hollow=False)
    if inputs.verdicts is not None:
        known = inputs.verdicts.set_index(CHECKPOINT)[["verdict", "shown"]]
        judged = table[CHECKPOINT].join(known, on=CHECKPOINT)
        table = table.assign(hollow=judged["shown"] == "hollow")
        table.insert(table.columns.get_loc("tokens") + 1, "verdict", judged["verdict"])
    return add_labels(table, inputs)


def add_labels(table: pd.DataFrame, inputs: FigureInputs) -> pd.DataFrame:
    """Order by model as given, then by step, and add the column ``label`` after ``model``."""
    labels = {model.name: model.label for model in inputs.models}
    order = {name: place for place, name in enumerate(labels)}
    table = table.sort_values("step", kind="stable")
    table = table.sort_values("model", key=lambda names: names.map(order), kind="stable")
    table.insert(1, "label", table["model"].map(labels))
    return table.reset_index(drop=True)


def _mark_suspects(estimates: pd.DataFrame, first: int) -> pd.DataFrame:
    rows = estimates[estimates["layer"].ge(first).fillna(value=False)]
    # A value without an interval has a mark of its own.
    return rows.assign(
        marked=rows["reason"].fillna("").map(lambda cell: bool(read_visible_reasons(cell)))
    )


def read_visible_reasons(cell: str) -> list[Reason]:
    """Read the reasons of a value but few windows, which its missing interval shows."""
    return [reason for reason in read_reasons(cell) if reason is not FEW_WINDOWS]
