"""Seeds of one training as one curve: means, with a band over seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from shape_of_learning.figures.inputs import DrawnModel, FigureInputs
from shape_of_learning.figures.tables import CHECKPOINT, list_shown_checkpoints
from shape_of_learning.metrics.intervals import LEVEL
from shape_of_learning.metrics.suspects import REASONS, read_reasons, write_reasons

SHOWN = ("yes", "hollow", "no")
KEYS = ["model", "step", "layer", "estimator"]


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
    grouped = of_seeds.groupby(KEYS, dropna=False, sort=False)
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
