"""Statistics of training, of means over layers by step. As in :mod:`.layer_statistics`."""

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from shape_of_learning.claims.bounds import (
    ROUNDING,
    TAIL,
    BoundedNumber,
    bound_by_jackknife,
    bound_correlation,
    bound_exactly,
    make_undecided,
    peak,
    stack_bounds,
)
from shape_of_learning.claims.reading import ClaimData, NotMeasured, subtract_each
from shape_of_learning.claims.rules import PAIR, TOGETHER, Units
from shape_of_learning.errors import InputError

FEWEST_STEPS = 3  # for a curve to have something between its ends
FEWEST_OF_CHANGES = 6  # steps, for five changes
MOST_STEPS_OF_RANKS = 8


def change_over_training(reading: ClaimData, estimators: Sequence[str], back: float) -> Units:
    """Mean over layers at the last step less that at the first one; by the ends, and by the whole curve.

    Returns
    -------
    Units
        Of each model and estimator, ``ESTIMATOR``, the change; and ``ESTIMATOR_throughout``, this change and
        the largest rise on the way over `back`, below zero where no more than this share of a fall comes back.
    """
    units: dict[str, dict[str, BoundedNumber]] = {}
    for name, curves in reading.select_curves(*estimators).items():
        units[name] = {}
        for estimator, of in zip(estimators, curves, strict=True):
            means = of.means
            change = means[..., -1, :] - means[..., 0, :]
            pairs = combinations(range(means.shape[-2]), 2)
            rises = np.stack([means[..., j, :] - means[..., i, :] for i, j in pairs], axis=-2)
            units[name][estimator] = bound_by_jackknife(change)
            throughout = bound_by_jackknife(change[..., None, :] + rises / back).greatest()
            units[name][f"{estimator}_throughout"] = throughout
    return units


def growth_then_settling(reading: ClaimData, estimators: tuple[str], share: float) -> Units:
    """Growth over training, and whether it is on the way to its end, and little of it left for the second half.

    Returns
    -------
    Units
        Of each model ``growth``, the mean over layers at the last step less that at the first. Each less
        `share` of the size of this change: ``falls_back``, how far the highest step lies above the last one;
        ``below_start``, how far the lowest one lies below the first; ``still_to_grow``, how far the lowest one
        of the second half of training lies below the last; and ``moving_on``, the largest of these three. And
        ``settling``, which is below zero where one of them may be above it: the second half begins before the
        middle here, and after it above, where no checkpoint is in the middle. A model without a checkpoint
        in the first half is left out.
    """
    units: dict[str, dict[str, BoundedNumber]] = {}
    for name, (steps, (curve,)) in _select_curves(reading, *estimators).items():
        middle = _find_end(reading, name, steps) / 2
        if steps[0] <= middle:
            last, first = curve[..., -1:, :], curve[..., :1, :]
            before = max(place for place, step in enumerate(steps) if step <= middle)
            after = min(place for place, step in enumerate(steps) if step >= middle)
            allowed = share * np.abs(last - first)
            kinds = {
                "falls_back": curve - last - allowed,
                "below_start": first - curve - allowed,
                "still_to_grow": last - curve[..., after:, :] - allowed,
            }
            surely = np.concatenate([*kinds.values()], axis=-2)
            perhaps = np.concatenate([surely, last - curve[..., before:, :] - allowed], axis=-2)
            units[name] = {
                "growth": bound_by_jackknife((last - first)[..., 0, :]),
                "settling": bound_by_jackknife(-perhaps).least(),
                "moving_on": bound_by_jackknife(surely).greatest(),
                **{part: bound_by_jackknife(each).greatest() for part, each in kinds.items()},
            }
    reading.require(units, "a sound step in the first half of its training")
    return units


def rise_then_fall(reading: ClaimData, estimators: tuple[str], dip: float) -> Units:
    """Whether a curve rises to a step of the first half of training and falls from it (:func:`.peak`).

    In logarithms of means over layers, above the first step and the last one, whichever is less.
    """
    units = {}
    for name, (steps, (curve,)) in _select_curves(reading, *estimators).items():
        half = _find_end(reading, name, steps) / 2
        early = [place for place in range(1, len(steps) - 1) if steps[place] <= half]
        if early:
            units[name] = peak(np.log(curve), early, [0, -1], dip)
    reading.require(units, "a sound step between the first one and the middle of its training")
    return units


