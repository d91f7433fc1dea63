"""Statistics of the linearity of blocks, of changed blocks and of twins, with bounds.

Tables of changed blocks have no jackknife values, so their numbers count as exact. Differences between twins and
originals have an interval over seeds.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from shape_of_learning.claims.bounds import (
    BoundedNumber,
    bound_by_jackknife,
    bound_exactly,
    bound_repetitions,
    find_ceiling,
    make_undecided,
    subtract_numbers,
)
from shape_of_learning.claims.criteria import Units
from shape_of_learning.claims.evidence import (
    ClaimData,
    NotMeasured,
    average_layers,
    pair_models,
    select_common_layers,
)
from shape_of_learning.claims.statistics import MOST_LAYERS
from shape_of_learning.words import enumerate_items

HALF = 0.5  # a share of the blocks
CHANGES = ("dropped", "replaced")
MOST_LINEAR_FIRST = "most_linear_first"
LEAST_LINEAR_FIRST = "least_linear_first"


def encoders_less_decoders(data: ClaimData, estimators: tuple[str]) -> Units:
    """Return for each pair the mean over layers of the ``encoder`` and of the ``decoder``, and the ``difference``."""
    means = {
        name: average_layers(curve) for name, (curve,) in data.select_curves(*estimators).items()
    }
    return {
        pair: {
            "difference": subtract_numbers(encoder, decoder),
            "encoder": encoder,
            "decoder": decoder,
        }
        for pair, (encoder, decoder) in pair_models(data, means, "encoder", "decoder").items()
    }


def increments_less_outputs(data: ClaimData, estimators: tuple[str, str]) -> Units:
    """Return the linearity of increments less the linearity of outputs, for each model.

    Returns
    -------
    Units
        Of each model, ``difference``, the mean over blocks; and ``of_layers``, the difference that three quarters of
        the blocks do not exceed.
    """
    units = {}
    for name, curves in data.select_curves(*estimators).items():
        if not (common := select_common_layers(curves)):
            continue
        increment, whole = common
        units[name] = {
            "difference": bound_by_jackknife((increment - whole).mean(axis=-2)),
            "of_layers": find_ceiling(bound_by_jackknife(increment - whole), MOST_LAYERS),
        }
    data.require(units, f"`{estimators[0]}` beside `{estimators[1]}` at a block")
    return units


def norms_beside_linearity(data: ClaimData, estimators: tuple[str, str, str]) -> Units:
    """Return norm ratios of blocks, and the linearity that the residual connection adds.

    Parameters
    ----------
    data : ClaimData
    estimators : sequence of str
        The names of a norm ratio, and of the linearity of blocks with and without the residual connection.

    Returns
    -------
    Units
        Of each model, ``norm_ratio``, the ratio that half of the blocks do not exceed; ``ratio_of_most``, the ratio
        that three quarters of the blocks do not exceed; ``gain``, the mean over blocks of the linearity with the
        residual connection less the linearity without it; and ``rank_correlation``, the correlation over blocks of the
        ratio and this difference, unknown if all blocks are equal.
    """
    units = {}
    for name, curves in data.select_curves(*estimators).items():
        if not (common := select_common_layers(curves)):
            continue
        ratio, whole, increment = common
        correlation = bound_by_jackknife(_rank_correlation(ratio, whole - increment))
        if np.isnan(correlation.estimate).any():
            correlation = make_undecided(correlation)
        units[name] = {
            "norm_ratio": find_ceiling(bound_by_jackknife(ratio), HALF),
            "ratio_of_most": find_ceiling(bound_by_jackknife(ratio), MOST_LAYERS),
            "gain": bound_by_jackknife((whole - increment).mean(axis=-2)),
            "rank_correlation": replace(correlation, limits=(-1, 1)),
        }
    data.require(units, f"{enumerate_items([f'`{name}`' for name in estimators])} at a block")
    return units


def change_over_training(data: ClaimData, estimators: Sequence[str], back: float) -> Units:
    """Return the change of the mean over layers from the first step to the last, and the rises on the way.

    Returns
    -------
    Units
        Of each model and estimator, ``ESTIMATOR``, the change; ``ESTIMATOR_throughout``, the change plus the largest
        rise on the way divided by `back`; and ``ESTIMATOR_of_layers``, the change that three quarters of the layers do
        not exceed. ``ESTIMATOR_throughout`` is below zero if every rise is smaller than the share `back` of the fall.
    """
    data.require_training()
    units: dict[str, dict[str, BoundedNumber]] = {}
    for name, curves in data.select_curves(*estimators).items():
        units[name] = {}
        for estimator, curve in zip(estimators, curves, strict=True):
            means = curve.means
            change = means[..., -1, :] - means[..., 0, :]
            pairs = combinations(range(means.shape[-2]), 2)
            rises = np.stack([means[..., j, :] - means[..., i, :] for i, j in pairs], axis=-2)
            units[name][estimator] = bound_by_jackknife(change)
            throughout = bound_by_jackknife(change[..., None, :] + rises / back).greatest()
            units[name][f"{estimator}_throughout"] = throughout
            layer_changes = bound_by_jackknife(
                curve.values[..., -1, :, :] - curve.values[..., 0, :, :]
            )
            units[name][f"{estimator}_of_layers"] = find_ceiling(layer_changes, MOST_LAYERS)
    return units


def cost_of_edits(data: ClaimData, share: float) -> Units:
    """Return the perplexity with a share of the blocks changed.

    Returns
    -------
    Units
        Of each model, ``dropped`` and ``replaced``, the perplexity over that of the unchanged model, with the most
        linear blocks changed; ``dropped_twice`` and ``replaced_twice``, the same ratio with twice as many blocks
        changed; and ``dropped_over_reverse`` and ``replaced_over_reverse``, the first ratio less the ratio with the
        least linear blocks changed. Numbers that are not measured are unknown.
    """
    units: dict[str, dict[str, BoundedNumber]] = {}
    for name, rows in data.select_rows("edits").items():
        changed_blocks = max(1, round(share * data.models[name].layers))
        perplexity = rows.set_index(["order", "kind", "k"])["perplexity"].to_dict()
        parts = units[name] = {}
        for kind in CHANGES:
            ratio, reverse, twice = (
                perplexity.get((order, kind, k), np.nan) / perplexity.get((order, kind, 0), np.nan)
                for order, k in (
                    (MOST_LINEAR_FIRST, changed_blocks),
                    (LEAST_LINEAR_FIRST, changed_blocks),
                    (MOST_LINEAR_FIRST, 2 * changed_blocks),
                )
            )
            # The difference of two infinite ratios counts as 0.
            difference = ratio - reverse if ratio != reverse else 0.0
            parts[kind] = _bound_if_known(ratio)
            parts[f"{kind}_twice"] = _bound_if_known(twice)
            parts[f"{kind}_over_reverse"] = _bound_if_known(difference)
        if all(np.isnan(parts[kind].estimate) for kind in CHANGES):
            raise NotMeasured(
                f"{changed_blocks} changed blocks of model `{name}`, most linear first, are not measured; change "
                "`most_blocks`, `orders` or `kinds` of `block_editing`"
            )
    return units


def _bound_if_known(value: float) -> BoundedNumber:
    return make_undecided(bound_exactly(value)) if np.isnan(value) else bound_exactly(value)


def twins_less_originals(
    data: ClaimData, estimators: tuple[str], regulariser: str, pairs: int
) -> Units:
    """Compare twins with their originals at each layer, and average over the pairs, which have one seed each.

    Returns
    -------
    Units
        Of each treatment, ``difference``, the mean over layers of the twin less the original; and ``of_layers``, the
        difference that three quarters of the layers do not exceed.
    """
    quantity = f"`{estimators[0]}`"
    _require_pairs(_count_twins(data, regulariser), regulariser, pairs, quantity)
    values = {}
    layer_ceilings = {}
    for name, (twin,) in data.select_curves(*estimators).items():
        for original in data.find_curves(data.models[name].origin, *estimators):
            common = select_common_layers([twin, original])
            if common and original.steps[-1] == twin.steps[-1]:
                twin_values, original_values = common
                difference = (twin_values - original_values)[..., 0]
                values[name] = difference.mean(axis=-1)
                layer_ceilings[name] = find_ceiling(bound_exactly(difference), MOST_LAYERS).estimate
    ceilings = _average_pairs(data, layer_ceilings, regulariser, pairs, quantity)
    return {
        treatment: {**numbers, "of_layers": ceilings[treatment]["difference"]}
        for treatment, numbers in _average_pairs(data, values, regulariser, pairs, quantity).items()
    }


def twins_loss_less_originals(data: ClaimData, regulariser: str, pairs: int) -> Units:
    """Return the held-out loss of twins less that of their originals; see :func:`twins_less_originals`."""
    quantity = "a held-out loss"
    _require_pairs(_count_twins(data, regulariser), regulariser, pairs, quantity)
    values = {}
    for name, rows in data.select_rows("training").items():
        original = data.find_rows(data.models[name].origin, "training")
        joined_rows = rows.nlargest(1, "step").merge(original.nlargest(1, "step"), on="step")
        difference = (joined_rows["held_out_loss_x"] - joined_rows["held_out_loss_y"]).dropna()
        if len(difference):
            values[name] = difference.to_numpy()[0]
    return _average_pairs(data, values, regulariser, pairs, quantity)


def _average_pairs(
    data: ClaimData, values: Mapping[str, np.ndarray], regulariser: str, pairs: int, quantity: str
) -> Units:
    """Average over the pairs of each treatment with a regulariser; raise NotMeasured if there are too few pairs."""
    treatments = defaultdict(list)
    for name, value in values.items():
        treatment = data.models[name].treatment
        if treatment.split()[0] == regulariser:
            treatments[treatment].append(value)
    _require_pairs(map(len, treatments.values()), regulariser, pairs, quantity)
    return {
        treatment: {"difference": bound_repetitions(np.stack(pair_values, axis=-1))}
        for treatment, pair_values in treatments.items()
        if len(pair_values) >= pairs
    }


def _require_pairs(counts: Iterable[int], regulariser: str, pairs: int, quantity: str) -> None:
    """Raise NotMeasured if no treatment has as many pairs as the claim needs."""
    most_pairs = max(counts, default=0)
    if most_pairs < pairs:
        raise NotMeasured(
            f"the run has {most_pairs} of the {pairs} pairs needed; a pair is a twin trained with the term "
            f"`{regulariser}` and its original, of one seed, both with {quantity} at the same last step"
        )


def _count_twins(data: ClaimData, regulariser: str) -> Iterable[int]:
    """Count the twins of each treatment with a regulariser, measured or not."""
    treatments = [model.treatment for model in data.models.values()]
    return Counter(name for name in treatments if name.split()[:1] == [regulariser]).values()


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return Spearman's correlation along the last but one axis; NaN if all values of `x` or of `y` are equal."""
    from scipy.stats import rankdata

    x, y = (rankdata(values, axis=-2) for values in (x, y))
    x, y = (ranks - ranks.mean(axis=-2, keepdims=True) for ranks in (x, y))
    with np.errstate(invalid="ignore"):
        return (x * y).sum(axis=-2) / np.sqrt((x**2).sum(axis=-2) * (y**2).sum(axis=-2))
