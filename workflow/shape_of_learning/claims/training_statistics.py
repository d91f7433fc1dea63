"""Statistics of training, of means over layers by step. As in :mod:`.layer_statistics`."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from shape_of_learning.claims.evidence import NotMeasured, Reading, each_less_each
from shape_of_learning.claims.rules import PAIR, Bounded, Units, jackknifed, known, stacked
from shape_of_learning.errors import InputError

FEWEST_STEPS = 3  # for a curve to have something between its ends
MOST_STEPS_OF_RANKS = 8


def change_over_training(reading: Reading, estimators: Sequence[str], from_step: int = 0) -> Units:
    """Mean over layers at the last step less that at the first one from `from_step` on."""
    units = {}
    for name, curves in reading.curves(*estimators).items():
        means = [of.means[..., of.steps >= from_step, :] for of in curves]
        if all(each.shape[-2] > 1 for each in means):
            units[name] = {
                estimator: jackknifed(each[..., -1, :] - each[..., 0, :])
                for estimator, each in zip(estimators, means, strict=True)
            }
    reading.require(units, f"two sound steps from {from_step} on")
    return units


def growth_then_settling(reading: Reading, estimators: tuple[str], share: float) -> Units:
    """Growth over training, and how little of it is left for the second half.

    Returns
    -------
    Units
        Of each model ``growth``, the mean over layers at the last step less that at the first; and
        ``settling``, `share` of this growth less the change, up or down, over the second half of the
        steps; ``moving_on``, this change less `share` of the growth. Where no checkpoint is in the middle,
        the half begins before it for the former, and after it for the latter. A model without a checkpoint
        in the first half is left out.
    """
    units: dict[str, dict[str, Bounded]] = {}
    for name, (steps, (curve,)) in _curves(reading, *estimators).items():
        middle = steps[-1] / 2
        if steps[0] <= middle:
            last = curve[..., -1, :]
            before = max(place for place, step in enumerate(steps) if step <= middle)
            after = min(place for place, step in enumerate(steps) if step >= middle)
            growth, longer, shorter = (last - curve[..., at, :] for at in (0, before, after))
            settling = np.stack([share * growth - longer, share * growth + longer], axis=-2)
            moving_on = np.stack([shorter - share * growth, -shorter - share * growth], axis=-2)
            units[name] = {
                "growth": jackknifed(growth),
                "settling": jackknifed(settling).least(),
                "moving_on": jackknifed(moving_on).greatest(),
            }
    reading.require(units, "a sound step in the first half of its training")
    return units


def rise_then_fall(reading: Reading, estimators: tuple[str]) -> Units:
    """How far a curve rises to some step and falls from it, whichever is less, at the best of the steps.

    Both are logarithms of ratios of means over layers: from the first step to it, and from it to the last
    one.
    """
    return {
        name: {
            "rise_and_fall": _rises_and_falls(np.log(curve), range(1, len(steps) - 1)).greatest()
        }
        for name, (steps, (curve,)) in _curves(reading, *estimators).items()
    }


def peak_beside_warm_up(reading: Reading, estimators: tuple[str]) -> Units:
    """Whether a curve that rises and falls has its peak where the warm-up of the learning rate ends.

    Returns
    -------
    Units
        Of each model, in logarithms: ``elsewhere``, of the other steps between the ends that which is the
        best by rise and fall (:func:`rise_then_fall`) and by how far it lies above those around the end of
        the warm-up, the last one not after it and the first one not before it, whichever is least;
        ``at_warm_up``, rise and fall at the better of these.

    Raises
    ------
    NotMeasured
        If the warm-up of no model is known.
    """
    curves = _curves(reading, *estimators)
    warm_ups = {name: reading.models[name].warmup_steps for name in curves}
    ends = {name: end for name, end in warm_ups.items() if end is not None}
    reading.require(ends, "a known `warmup_steps`")
    units = {}
    for name, end in ends.items():
        steps, (curve,) = curves[name]
        before = [place for place, step in enumerate(steps) if step <= end][-1:]
        after = [place for place, step in enumerate(steps) if step >= end][:1]
        around = sorted({*before, *after})
        between = [place for place in range(1, len(steps) - 1) if place not in around]
        if between:
            logarithm = np.log(curve)
            elsewhere = _rises_and_falls(logarithm, between, [0, -1, *around])
            at = _rises_and_falls(logarithm, around)
            units[name] = {"elsewhere": elsewhere.greatest(), "at_warm_up": at.greatest()}
    reading.require(units, "sound steps beside the ends and those around the end of the warm-up")
    return units


def higher_at_peak_and_end(reading: Reading, estimators: tuple[str]) -> Units:
    """The first model over the second, at the highest point of each curve and at their ends.

    Both parts, ``peak`` and ``end``, are logarithms of ratios of means over layers.
    """
    curves = _curves(reading, *estimators)
    if len(curves) != 2:
        raise InputError(
            f"claim `{reading.claim.name}`: `{reading.claim.statistic}` is of two models, and needs both; "
            "name two under `models`"
        )
    apart = each_less_each(*(np.log(curve) for _, (curve,) in curves.values()))
    peak, end = jackknifed(apart).least().greatest(), jackknifed(apart[..., -1, -1, :])
    return {PAIR.join(curves): {"peak": peak, "end": end}}


def concordance(reading: Reading, estimators: Sequence[str]) -> Units:
    """Whether estimators agree on how training changes a mean over layers.

    Returns
    -------
    Units
        Of each model the least change on which all agree, negative where two contradict each other:
        ``direction``, of the changes from the first step to the middle one and from there to the last, the
        lesser; ``rank``, of the changes between any two of up to eight steps from the first to the last, the
        median. Changes are logarithms of ratios.
    """
    units = {}
    for name, (steps, curves) in _curves(reading, *estimators).items():
        logarithms = np.stack([np.log(curve) for curve in curves], axis=-2)
        last = len(steps) - 1
        thirds = [(0, last // 2), (last // 2, last)]
        number = min(len(steps), MOST_STEPS_OF_RANKS)
        spaced = np.linspace(0, last, number).round().astype(int).tolist()
        pairs = list(combinations(spaced, 2))
        units[name] = {
            "direction": stacked([_agreed_change(logarithms, pair) for pair in thirds]).least(),
            "rank": _median(stacked([_agreed_change(logarithms, pair) for pair in pairs])),
        }
    return units


def correlation_with_loss(reading: Reading, estimators: tuple[str], from_step: int) -> Units:
    """Pearson's correlation of a measure of the output embeddings with the loss, from `from_step` on."""
    losses = pd.concat(reading.rows("verdicts").values())[["model", "revision", "loss"]]
    units = {}
    for name, rows in reading.rows("weights").items():
        is_meant = rows["estimator"].isin(estimators) & rows["matrix"].isin(("output", "tied"))
        measured = rows[is_meant & (rows["step"] >= from_step)]
        both = measured.merge(losses, on=["model", "revision"]).dropna(subset=["value", "loss"])
        if len(both) < FEWEST_STEPS:
            raise NotMeasured(
                f"`{name}` has `{estimators[0]}` and a loss at {len(both)} steps from {from_step} on, "
                f"and {FEWEST_STEPS} are needed"
            )
        with np.errstate(invalid="ignore"):  # undefined where one does not vary
            units[name] = {"correlation": known(np.corrcoef(both["value"], both["loss"])[0, 1])}
    return units


