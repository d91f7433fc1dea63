"""Statistics of curves over training, with bounds."""

import numpy as np

from shape_of_learning.claims.bounds import bound_by_jackknife, stack_bounds
from shape_of_learning.claims.criteria import Units
from shape_of_learning.claims.evidence import ClaimData, has_last_layer

FEWEST_STEPS = 4  # a beginning, a trough, a peak and an end
BEGINNING = 0.1  # the share of the steps that holds the trough of a first collapse


def phases_of_last_layer(data: ClaimData, estimators: tuple[str], falls_first: bool) -> Units:
    """Test whether a measure of the last layer turns twice during training.

    Returns
    -------
    Units
        Of each model, as logarithms of ratios: ``collapse``, the fall from the first step to the lowest step in the
        first tenth of the training; ``expansion``, the largest rise between two steps; ``compression``, the lesser of a
        rise to a peak and the fall from the peak to the last step; and ``phases``, the least of three changes: the fall
        to a trough, the rise from the trough to a later peak, and the fall from the peak to the last step. Bounds allow
        for the choice of the steps. If the measure rises first (`falls_first` is false), rises and falls change places.
    """
    data.require_training()
    units = {}
    for name, (curve,) in data.select_curves(*estimators).items():
        if len(curve.steps) < FEWEST_STEPS or not has_last_layer(data, name, curve):
            continue
        last_layer = data.keep_layers(name, estimators[0], curve.layers == curve.layers[-1])
        height = np.log(last_layer.means) * (1 if falls_first else -1)
        last = height.shape[-2] - 1
        end = max(data.models[name].last_step or 0, curve.steps[last])
        is_early = curve.steps <= BEGINNING * end
        falls = []
        rises = []
        compressions = []
        phases = []
        for trough in range(last):
            fall = height[..., 0, :] - height[..., trough, :]
            if trough and is_early[trough]:
                falls.append(bound_by_jackknife(fall))
            for peak in range(trough + 1, last + 1):
                rise = height[..., peak, :] - height[..., trough, :]
                rises.append(bound_by_jackknife(rise))
                if peak < last:
                    last_fall = height[..., peak, :] - height[..., last, :]
                    both = np.stack([rise, last_fall], axis=-2)
                    compressions.append(bound_by_jackknife(both).least())
                    if trough:
                        changes = np.stack([fall, rise, last_fall], axis=-2)
                        phases.append(bound_by_jackknife(changes).least())
        if not falls:
            continue
        units[name] = {
            "collapse": stack_bounds(falls).greatest(),
            "expansion": stack_bounds(rises).greatest(),
            "compression": stack_bounds(compressions).greatest(),
            "phases": stack_bounds(phases).greatest(),
        }
    steps = f"{FEWEST_STEPS} good steps, two of them in the first {BEGINNING:.0%}"
    data.require(units, f"`{estimators[0]}` of the last layer at {steps}")
    return units
