"""Statistics of the changes that fine-tuning makes in the last layer, with intervals over seeds."""

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from papers.finetuning.columns import ELONGATED
from shape_of_learning.claims.bounds import BoundedNumber, bound_repetitions, shift, stack_bounds
from shape_of_learning.claims.criteria import Units
from shape_of_learning.claims.evidence import ClaimData, NotMeasured

MASSIVE_CHANGES = {
    "massive_by_types": "share_between_token_types",
    "massive_by_frequency": "share_between_frequency_bands",
}
FEW = 4  # directions


def isotropy_after_less_before(data: ClaimData) -> Units:
    """Return the change of ln I of the last layer of each fine-tuning, averaged over its seeds."""

    def subtract(start_rows: pd.DataFrame, end_rows: pd.DataFrame) -> float:
        return float(end_rows["value"].iloc[0] - start_rows["value"].iloc[0])

    query = "estimator == 'log_partition_isotropy'"
    changes = _average_change(data, "finetuning_layers", query, subtract)
    return {family: {"change": change} for family, change in changes.items()}


def change_of_local_structure(data: ClaimData, least_share: float, least_variance: float) -> Units:
    """Return the change of two shares of variance in the last layer of each fine-tuning, averaged over seeds.

    ``share_between_token_types`` and ``share_between_frequency_bands`` are the sizes of the changes relative to the
    start, ``share_between_token_types_by`` and ``share_between_frequency_bands_by`` the sizes of the changes.
    ``massive_by_types`` and ``massive_by_frequency`` are the lesser of two excesses: that of the relative size over
    `least_share`, and that of the size over `least_variance`.
    """

    def absolute_change(start_rows: pd.DataFrame, end_rows: pd.DataFrame) -> float:
        return float(abs(end_rows["value"].iloc[0] - start_rows["value"].iloc[0]))

    def relative_change(start_rows: pd.DataFrame, end_rows: pd.DataFrame) -> float:
        start = start_rows["value"].iloc[0]
        return absolute_change(start_rows, end_rows) / start if start else np.nan

    units: dict[str, dict[str, BoundedNumber]] = defaultdict(dict)
    for quantity in MASSIVE_CHANGES.values():
        query = f"quantity == '{quantity}'"
        for name, change in ((quantity, relative_change), (f"{quantity}_by", absolute_change)):
            for family, number in _average_change(
                data, "finetuning_structure", query, change
            ).items():
                units[family][name] = number
    for numbers in units.values():
        for name, quantity in MASSIVE_CHANGES.items():
            relative_excess = shift(numbers[quantity], -least_share)
            excess = shift(numbers[f"{quantity}_by"], -least_variance)
            numbers[name] = stack_bounds([relative_excess, excess]).least()
    return units


def task_in_elongated_directions(data: ClaimData, directions: Sequence[int]) -> Units:
    """Return how many elongated directions each fine-tuning adds, and the cost of removing directions.

    Returns
    -------
    Units
        The numbers of a family are means over its seeds. ``doublings`` is the logarithm to base 2 of the ratio of the
        numbers of elongated directions of the last layer, after adding one to each number. ``own_doublings`` is the
        same, but a direction after fine-tuning counts as elongated by the median after fine-tuning.
        ``added_directions`` is the number of directions that are added, less the larger of `FEW` and a hundredth of the
        width. Counts end at the number of eigenvalues in the table, 64. ``cost_before`` and ``cost_after`` are the
        probe score with all directions less the mean score over the numbers of removed directions that `directions`
        lists.
    """

    def count_elongated(rows: pd.DataFrame, reference: pd.DataFrame) -> int:
        return int((rows["eigenvalue"] > ELONGATED * reference["median"].iloc[0]).sum())

    def count_doublings(
        start_rows: pd.DataFrame, end_rows: pd.DataFrame, reference: pd.DataFrame
    ) -> float:
        start = count_elongated(start_rows, start_rows)
        return float(np.log2((1 + count_elongated(end_rows, reference)) / (1 + start)))

    def count_added(start_rows: pd.DataFrame, end_rows: pd.DataFrame) -> float:
        few = max(FEW, start_rows["width"].iloc[0] / 100)
        start = count_elongated(start_rows, start_rows)
        return count_elongated(end_rows, start_rows) - start - few

    def removal_cost(rows: pd.DataFrame) -> float:
        is_whole = rows["adjustment"] == "none"
        scores = rows[~is_whole].set_index("directions")["score"].reindex(directions)
        return float(rows.loc[is_whole, "score"].iloc[0] - scores.to_numpy().mean())

    removals = "adjustment == 'without_directions' and fitted_on == 'training' and clusters == 1"
    query = f"adjustment == 'none' or ({removals})"
    changes = {
        "doublings": _average_change(
            data,
            "finetuning_spectra",
            "place > 0",
            lambda start, end: count_doublings(start, end, start),
        ),
        "own_doublings": _average_change(
            data,
            "finetuning_spectra",
            "place > 0",
            lambda start, end: count_doublings(start, end, end),
        ),
        "added_directions": _average_change(data, "finetuning_spectra", "place > 0", count_added),
        "cost_before": _average_change(
            data, "finetuning_probes", query, lambda start_rows, _: removal_cost(start_rows)
        ),
        "cost_after": _average_change(
            data, "finetuning_probes", query, lambda _, end_rows: removal_cost(end_rows)
        ),
    }
    return {
        family: {name: numbers[family] for name, numbers in changes.items()}
        for family in changes["doublings"]
        if family in changes["cost_before"]
    }


def _average_change(
    data: ClaimData, table: str, query: str, change: Callable[[pd.DataFrame, pd.DataFrame], float]
) -> dict[str, BoundedNumber]:
    """Average a change of the last layer, from the first step to the last, over the seeds of each family.

    `query`, as pandas reads it, selects the rows; `change` gets them with a column `width`, that of the model. Families
    with one seed are left out.
    """
    changes = defaultdict(list)
    for name, rows in data.select_rows(table).items():
        model_rows = rows[rows["layer"] == rows["layer"].max()].query(query)
        # If a model has several samples, the first sample counts.
        model_rows = model_rows[model_rows["sample"].isin(model_rows["sample"].head(1))]
        if model_rows["step"].nunique() > 1:
            ends = model_rows["step"].min(), model_rows["step"].max()
            model = data.models[name]
            model_rows = model_rows.assign(width=model.width)
            start_rows, end_rows = (model_rows[model_rows["step"] == step] for step in ends)
            changes[f"{model.origin} on {model.treatment}"].append(change(start_rows, end_rows))
    bounds = {
        family: bound_repetitions(values) for family, values in changes.items() if len(values) > 1
    }
    if not bounds:
        raise NotMeasured(
            f"no fine-tuning has two seeds or more with tables/{table} at the first and the last step; without "
            "several seeds, a change cannot be told from chance"
        )
    return bounds
