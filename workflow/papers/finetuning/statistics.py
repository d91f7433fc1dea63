"""Statistics of what fine-tuning changes in the last layer, with intervals over seeds."""

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from shape_of_learning.claims.bounds import BoundedNumber, bound_repetitions, shift, stack_bounds
from shape_of_learning.claims.criteria import Units
from shape_of_learning.claims.evidence import ClaimData, NotMeasured

MASSIVE = {
    "massive_by_types": "share_between_token_types",
    "massive_by_frequency": "share_between_frequency_bands",
}
FEW = 4  # directions
ELONGATED = 10  # times the median eigenvalue of the layer at the first step


def isotropy_after_less_before(data: ClaimData) -> Units:
    """Return the change of ln I of the last layer of each fine-tuning, averaged over its seeds."""

    def subtract(before: pd.DataFrame, after: pd.DataFrame) -> float:
        return float(after["value"].iloc[0] - before["value"].iloc[0])

    is_meant = "estimator == 'log_partition_isotropy'"
    changes = _average_change(data, "finetuning_layers", is_meant, subtract)
    return {family: {"change": of} for family, of in changes.items()}


def change_of_local_structure(data: ClaimData, least_share: float, least_variance: float) -> Units:
    """Return the change of two shares of variance in the last layer of each fine-tuning, averaged over seeds.

    The numbers are ``share_between_token_types`` and ``share_between_frequency_bands``, the sizes of the changes
    relative to the start; ``..._by``, the sizes of the changes; and ``massive_by_types`` and ``massive_by_frequency``,
    how far a change lies beyond `least_share` and `least_variance`, the lesser of both.
    """

    def absolute_change(before: pd.DataFrame, after: pd.DataFrame) -> float:
        return float(abs(after["value"].iloc[0] - before["value"].iloc[0]))

    def relative_change(before: pd.DataFrame, after: pd.DataFrame) -> float:
        start = before["value"].iloc[0]
        return absolute_change(before, after) / start if start else np.nan

    units: dict[str, dict[str, BoundedNumber]] = defaultdict(dict)
    for quantity in MASSIVE.values():
        is_meant = f"quantity == '{quantity}'"
        for name, change in ((quantity, relative_change), (f"{quantity}_by", absolute_change)):
            for family, of in _average_change(
                data, "finetuning_structure", is_meant, change
            ).items():
                units[family][name] = of
    for numbers in units.values():
        for name, quantity in MASSIVE.items():
            relative_excess = shift(numbers[quantity], -least_share)
            excess = shift(numbers[f"{quantity}_by"], -least_variance)
            numbers[name] = stack_bounds([relative_excess, excess]).least()
    return units


def task_in_elongated_directions(data: ClaimData, directions: Sequence[int]) -> Units:
    """Return how many elongated directions each fine-tuning adds, and the cost of removing directions.

    Returns
    -------
    Units
        Of each family, means over its seeds: ``doublings``, the logarithm to base 2 of the ratio of the numbers of
        elongated directions of the last layer, with one added to each, and ``own_doublings``, where those after
        fine-tuning are longer than the median after it; ``added_directions``, how many directions are
        added, less a hundredth of all directions or less `FEW`, whichever is more; ``cost_before`` and ``cost_after``,
        the probe score with all directions less the mean score without as many of them as `directions` lists.
    """

    def count(before: pd.DataFrame, rows: pd.DataFrame) -> int:
        return int((rows["eigenvalue"] > ELONGATED * before["median"].iloc[0]).sum())

    def doublings(before: pd.DataFrame, after: pd.DataFrame) -> float:
        return float(np.log2((1 + count(before, after)) / (1 + count(before, before))))

    def own_doublings(before: pd.DataFrame, after: pd.DataFrame) -> float:
        return float(np.log2((1 + count(after, after)) / (1 + count(before, before))))

    def added_directions(before: pd.DataFrame, after: pd.DataFrame) -> float:
        few = max(FEW, len(before) / 100)
        return count(before, after) - count(before, before) - few

    def cost(rows: pd.DataFrame) -> float:
        is_whole = rows["adjustment"] == "none"
        left = rows[~is_whole].set_index("directions")["score"].reindex(directions)
        return float(rows.loc[is_whole, "score"].iloc[0] - left.to_numpy().mean())

    removals = "adjustment == 'without_directions' and fitted_on == 'training' and clusters == 1"
    is_meant = f"adjustment == 'none' or ({removals})"
    more, own, several = (
        _average_change(data, "finetuning_spectra", "place > 0", change)
        for change in (doublings, own_doublings, added_directions)
    )
    before, after = (
        _average_change(data, "finetuning_probes", is_meant, of)
        for of in (lambda before, after: cost(before), lambda before, after: cost(after))
    )
    return {
        family: {
            "doublings": more[family],
            "own_doublings": own[family],
            "added_directions": several[family],
            "cost_before": before[family],
            "cost_after": after[family],
        }
        for family in more
        if family in before
    }


def _average_change(
    data: ClaimData,
    table: str,
    is_meant: str,
    change: Callable[[pd.DataFrame, pd.DataFrame], float],
) -> dict[str, BoundedNumber]:
    """Average a change of the last layer from the first step to the last over the seeds of each family.

    The query `is_meant` of pandas selects the rows. Families with one seed are left out.
    """
    changes = defaultdict(list)
    for name, rows in data.select_rows(table).items():
        own = rows[rows["layer"] == rows["layer"].max()].query(is_meant)
        own = own[own["sample"].isin(own["sample"].head(1))]  # the first of its samples
        if own["step"].nunique() > 1:
            ends = own["step"].min(), own["step"].max()
            before, after = (own[own["step"] == step] for step in ends)
            model = data.models[name]
            changes[f"{model.origin} on {model.treatment}"].append(change(before, after))
    several = {family: bound_repetitions(of) for family, of in changes.items() if len(of) > 1}
    if not several:
        raise NotMeasured(
            f"no fine-tuning has tables/{table} at its first and its last step with two seeds or more, "
            "without which nothing tells a change from chance"
        )
    return several
