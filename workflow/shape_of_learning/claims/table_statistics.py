"""Statistics of other tables: changed blocks, twins, fine-tunings. As in :mod:`.layer_statistics`.

These tables have no left-out values. What was repeated with other seeds has an interval from them, the
rest is compared as it is.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from shape_of_learning.claims.bounds import BoundedNumber, bound_exactly, bound_repetitions
from shape_of_learning.claims.reading import ClaimData, NotMeasured, select_common_layers
from shape_of_learning.claims.rules import Units

CHANGES = ("dropped", "replaced")
ORDERS = ("most_linear_first", "least_linear_first")
ELONGATED = 10  # times the median eigenvalue of the layer at the first step


def cost_of_edits(reading: ClaimData, share: float) -> Units:
    """Perplexity with a share of the blocks changed.

    Returns
    -------
    Units
        Of each model ``dropped`` and ``replaced``: the perplexity over that of the unchanged model, by
        the order of linearity. And ``dropped_over_reverse`` and ``replaced_over_reverse``: this ratio
        less that by the reverse order.
    """
    units: dict[str, dict[str, BoundedNumber]] = {}
    for name, rows in reading.select_rows("edits").items():
        changed = max(1, round(share * reading.models[name].layers))
        perplexity = rows.set_index(["order", "kind", "k"])["perplexity"].to_dict()
        parts = units[name] = {}
        for kind in CHANGES:
            ratio = []
            for order in ORDERS:
                if (order, kind, changed) not in perplexity:
                    raise NotMeasured(
                        f"{changed} {kind} blocks of `{name}`, {order.replace('_', ' ')}, are not "
                        "measured (`most_blocks`, `orders` and `kinds` of `block_editing`)"
                    )
                ratio.append(perplexity[order, kind, changed] / perplexity[order, kind, 0])
            parts[kind] = bound_exactly(ratio[0])
            less = ratio[0] - ratio[1] if ratio[0] != ratio[1] else 0.0  # of two infinite ones
            parts[f"{kind}_over_reverse"] = bound_exactly(less)
    return units


def twins_less_originals(
    reading: ClaimData, estimators: tuple[str], regulariser: str, pairs: int
) -> Units:
    """Mean over layers of a twin with a regulariser less that without, mean over pairs of one seed each."""
    values = {}
    for name, (twin,) in reading.select_curves(*estimators).items():
        for original in reading.find_curves(reading.models[name].origin, *estimators):
            if original.steps[-1] == twin.steps[-1]:
                of_twin, of_original = select_common_layers([twin, original])
                values[name] = (of_twin - of_original).mean(axis=-2)[..., 0]
    return _average_pairs(reading, values, regulariser, pairs, f"`{estimators[0]}`")


def twins_loss_less_originals(reading: ClaimData, regulariser: str, pairs: int) -> Units:
    """Held-out loss of a twin less that of its original, as :func:`twins_less_originals`."""
    values = {}
    for name, rows in reading.select_rows("training").items():
        original = reading.find_rows(reading.models[name].origin, "training")
        both = rows.nlargest(1, "step").merge(original.nlargest(1, "step"), on="step")
        difference = (both["held_out_loss_x"] - both["held_out_loss_y"]).dropna()
        if len(difference):
            values[name] = difference.to_numpy()[0]
    return _average_pairs(reading, values, regulariser, pairs, "a held-out loss")


def isotropy_after_less_before(reading: ClaimData) -> Units:
    """Of each fine-tuning the change of ln I of the last layer, mean over its seeds."""

    def grown(before: pd.DataFrame, after: pd.DataFrame) -> float:
        return float(after["value"].iloc[0] - before["value"].iloc[0])

    is_meant = "estimator == 'log_partition_isotropy'"
    changes = _average_change(reading, "finetuning_layers", is_meant, grown)
    return {family: {"change": of} for family, of in changes.items()}


def change_of_local_structure(reading: ClaimData) -> Units:
    """Of each fine-tuning the change of two shares of variance in the last layer, mean over seeds.

    The parts are ``share_between_token_types`` and ``share_between_frequency_bands``, absolute changes relative
    to the start, and ``..._by``, these changes themselves.
    """

    def absolute(before: pd.DataFrame, after: pd.DataFrame) -> float:
        return float(abs(after["value"].iloc[0] - before["value"].iloc[0]))

    def relative(before: pd.DataFrame, after: pd.DataFrame) -> float:
        start = before["value"].iloc[0]
        return absolute(before, after) / start if start else np.nan

    units: dict[str, dict[str, BoundedNumber]] = defaultdict(dict)
    for quantity in ("share_between_token_types", "share_between_frequency_bands"):
        is_meant = f"quantity == '{quantity}'"
        for name, change in ((quantity, relative), (f"{quantity}_by", absolute)):
            for family, of in _average_change(
                reading, "finetuning_structure", is_meant, change
            ).items():
                units[family][name] = of
    return units


def task_in_elongated_directions(reading: ClaimData, directions: Sequence[int]) -> Units:
    """Of each fine-tuning how many more elongated directions it has, and what their removal comes to cost.

    Returns
    -------
    Units
        Of each family, means over its seeds: ``doublings``, how often the number of elongated directions of
        the last layer doubles, with one added before and after; ``cost_before`` and ``cost_after``, the probe
        score with no direction removed less the mean of those without so many `directions`.
    """

    def doublings(before: pd.DataFrame, after: pd.DataFrame) -> float:
        bound = ELONGATED * before["median"].iloc[0]
        numbers = [1 + (of["eigenvalue"] > bound).sum() for of in (before, after)]
        return float(np.log2(numbers[1] / numbers[0]))

    def cost(rows: pd.DataFrame) -> float:
        is_whole = rows["adjustment"] == "none"
        left = rows[~is_whole].set_index("directions")["score"].reindex(directions)
        return float(rows.loc[is_whole, "score"].iloc[0] - left.to_numpy().mean())

    removals = "adjustment == 'without_directions' and fitted_on == 'training' and clusters == 1"
    is_meant = f"adjustment == 'none' or ({removals})"
    more = _average_change(reading, "finetuning_spectra", "place > 0", doublings)
    before, after = (
        _average_change(reading, "finetuning_probes", is_meant, of)
        for of in (lambda before, after: cost(before), lambda before, after: cost(after))
    )
    return {
        family: {
            "doublings": more[family],
            "cost_before": before[family],
            "cost_after": after[family],
        }
        for family in more
        if family in before
    }


def _average_change(
    reading: ClaimData,
    table: str,
    is_meant: str,
    change: Callable[[pd.DataFrame, pd.DataFrame], float],
) -> dict[str, BoundedNumber]:
    """A change of the last layer from the first step to the last, by family; of those with several seeds.

    Rows are those for which `is_meant` holds, a query of pandas.
    """
    changes = defaultdict(list)
    for name, rows in reading.select_rows(table).items():
        own = rows[rows["layer"] == rows["layer"].max()].query(is_meant)
        own = own[own["sample"].isin(own["sample"].head(1))]  # the first of its samples
        if own["step"].nunique() > 1:
            ends = own["step"].min(), own["step"].max()
            before, after = (own[own["step"] == step] for step in ends)
            model = reading.models[name]
            changes[f"{model.origin} on {model.treatment}"].append(change(before, after))
    several = {family: bound_repetitions(of) for family, of in changes.items() if len(of) > 1}
    if not several:
        raise NotMeasured(
            f"no fine-tuning has tables/{table} at its first and its last step with two seeds or more, "
            "without which nothing tells a change from chance"
        )
    return several


def _average_pairs(
    reading: ClaimData, values: Mapping[str, np.ndarray], regulariser: str, pairs: int, what: str
) -> Units:
    """Means over the pairs of each treatment by a regulariser, if there are enough of one."""
    treatments = defaultdict(list)
    for name, value in values.items():
        treatment = reading.models[name].treatment
        if treatment.split()[0] == regulariser:
            treatments[treatment].append(value)
    most = max(map(len, treatments.values()), default=0)
    if most < pairs:
        raise NotMeasured(
            f"the run has {most} of the {pairs} pairs needed; a pair is a twin trained with the term "
            f"`{regulariser}` and its original, of one seed, both with {what} at the same last step"
        )
    return {
        treatment: {"difference": bound_repetitions(np.stack(of, axis=-1))}
        for treatment, of in treatments.items()
        if len(of) >= pairs
    }
