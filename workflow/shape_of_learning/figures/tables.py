"""Select the rows that a figure draws: values by layer, averages over layers, and means over seeds."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from shape_of_learning.errors import InputError
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.job import DrawnModel
from shape_of_learning.metrics.intervals import LEVEL
from shape_of_learning.metrics.suspects import (
    FEW_WINDOWS,
    REASONS,
    Reason,
    format_reasons,
    read_reasons,
)
from shape_of_learning.metrics.tidy import AVERAGED_LAYERS

CHECKPOINT = ["model", "revision"]
SHOWN = ("yes", "hollow", "no")  # from best to worst
SEED_KEYS = ["model", "step", "layer", "estimator"]  # of values that are averaged over seeds
AVERAGED_LAYERS_IN_WORDS = {
    "block_outputs": "Averages are over block outputs.",
    "all_layers": "Averages are over block outputs and the embedding output.",
}


def select_layers(inputs: FigureInputs) -> pd.DataFrame:
    """Select the rows of layers that a figure draws.

    Returns
    -------
    pandas.DataFrame
        The columns of estimates, after the model its ``label``, if there are verdicts the ``verdict``, and three
        marks that the figure's CSV lacks: ``marked`` (the value is suspect, and not only for few windows), ``bare``
        (it has no interval, but other values of its measure have one) and ``hollow`` (the verdict is not ok). Rows are
        in the order of the models of `inputs`, then of steps, then of measures.

    Raises
    ------
    InputError
        If the verdicts leave out every checkpoint.
    """
    table = _mark_suspects(select_estimates(inputs), first=0)
    return add_labels_and_verdicts(table, inputs)


def select_averages(inputs: FigureInputs, average_over: str = "block_outputs") -> pd.DataFrame:
    """Select the averages over layers, and count their layers.

    Parameters
    ----------
    inputs : FigureInputs
    average_over : {"block_outputs", "all_layers"}
        Layers 1 to L, or 0 to L. If a model adds no positions to its embeddings, layer 0 depends on the token alone.

    Returns
    -------
    pandas.DataFrame
        The columns of :func:`select_layers` without ``layer`` and ``depth``, and the numbers of averaged, undefined
        and suspect layers: ``layers``, ``layers_left_out``, ``suspect_layers``. An average is ``marked`` if a layer of
        it is suspect.
    """
    estimates = select_estimates(inputs)
    layers = _mark_suspects(estimates, first=AVERAGED_LAYERS[average_over])
    is_defined = layers["value"].notna()
    flags = {
        "layers": is_defined,
        "layers_left_out": ~is_defined,
        "suspect_layers": is_defined & layers["marked"],
    }
    keys = [*CHECKPOINT, "estimator"]
    counts = layers.assign(**flags).groupby(keys, sort=False)[[*flags]].sum()
    averages = estimates[estimates["layer"].isna()].drop(columns=["layer", "depth"])
    table = averages.join(counts, on=keys).assign(marked=lambda rows: rows["suspect_layers"] > 0)
    return add_labels_and_verdicts(table, inputs)


def select_estimates(inputs: FigureInputs) -> pd.DataFrame:
    """Select the estimates of a figure's measures at its checkpoints."""
    rows = inputs.tables["estimates"].drop(columns="layers", errors="ignore")
    order = {measure.name: place for place, measure in enumerate(inputs.measures)}
    rows = rows[rows["estimator"].isin(order)].merge(list_shown_checkpoints(inputs), on=CHECKPOINT)
    is_bare = lacks_interval(rows)
    bare_share = is_bare.groupby(rows["estimator"]).transform("mean")
    rows = rows.assign(bare=is_bare & (bare_share < 1))
    return rows.sort_values("estimator", key=lambda names: names.map(order), kind="stable")


def lacks_interval(rows: pd.DataFrame) -> pd.Series:
    """Tell for each row whether its value has no interval."""
    return np.isfinite(rows["value"]) & rows["low"].isna()


def list_shown_checkpoints(inputs: FigureInputs) -> pd.DataFrame:
    """List ``model`` and ``revision`` of the drawn checkpoints: one per model, or all that the verdicts show."""
    names = [model.name for model in inputs.models]
    if inputs.verdicts is None:
        revisions = [model.revision for model in inputs.models]
        return pd.DataFrame({"model": names, "revision": revisions}, dtype="str")
    verdicts = inputs.verdicts[inputs.verdicts["model"].isin(names)]
    shown_verdicts = verdicts[verdicts["shown"] != "no"]
    return require_rows(shown_verdicts, inputs, "the verdicts leave out every checkpoint")[
        CHECKPOINT
    ]


def require_rows(rows: pd.DataFrame, inputs: FigureInputs, lacking: str) -> pd.DataFrame:
    """Return the rows, or raise InputError if there are none."""
    if rows.empty:
        names = ", ".join(model.label for model in inputs.models)
        raise InputError(f"there is nothing to draw of {names}: {lacking}; leave them out")
    return rows


def add_labels_and_verdicts(table: pd.DataFrame, inputs: FigureInputs) -> pd.DataFrame:
    """Add labels, the column ``hollow``, and if there are verdicts the column ``verdict`` after ``tokens``."""
    table = table.assign(hollow=False)
    if inputs.verdicts is not None:
        verdicts = inputs.verdicts.set_index(CHECKPOINT)[["verdict", "shown"]]
        checkpoint_verdicts = table[CHECKPOINT].join(verdicts, on=CHECKPOINT)
        table = table.assign(hollow=checkpoint_verdicts["shown"] == "hollow")
        table.insert(table.columns.get_loc("tokens") + 1, "verdict", checkpoint_verdicts["verdict"])
    return add_labels(table, inputs)


