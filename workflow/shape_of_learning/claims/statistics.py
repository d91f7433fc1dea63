"""Statistics of claims that several papers use, at the last checkpoint of each model.

A statistic is a function of a :class:`.ClaimData`, the claim's estimators if it names any, and its arguments. It
returns the numbers of each unit, such as a model, with bounds. Contrasts are fixed before results are seen. If a
layer, step or model is chosen by its value, the bounds allow for all others that could have been chosen. The
statistics of only one paper are in its ``statistics.py``.
"""

from collections.abc import Sequence

from shape_of_learning.claims.bounds import bound_by_jackknife
from shape_of_learning.claims.criteria import Units
from shape_of_learning.claims.evidence import (
    ClaimData,
    average_layers,
    has_last_layer,
    select_common_layers,
)

MOST_LAYERS = 0.75  # the share of layers that must not contradict their mean


def mean_over_layers(data: ClaimData, estimators: Sequence[str]) -> Units:
    """Return the mean over layers of each model at its last checkpoint, with a number for each estimator."""
    return {
        name: dict(zip(estimators, map(average_layers, curves), strict=True))
        for name, curves in data.select_curves(*estimators).items()
    }


def difference_of_estimators(
    data: ClaimData, estimators: tuple[str, str], last_layer_only: bool = False
) -> Units:
    """Return the difference of two estimators for each model, averaged over common layers or at the last layer."""
    units = {}
    for name, curves in data.select_curves(*estimators).items():
        if not (common := select_common_layers(curves)):
            continue
        difference = common[0] - common[1]
        if last_layer_only:
            difference = difference[..., -1:, :]
        if not last_layer_only or all(has_last_layer(data, name, curve) for curve in curves):
            units[name] = {"difference": bound_by_jackknife(difference.mean(axis=-2))}
    where = "the last layer" if last_layer_only else "a layer"
    data.require(units, f"`{estimators[0]}` beside `{estimators[1]}` at {where}")
    return units