def peak_beside_warm_up(reading: ClaimData, estimators: tuple[str]) -> Units:
    """Whether curves that rise and fall have their peaks where the warm-up of the learning rate puts them.

    Returns
    -------
    Units
        Of each model, in logarithms: ``elsewhere``, of the other steps between the ends that which is the
        best by rise and fall (:func:`rise_then_fall`) and by how far it lies above those around the end of
        the warm-up, the last one not after it and the first one not before it, whichever is least;
        ``at_warm_up``, rise and fall at the better of these. Of all together: ``multiples_apart``, the logarithm
        of by how much the peaks of two trainings differ in multiples of their warm-ups, and ``steps_apart``,
        in steps, beyond the steps between which each may be; negative where one multiple, or step, fits all.
        Seeds of a training may have theirs between the first and the last of these steps. Unknown unless two
        trainings have a peak.

    Raises
    ------
    NotMeasured
        If the warm-up of no model is known.
    """
    curves = _select_curves(reading, *estimators)
    warm_ups = {name: reading.models[name].warmup_steps for name in curves}
    ends = {name: end for name, end in warm_ups.items() if end}
    reading.require(ends, "a known `warmup_steps`")
    units: dict[str, dict[str, BoundedNumber]] = {}
    peaks: dict[str, list[tuple[BoundedNumber, float]]] = defaultdict(list)
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
            low, _ = stack_bounds([*units[name].values()]).greatest().bounds(TAIL, TAIL)
            if np.all(low > 0):  # else it has no peak that could be anywhere
                training = reading.models[name].training or name
                peaks[training].append((_find_peak(logarithm, steps), -np.log(end)))
    reading.require(units, "sound steps beside the ends and those around the end of the warm-up")
    none = make_undecided(bound_exactly(math.nan))
    together = (
        {
            "multiples_apart": _ranges_apart(
                [[_shift_bounds(*of) for of in p] for p in peaks.values()]
            ),
            "steps_apart": _ranges_apart([[of for of, _ in p] for p in peaks.values()]),
        }
        if len(peaks) > 1
        else {"multiples_apart": none, "steps_apart": none}
    )
    return {**units, TOGETHER: together}


def higher_at_peak_and_end(reading: ClaimData, estimators: tuple[str]) -> Units:
    """The first model over the second, at the highest point of each curve and at their ends.

    Both parts, ``peak`` and ``end``, are logarithms of ratios of means over layers.
    """
    curves = _select_curves(reading, *estimators)
    if len(curves) != 2:
        raise InputError(
            f"claim `{reading.claim.name}`: `{reading.claim.statistic}` is of two models, and needs both; "
            "name two under `models`"
        )
    apart = subtract_each(*(np.log(curve) for _, (curve,) in curves.values()))
    peak, end = (
        bound_by_jackknife(apart).least().greatest(),
        bound_by_jackknife(apart[..., -1, -1, :]),
    )
    return {PAIR.join(curves): {"peak": peak, "end": end}}