def _curves(reading: Reading, *estimators: str) -> dict[str, tuple[list[float], list[np.ndarray]]]:
    """Steps that all estimators of a model have, and means over layers of each, (..., steps, 17)."""
    found = {}
    for name, curves in reading.curves(*estimators).items():
        common = [step for step in curves[0].steps.tolist() if all(step in c.steps for c in curves)]
        if len(common) >= FEWEST_STEPS:
            means = [c.means[..., np.isin(c.steps, common), :] for c in curves]
            found[name] = common, means
    reading.require(found, f"`{estimators[0]}` at {FEWEST_STEPS} sound steps")
    return found


def _rises_and_falls(
    logarithm: np.ndarray, places: Sequence[int], ends: Sequence[int] = (0, -1)
) -> Bounded:
    """The lesser of rise and fall at some of the steps, counted from 0; or the least above other `ends`."""
    at, beside = (logarithm[..., list(steps), :] for steps in (places, ends))
    return jackknifed(each_less_each(at, beside)).least()


def _agreed_change(logarithms: np.ndarray, pair: tuple[int, int]) -> Bounded:
    """The least change of all estimators up, or down, whichever is more."""
    change = logarithms[..., pair[1], :, :] - logarithms[..., pair[0], :, :]
    return stacked([jackknifed(change).least(), jackknifed(-change).least()]).greatest()


def _median(of: Bounded) -> Bounded:
    """The lower one of two, so that more than half are as large."""
    return of.ranked(of.estimate.shape[-1] // 2 + 1)
