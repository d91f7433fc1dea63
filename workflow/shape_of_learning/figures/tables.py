"""The rows that a figure draws: values by layer, averages over layers, and means over seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from shape_of_learning.errors import InputError
from shape_of_learning.figures.inputs import DrawnModel, FigureInputs
from shape_of_learning.metrics.intervals import LEVEL
from shape_of_learning.metrics.suspects import (
    FEW_WINDOWS,
    REASONS,
    Reason,
    read_reasons,
    write_reasons,
)
from shape_of_learning.metrics.tidy import AVERAGED_LAYERS

CHECKPOINT = ["model", "revision"]
SHOWN = ("yes", "hollow", "no")  # from best to worst
SEED_KEYS = ["model", "step", "layer", "estimator"]
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


def join_seeds(inputs: FigureInputs) -> FigureInputs:
    """Put the mean over its seeds in the place of each training that an entry names with `seeds`.

    Intervals are Student's over seeds, so that errors of windows, which all seeds share, are not in them. Only
    steps that all seeds have are kept. A figure that reads other tables than estimates has seeds one by one.
    """
    groups: dict[str, list[DrawnModel]] = {}
    for model in inputs.models:
        groups.setdefault(model.seeds_of or model.name, []).append(model)
    several = {name: of for name, of in groups.items() if len(of) > 1}
    if not several or not inputs.tables.keys() <= {"estimates", "verdicts"}:
        return inputs
    tables = dict(inputs.tables)
    first = {seed.name: of[0].name for of in several.values() for seed in of}
    tables["estimates"] = _average_seeds(inputs, first, several)
    if inputs.verdicts is not None:
        tables["verdicts"] = _merge_verdicts(inputs.verdicts, tables["estimates"], first)
    models = [
        replace(of[0], label=of[0].label.rpartition(", seed")[0]) if len(of) > 1 else of[0]
        for of in groups.values()
    ]
    numbers = sorted({len(of) for of in several.values()})
    said = f"Bands of {' or '.join(map(str, numbers))} seeds are over seeds."
    return replace(inputs, models=models, tables=tables, caption=f"{inputs.caption} {said}")


def _average_seeds(
    inputs: FigureInputs, first: Mapping[str, str], several: Mapping[str, Sequence[DrawnModel]]
) -> pd.DataFrame:
    from scipy.special import stdtrit

    rows = inputs.tables["estimates"]
    shown = rows.merge(list_shown_checkpoints(inputs), on=CHECKPOINT)
    of_seeds = shown[shown["model"].isin(first)].assign(seed=lambda r: r["model"])
    of_seeds = of_seeds.assign(model=of_seeds["model"].map(first))
    grouped = of_seeds.groupby(SEED_KEYS, dropna=False, sort=False)
    means = grouped.first()
    number, deviation = grouped["value"].count(), grouped["value"].std(ddof=1)
    error = deviation / np.sqrt(number)
    half = stdtrit(number.clip(2) - 1, (1 + LEVEL) / 2) * error
    value = grouped["value"].mean()
    means = means.assign(
        value=value,
        standard_error=error,
        low=value - half,
        high=value + half,
        near_duplicates=grouped["near_duplicates"].max(),
        suspect=grouped["suspect"].max(),
        reason=grouped["reason"].agg(_merge_reasons),
    )
    needed = {of[0].name: len(of) for of in several.values()}
    whole = number.to_numpy() == means.index.get_level_values("model").map(needed).to_numpy()
    means = means[whole].reset_index().drop(columns="seed")[list(rows.columns)]
    return pd.concat([rows[~rows["model"].isin(first)], means], ignore_index=True)


def _merge_reasons(cells: pd.Series) -> str:
    names = {reason.name for cell in cells.dropna() for reason in read_reasons(cell)}
    return write_reasons(reason for name, reason in REASONS.items() if name in names)


def _merge_verdicts(
    verdicts: pd.DataFrame, estimates: pd.DataFrame, first: Mapping[str, str]
) -> pd.DataFrame:
    """Those of the first seed, drawn as the worst of all seeds at the step is."""
    own = verdicts.assign(model=verdicts["model"].replace(dict(first)), seed=verdicts["model"])
    rank = own["shown"].map(SHOWN.index)
    worst = rank.groupby([own["model"], own["step"]], dropna=False).transform("max")
    own = own.assign(shown=worst.map(SHOWN.__getitem__))
    kept = own[own["seed"].eq(own["model"])].drop(columns="seed")
    there = estimates[CHECKPOINT].drop_duplicates()
    is_joined = kept["model"].isin(set(first.values()))
    has = kept[CHECKPOINT].apply(tuple, axis=1).isin(there.apply(tuple, axis=1))
    return kept[~is_joined | has | kept["shown"].eq("no")].reset_index(drop=True)