def add_labels(table: pd.DataFrame, inputs: FigureInputs) -> pd.DataFrame:
    """Sort by the order of the models, then by step, and add the column ``label`` after ``model``."""
    labels = {model.name: model.label for model in inputs.models}
    order = {name: place for place, name in enumerate(labels)}
    table = table.sort_values("step", kind="stable")
    table = table.sort_values("model", key=lambda names: names.map(order), kind="stable")
    table.insert(1, "label", table["model"].map(labels))
    return table.reset_index(drop=True)


def _mark_suspects(estimates: pd.DataFrame, first: int) -> pd.DataFrame:
    rows = estimates[estimates["layer"].ge(first).fillna(value=False)]
    # Few windows do not mark a value, since its missing interval has another mark.
    return rows.assign(
        marked=rows["reason"].fillna("").map(lambda cell: bool(read_visible_reasons(cell)))
    )


def read_visible_reasons(cell: str) -> list[Reason]:
    """Read the reasons of a cell except few windows, which the missing interval already shows."""
    return [reason for reason in read_reasons(cell) if reason is not FEW_WINDOWS]


def join_seeds(inputs: FigureInputs) -> FigureInputs:
    """Replace the seeds of a training by their mean, as one model.

    Intervals are Student's over the seeds; they lack the errors of windows, which all seeds share. Steps that a seed
    lacks are dropped. A figure that reads tables besides estimates keeps the seeds as separate models.
    """
    groups: dict[str, list[DrawnModel]] = {}
    for model in inputs.models:
        groups.setdefault(model.seeds_of or model.name, []).append(model)
    seeds_by_first = {seeds[0].name: seeds for seeds in groups.values() if len(seeds) > 1}
    if not seeds_by_first or not inputs.tables.keys() <= {"estimates", "verdicts"}:
        return inputs
    tables = dict(inputs.tables)
    first = {seed.name: name for name, seeds in seeds_by_first.items() for seed in seeds}
    numbers = {name: len(seeds) for name, seeds in seeds_by_first.items()}
    tables["estimates"] = _average_seeds(inputs, first, numbers)
    if inputs.verdicts is not None:
        tables["verdicts"] = _merge_verdicts(inputs.verdicts, tables["estimates"], first)
    models = []
    for model, *seeds in groups.values():
        label = model.label.rpartition(", seed")[0] if seeds else model.label
        models.append(replace(model, label=label))
    words = " or ".join(str(number) for number in sorted(set(numbers.values())))
    caption = f"{inputs.caption} Bands of {words} seeds are over seeds."
    return replace(inputs, models=models, tables=tables, caption=caption)


def _average_seeds(
    inputs: FigureInputs, first: Mapping[str, str], numbers: Mapping[str, int]
) -> pd.DataFrame:
    """Average over seeds; `first` maps each seed to the first of its entry, `numbers` counts the seeds by the first."""
    from scipy.special import stdtrit

    rows = inputs.tables["estimates"]
    shown_rows = rows.merge(list_shown_checkpoints(inputs), on=CHECKPOINT)
    seeds = shown_rows[shown_rows["model"].isin(first)].assign(seed=lambda rows: rows["model"])
    seeds = seeds.assign(model=seeds["model"].map(first))
    groups = seeds.groupby(SEED_KEYS, dropna=False, sort=False)
    means = groups.first()
    number, defined_number = groups["value"].size(), groups["value"].count()
    # The mean over seeds is undefined if the value of a seed is.
    value = groups["value"].mean().where(number == defined_number)
    error = groups["value"].std(ddof=1).where(number == defined_number) / np.sqrt(number)
    half = stdtrit(number.clip(2) - 1, (1 + LEVEL) / 2) * error
    means = means.assign(
        value=value,
        standard_error=error,
        low=value - half,
        high=value + half,
        near_duplicates=groups["near_duplicates"].max(),
        suspect=groups["suspect"].max(),
        reason=groups["reason"].agg(_merge_reasons),
    )
    seed_numbers = means.index.get_level_values("model").map(dict(numbers))
    means = (
        means[number.to_numpy() == seed_numbers.to_numpy()]
        .reset_index()
        .drop(columns="seed")[list(rows.columns)]
    )
    return pd.concat([rows[~rows["model"].isin(first)], means], ignore_index=True)


def _merge_reasons(cells: pd.Series) -> str:
    names = {reason.name for cell in cells.dropna() for reason in read_reasons(cell)}
    return format_reasons(reason for name, reason in REASONS.items() if name in names)


def _merge_verdicts(
    verdicts: pd.DataFrame, estimates: pd.DataFrame, first: Mapping[str, str]
) -> pd.DataFrame:
    """Keep the rows of the first seed, with the worst verdict of all seeds at the step."""
    rows = verdicts.assign(model=verdicts["model"].replace(dict(first)), seed=verdicts["model"])
    rows = rows.reset_index(drop=True)
    rank = rows["shown"].map(SHOWN.index)
    worst = rank.groupby([rows["model"], rows["step"]], dropna=False).transform("idxmax")
    columns = rows.columns.intersection(["shown", "verdict", "short_verdict"])
    rows[columns] = rows.loc[worst, columns].to_numpy()
    rows = rows[rows["seed"].eq(rows["model"])].drop(columns="seed")
    averaged_checkpoints = estimates[CHECKPOINT].drop_duplicates().apply(tuple, axis=1)
    is_joined = rows["model"].isin(set(first.values()))
    has_average = rows[CHECKPOINT].apply(tuple, axis=1).isin(averaged_checkpoints)
    return rows[~is_joined | has_average | rows["shown"].eq("no")].reset_index(drop=True)
