"""Statistics of layers and models, at the last checkpoint.

Each is given a :class:`.ClaimData` and the claim's arguments, and gives the parts of its units
(:mod:`.rules`). Contrasts are fixed beforehand: no layer, step or model is chosen by its value, or if so,
bounds allow for all that might have been chosen. Of ``estimators: tuple[str, str]`` a claim names two.
Planning reads the names of arguments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from shape_of_learning.claims.bounds import (
    BoundedNumber,
    apart,
    bound_by_jackknife,
    bound_exactly,
    make_undecided,
    peak,
)
from shape_of_learning.claims.evidence import LayerValues
from shape_of_learning.claims.reading import ClaimData, select_common_layers, subtract_each
from shape_of_learning.claims.rules import PAIR, Units

FEWEST_OF_RANGE = 3  # blocks
FEWEST_OF_PEAK = 5  # one with two on each side
OUTER = 0.2  # of the layers, at each end
OF_OUTPUTS = ("output", "tied", "final_norm")  # what is measured of the end of a model


def mean_over_layers(reading: ClaimData, estimators: Sequence[str]) -> Units:
    """Of each model the mean over layers at the last checkpoint; the parts are the estimators."""
    return {
        name: dict(zip(estimators, map(_mean, curves), strict=True))
        for name, curves in reading.select_curves(*estimators).items()
    }


def peak_in_the_middle(reading: ClaimData, estimators: tuple[str], dip: float) -> Units:
    """Whether a profile rises to a layer of its middle and falls from it (:func:`.peak`).

    The middle is the layers without a fifth of them at each end, two at least, above each of which its height
    is measured. So a plateau with a low layer at each end has none, and neither has a fall from the second
    layer on.
    """
    units = {}
    for name, values in _profiles(reading, estimators, FEWEST_OF_PEAK).items():
        number = values.shape[-2]
        outer = max(2, round(OUTER * number))
        middle, ends = range(outer, number - outer), [*range(outer), *range(number - outer, number)]
        units[name] = peak(values, middle, ends, dip)
    return units


def flatter(reading: ClaimData, estimators: tuple[str]) -> Units:
    """Range of a decoder's profile less that of an encoder's, of each pair of one and the other.

    The range is the largest difference of two blocks, with bounds that allow for its choice, so that noise alone
    makes no profile uneven.
    """
    ranges = {}
    for name, values in _profiles(reading, estimators, FEWEST_OF_RANGE).items():
        differences = subtract_each(values, values)
        pairs = differences.reshape(*differences.shape[:-3], -1, differences.shape[-1])
        ranges[name] = bound_by_jackknife(pairs).greatest()
    return {
        pair: {"range_over_range": apart(decoder, encoder)}
        for pair, (decoder, encoder) in _pairs(reading, ranges, "decoder", "encoder").items()
    }


def difference_of_estimators(
    reading: ClaimData, estimators: tuple[str, str], last_layer_only: bool = False
) -> Units:
    """Of each model one estimator less another, mean over the layers that both have, or of the last layer."""
    units = {}
    for name, curves in reading.select_curves(*estimators).items():
        first, second = select_common_layers(curves)
        difference = first - second
        if last_layer_only:
            difference = difference[..., -1:, :]
        if not last_layer_only or all(_has_last_layer(reading, name, curve) for curve in curves):
            units[name] = {"difference": bound_by_jackknife(difference.mean(axis=-2))}
    reading.require(units, f"`{estimators[0]}` beside `{estimators[1]}` at the last layer")
    return units


def encoders_less_decoders(reading: ClaimData, estimators: tuple[str]) -> Units:
    """Means over layers of each ``encoder`` and each ``decoder``, and the ``difference`` of their intervals."""
    means = {name: _mean(curve) for name, (curve,) in reading.select_curves(*estimators).items()}
    return {
        pair: {"difference": apart(encoder, decoder), "encoder": encoder, "decoder": decoder}
        for pair, (encoder, decoder) in _pairs(reading, means, "encoder", "decoder").items()
    }


def norms_beside_linearity(reading: ClaimData, estimators: tuple[str, str, str]) -> Units:
    """Norm ratios of blocks, and whether they go with what the residual connection adds to linearity.

    Parameters
    ----------
    reading : Reading
    estimators : sequence of str
        A norm ratio; the linearity of blocks, with and without the residual connection.

    Returns
    -------
    Units
        Of each model ``norm_ratio``, its mean over blocks, and ``rank_correlation``, over its blocks, of the
        ratio and the first linearity less the second.
    """
    units = {}
    for name, curves in reading.select_curves(*estimators).items():
        ratio, whole, increment = select_common_layers(curves)
        correlation = bound_by_jackknife(_rank_correlation(ratio, whole - increment))
        units[name] = {
            "norm_ratio": bound_by_jackknife(ratio.mean(axis=-2)),
            "rank_correlation": replace(correlation, limits=(-1, 1)),
        }
    return units


def isotropic_matrices(reading: ClaimData, estimators: tuple[str, str]) -> Units:
    """Of each model the isotropy I of its output embeddings, and a cosine of its last layer, which may be unknown.

    Parameters
    ----------
    reading : Reading
    estimators : sequence of str
        ln I of a matrix, and a cosine of hidden states.
    """
    matrix, cosine = estimators
    of_weights = _weights(reading, matrix)
    cosines = {
        name: bound_by_jackknife(curve.last[..., -1, :])
        for name, (curve,) in reading.select_curves(cosine).items()
        if name in of_weights and _has_last_layer(reading, name, curve)
    }
    reading.require(cosines, f"`{matrix}` beside `{cosine}`")
    none = make_undecided(bound_exactly(np.nan))
    return {
        name: {"isotropy": bound_exactly(np.exp(isotropy)), "cosine": cosines.get(name, none)}
        for name, isotropy in of_weights.items()
    }


def isotropy_beside_others(
    reading: ClaimData, estimators: tuple[str], of: Sequence[str], others: Sequence[str]
) -> Units:
    """Isotropy I of the output embeddings of some models, and beside that of others.

    Returns
    -------
    Units
        Of each model of `of`: ``isotropy``; ``over_least`` and ``over_greatest``, it less the least and the
        greatest of the others'.
    """
    isotropy = {name: np.exp(value) for name, value in _weights(reading, *estimators).items()}
    reading.require_each(isotropy, [*of, *others], f"`{estimators[0]}`")
    around = [isotropy[name] for name in others]
    less = {"isotropy": 0, "over_least": min(around), "over_greatest": max(around)}
    return {
        name: {part: bound_exactly(isotropy[name] - other) for part, other in less.items()}
        for name in of
    }


def weights_beside(reading: ClaimData, estimators: Sequence[str], reference: str) -> Units:
    """Measures of the weights of each model, less those of the reference; the parts are the estimators."""
    found = {estimator: _weights(reading, estimator) for estimator in estimators}
    for estimator, of in found.items():
        reading.require_each(of, [reference], f"`{estimator}`")
    whole = [name for name in found[estimators[0]] if all(name in of for of in found.values())]
    return {
        name: {e: bound_exactly(found[e][name] - found[e][reference]) for e in estimators}
        for name in whole
        if name != reference
    }


def _weights(reading: ClaimData, estimator: str) -> dict[str, float]:
    """A measure of the output embeddings or the final norm, of each model at its last checkpoint."""
    found = {}
    for name, rows in reading.select_rows("weights").items():
        is_meant = (rows["estimator"] == estimator) & rows["matrix"].isin(OF_OUTPUTS)
        own = rows[is_meant].dropna(subset="value")
        if len(own):
            found[name] = float(own.loc[own["step"].fillna(0).idxmax(), "value"])
    reading.require(found, f"`{estimator}`")
    return found


def _pairs(reading: ClaimData, measured: Mapping[str, Any], *roles: str) -> dict[str, list[Any]]:
    """What is measured of two models, one of each role, by the name of their unit."""
    named = [[name for name in measured if reading.models[name].role == role] for role in roles]
    return {PAIR.join(pair): [measured[name] for name in pair] for pair in product(*named)}


def _has_last_layer(reading: ClaimData, model: str, curve: LayerValues) -> bool:
    """Whether the last layer is defined, or else another one would stand in its place."""
    return bool(curve.layers[-1] == reading.models[model].layers)


def _mean(curve: LayerValues) -> BoundedNumber:
    """The mean over layers at the last checkpoint."""
    return bound_by_jackknife(curve.means[..., -1, :])


def _profiles(reading: ClaimData, estimators: Sequence[str], fewest: int) -> dict[str, np.ndarray]:
    """Values of the blocks at the last checkpoint, as the plots that the authors released have them.

    These have no layer 0, which is no block, and not the last one, which most models give after their final
    norm; it counts where it is known to be from before. A profile in which a block is undefined has no shape.
    """
    found = {}
    for name, (curve,) in reading.select_curves(*estimators).items():
        last = reading.models[name].layers - (not curve.before_norm)
        is_block = (curve.layers >= 1) & (curve.layers <= last)
        if last >= fewest and is_block.sum() == last:
            found[name] = curve.last[..., is_block, :]
    reading.require(
        found, f"`{estimators[0]}` at all blocks before the last one, {fewest} at least,"
    )
    return found


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman's correlation along the last but one axis; NaN where all of one are equal."""
    from scipy.stats import rankdata

    x, y = (rankdata(each, axis=-2) for each in (x, y))
    x, y = (each - each.mean(axis=-2, keepdims=True) for each in (x, y))
    with np.errstate(invalid="ignore"):
        return (x * y).sum(axis=-2) / np.sqrt((x**2).sum(axis=-2) * (y**2).sum(axis=-2))