def concordance(reading: ClaimData, estimators: Sequence[str]) -> Units:
    """Whether estimators agree on how training changes a mean over layers.

    Returns
    -------
    Units
        Of each model the least change on which all agree, negative where two contradict each other:
        ``direction``, of the changes from the first step to the middle one and from there to the last, the
        lesser; ``rank``, of the changes between any two of up to eight steps from the first to the last, what
        three quarters of them reach. Changes are logarithms of ratios.
    """
    units = {}
    for name, (steps, curves) in _select_curves(reading, *estimators).items():
        logarithms = np.stack([np.log(curve) for curve in curves], axis=-2)
        last = len(steps) - 1
        thirds = [(0, last // 2), (last // 2, last)]
        number = min(len(steps), MOST_STEPS_OF_RANKS)
        spaced = np.linspace(0, last, number).round().astype(int).tolist()
        pairs = list(combinations(spaced, 2))
        units[name] = {
            "direction": stack_bounds(
                [_agreed_change(logarithms, pair) for pair in thirds]
            ).least(),
            "rank": _three_quarters(
                stack_bounds([_agreed_change(logarithms, pair) for pair in pairs])
            ),
        }
    return units


def correlation_with_loss(reading: ClaimData, estimators: tuple[str], from_step: int) -> Units:
    """Pearson's correlation of changes of a measure of the output embeddings with changes of the loss.

    From each step to the next, from `from_step` on. Values themselves drift: of two independent curves that
    rise and fall throughout, the correlation is beyond .8 in nine of ten.
    """
    losses = pd.concat(reading.select_rows("verdicts").values())[["model", "revision", "loss"]]
    units = {}
    for name, rows in reading.select_rows("weights").items():
        is_meant = rows["estimator"].isin(estimators) & rows["matrix"].isin(("output", "tied"))
        measured = rows[is_meant & (rows["step"] >= from_step)]
        both = measured.merge(losses, on=["model", "revision"]).dropna(subset=["value", "loss"])
        if len(both) < FEWEST_OF_CHANGES:
            raise NotMeasured(
                f"`{name}` has both `{estimators[0]}` and a loss at {len(both)} of its steps from step "
                f"{from_step:,} on, and {FEWEST_OF_CHANGES} are needed"
            )
        value, loss = both.sort_values("step")[["value", "loss"]].diff().iloc[1:].to_numpy().T
        with np.errstate(invalid="ignore"):  # undefined where one does not vary
            units[name] = {
                "correlation": bound_correlation(np.corrcoef(value, loss)[0, 1], len(value))
            }
    return units


def _select_curves(
    reading: ClaimData, *estimators: str
) -> dict[str, tuple[list[float], list[np.ndarray]]]:
    """Steps that all estimators of a model have, and means over layers of each, (..., steps, 17)."""
    found = {}
    for name, curves in reading.select_curves(*estimators).items():
        common = [step for step in curves[0].steps.tolist() if all(step in c.steps for c in curves)]
        if len(common) >= FEWEST_STEPS:
            means = [c.means[..., np.isin(c.steps, common), :] for c in curves]
            found[name] = common, means
    reading.require(found, f"`{estimators[0]}` at {FEWEST_STEPS} sound steps")
    return found


def _rises_and_falls(
    logarithm: np.ndarray, places: Sequence[int], ends: Sequence[int] = (0, -1)
) -> BoundedNumber:
    """The lesser of rise and fall at some of the steps, counted from 0; or the least above other `ends`."""
    at, beside = (logarithm[..., list(steps), :] for steps in (places, ends))
    return bound_by_jackknife(subtract_each(at, beside)).least()


def _find_end(reading: ClaimData, model: str, steps: Sequence[float]) -> float:
    """The last step of a training; the last one that was seen where nothing tells."""
    return max(reading.models[model].last_step or 0, steps[-1])


def _find_peak(logarithm: np.ndarray, steps: Sequence[float]) -> BoundedNumber:
    """Between which steps a curve has its peak, in logarithms, along a last axis of two.

    The estimate has the steps beside the highest one. Of the bounds, the first is a range that holds that of the
    peak, from the steps beside all that are not shown to be lower; the second one, a range within it.
    """
    inside = range(1, len(steps) - 1)
    known = np.log(np.maximum(steps, 0.5))  # of step 0, half a step

    def candidate_range(is_candidate: np.ndarray) -> np.ndarray:
        first = is_candidate.argmax(axis=-1)
        last = is_candidate.shape[-1] - 1 - is_candidate[..., ::-1].argmax(axis=-1)
        return np.stack([known[first], known[last + 2]], axis=-1)

    mean = logarithm[..., inside, 0]
    estimate = candidate_range(mean == mean.max(axis=-1, keepdims=True))

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        lower = []  # whether a place is shown to be
        for place in inside:
            others = [other for other in inside if other != place]
            if not others:
                return estimate, estimate
            less = bound_by_jackknife(logarithm[..., others, :] - logarithm[..., [place], :])
            lower.append(less.bounds(min(below, above) / len(others), 0.5)[0].max(axis=-1) > 0)
        may_be = ~np.stack(lower, axis=-1)
        first = may_be.argmax(axis=-1)
        last = may_be.shape[-1] - 1 - may_be[..., ::-1].argmax(axis=-1)
        # Wherever the peak is, its range holds what is between these, which may be less than nothing.
        return candidate_range(may_be), np.stack([known[last], known[first + 2]], axis=-1)

    return BoundedNumber(estimate, bounds)


def _shift_bounds(of: BoundedNumber, by: float) -> BoundedNumber:
    """Add a known number."""

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = of.bounds(below, above)
        return low + by, high + by

    return BoundedNumber(of.estimate + by, bounds)


def _ranges_apart(trainings: Sequence[Sequence[BoundedNumber]]) -> BoundedNumber:
    """How far the beginning of one range lies above the end of another, at most; of wider ranges it is less.

    A training has the range that holds those of all its seeds.
    """

    def apart(ranges: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
        begins = np.stack([np.min([of[..., 0] for of in seeds], axis=0) for seeds in ranges])
        ends = np.stack([np.max([of[..., 1] for of in seeds], axis=0) for seeds in ranges])
        gap = begins.max(axis=0) - ends.min(axis=0)
        return np.where(np.abs(gap) < ROUNDING, 0, gap)  # at doubled steps, many ranges touch

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        each = [[of.bounds(below / number, above / number) for of in seeds] for seeds in trainings]
        return apart([[low for low, _ in of] for of in each]), apart(
            [[h for _, h in of] for of in each]
        )

    number = sum(map(len, trainings))
    return BoundedNumber(apart([[of.estimate for of in seeds] for seeds in trainings]), bounds)


def _agreed_change(logarithms: np.ndarray, pair: tuple[int, int]) -> BoundedNumber:
    """The least change of all estimators up, or down, whichever is more."""
    change = logarithms[..., pair[1], :, :] - logarithms[..., pair[0], :, :]
    return stack_bounds(
        [bound_by_jackknife(change).least(), bound_by_jackknife(-change).least()]
    ).greatest()


def _three_quarters(of: BoundedNumber) -> BoundedNumber:
    """The number that three quarters of several reach."""
    return of.kth_largest(math.ceil(0.75 * of.estimate.shape[-1]))
