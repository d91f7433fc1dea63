"""What the paper says of profiles over layers and of curves over training, as numbers with bounds."""

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from shape_of_learning.claims.bounds import (
    ROUNDING,
    TAIL,
    BoundedNumber,
    apart,
    bound_by_jackknife,
    bound_exactly,
    make_undecided,
    shift,
    stack_bounds,
)
from shape_of_learning.claims.criteria import ALL_TOGETHER, PAIR, Units
from shape_of_learning.claims.evidence import ClaimData, pair_models, subtract_each
from shape_of_learning.errors import InputError

FEWEST_OF_RANGE = 3  # blocks
FEWEST_OF_PEAK = 5  # one with two on each side
OUTER = 0.2  # of the layers, at each end
FEWEST_STEPS = 3  # for a curve to have something between its ends
MOST_STEPS_OF_RANKS = 8


def peak_in_the_middle(data: ClaimData, estimators: tuple[str], dip: float) -> Units:
    """Test whether a profile rises to a layer of its middle and falls from it (:func:`peak`).

    The middle is the layers without a fifth of them at each end, two at least, above each of which its height
    is measured. So a plateau with a low layer at each end has none, and neither has a fall from the second
    layer on.
    """
    units = {}
    for name, values in _profiles(data, estimators, FEWEST_OF_PEAK).items():
        number = values.shape[-2]
        outer = max(2, round(OUTER * number))
        middle, ends = range(outer, number - outer), [*range(outer), *range(number - outer, number)]
        units[name] = peak(values, middle, ends, dip)
    return units


def flatter(data: ClaimData, estimators: tuple[str]) -> Units:
    """Return the range of a decoder's profile less that of an encoder's, for each pair.

    The range is the largest difference of two blocks, with bounds that allow for its choice, so that noise alone
    makes no profile uneven.
    """
    ranges = {}
    for name, values in _profiles(data, estimators, FEWEST_OF_RANGE).items():
        differences = subtract_each(values, values)
        pairs = differences.reshape(*differences.shape[:-3], -1, differences.shape[-1])
        ranges[name] = bound_by_jackknife(pairs).greatest()
    return {
        pair: {"range_over_range": apart(decoder, encoder)}
        for pair, (decoder, encoder) in pair_models(data, ranges, "decoder", "encoder").items()
    }


def growth_then_settling(data: ClaimData, estimators: tuple[str], share: float) -> Units:
    """Return the growth over training, and whether little of it is left for the second half.

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
    for name, (steps, (curve,)) in _select_curves(data, *estimators).items():
        middle = _find_end(data, name, steps) / 2
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
    data.require(units, "a sound step in the first half of its training")
    return units


def rise_then_fall(data: ClaimData, estimators: tuple[str], dip: float) -> Units:
    """Test whether a curve rises to a step of the first half of training and falls from it (:func:`peak`).

    In logarithms of means over layers, above the first step and the last one, whichever is less.
    """
    units = {}
    for name, (steps, (curve,)) in _select_curves(data, *estimators).items():
        half = _find_end(data, name, steps) / 2
        early = [place for place in range(1, len(steps) - 1) if steps[place] <= half]
        if early:
            units[name] = peak(np.log(curve), early, [0, -1], dip)
    data.require(units, "a sound step between the first one and the middle of its training")
    return units


def peak_beside_warm_up(data: ClaimData, estimators: tuple[str]) -> Units:
    """Test whether curves that rise and fall have their peaks at the end of the warm-up of the learning rate.

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
    curves = _select_curves(data, *estimators)
    warm_ups = {name: data.models[name].warmup_steps for name in curves}
    ends = {name: end for name, end in warm_ups.items() if end}
    data.require(ends, "a known `warmup_steps`")
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
                training = data.models[name].training or name
                peaks[training].append((_find_peak(logarithm, steps), -np.log(end)))
    data.require(units, "sound steps beside the ends and those around the end of the warm-up")
    none = make_undecided(bound_exactly(math.nan))
    together = (
        {
            "multiples_apart": _ranges_apart([[shift(*of) for of in p] for p in peaks.values()]),
            "steps_apart": _ranges_apart([[of for of, _ in p] for p in peaks.values()]),
        }
        if len(peaks) > 1
        else {"multiples_apart": none, "steps_apart": none}
    )
    return {**units, ALL_TOGETHER: together}


def higher_at_peak_and_end(data: ClaimData, estimators: tuple[str]) -> Units:
    """Compare the first model with the second, at the highest points of their curves and at the ends.

    Both numbers, ``peak`` and ``end``, are logarithms of ratios of means over layers.
    """
    curves = _select_curves(data, *estimators)
    if len(curves) != 2:
        raise InputError(
            f"claim `{data.claim.name}`: `{data.claim.statistic}` is of two models, and needs both; "
            "name two under `models`"
        )
    apart = subtract_each(*(np.log(curve) for _, (curve,) in curves.values()))
    peak, end = (
        bound_by_jackknife(apart).least().greatest(),
        bound_by_jackknife(apart[..., -1, -1, :]),
    )
    return {PAIR.join(curves): {"peak": peak, "end": end}}


def concordance(data: ClaimData, estimators: Sequence[str]) -> Units:
    """Test whether estimators agree on how training changes a mean over layers.

    Returns
    -------
    Units
        Of each model the least change on which all agree, negative where two contradict each other:
        ``direction``, of the changes from the first step to the middle one and from there to the last, the
        lesser; ``rank``, of the changes between any two of up to eight steps from the first to the last, what
        three quarters of them reach. Changes are logarithms of ratios.
    """
    units = {}
    for name, (steps, curves) in _select_curves(data, *estimators).items():
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


def peak(
    values: np.ndarray, places: Sequence[int], around: Sequence[int], dip: float
) -> dict[str, BoundedNumber]:
    """Test whether a curve rises to one of some places, and falls from there.

    Parameters
    ----------
    values : ndarray of float64, shape (..., points, 17)
    places : sequence of int
        Where the peak may be; bounds allow for the choice.
    around : sequence of int
        The points above which its height is measured, the least one.
    dip : float
        Which share of the height a fall before the peak, or a rise after it, may have.

    Returns
    -------
    dict of str to BoundedNumber
        ``height``, and ``one_peak``, the height less the deepest dip over this share; above zero where there is
        no second peak that counts.
    """
    heights, whole = [], []
    for place in places:
        before = [
            values[..., i, :] - values[..., j, :] for i, j in combinations(range(place + 1), 2)
        ]
        rest = range(place, values.shape[-2])
        after = [values[..., j, :] - values[..., i, :] for i, j in combinations(rest, 2)]
        height = values[..., [place], :] - values[..., list(around), :]
        none = np.zeros_like(values[..., 0, :])
        dips = np.stack([none, *before, *after], axis=-2)
        less = height[..., :, None, :] - dips[..., None, :, :] / dip
        heights.append(bound_by_jackknife(height).least())
        whole.append(bound_by_jackknife(less.reshape(*less.shape[:-3], -1, less.shape[-1])).least())
    return {"height": stack_bounds(heights).greatest(), "one_peak": stack_bounds(whole).greatest()}


def _profiles(data: ClaimData, estimators: Sequence[str], fewest: int) -> dict[str, np.ndarray]:
    """Select the values of the blocks at the last checkpoint, as in the plots that the authors released.

    These have no layer 0, which is no block, and not the last one, which most models give after their final
    norm; it counts where it is known to be from before. A profile in which a block is undefined has no shape.
    """
    found = {}
    for name, (curve,) in data.select_curves(*estimators).items():
        last = data.models[name].layers - (not curve.before_norm)
        is_block = (curve.layers >= 1) & (curve.layers <= last)
        if last >= fewest and is_block.sum() == last:
            found[name] = curve.last[..., is_block, :]
    data.require(found, f"`{estimators[0]}` at all blocks before the last one, {fewest} at least,")
    return found


def _select_curves(
    data: ClaimData, *estimators: str
) -> dict[str, tuple[list[float], list[np.ndarray]]]:
    """Return the steps that all estimators of a model have, and their means over layers, (..., steps, 17)."""
    if data.claim.checkpoints != "training":
        raise InputError(
            f"claim `{data.claim.name}`: `{data.claim.statistic}` is of a training; add `checkpoints: training`"
        )
    found = {}
    for name, curves in data.select_curves(*estimators).items():
        common = [step for step in curves[0].steps.tolist() if all(step in c.steps for c in curves)]
        if len(common) >= FEWEST_STEPS:
            means = [c.means[..., np.isin(c.steps, common), :] for c in curves]
            found[name] = common, means
    data.require(found, f"`{estimators[0]}` at {FEWEST_STEPS} sound steps")
    return found


def _rises_and_falls(
    logarithm: np.ndarray, places: Sequence[int], ends: Sequence[int] = (0, -1)
) -> BoundedNumber:
    """Return the lesser of rise and fall at some steps, counted from 0; or the least height above other `ends`."""
    at, beside = (logarithm[..., list(steps), :] for steps in (places, ends))
    return bound_by_jackknife(subtract_each(at, beside)).least()


def _find_end(data: ClaimData, model: str, steps: Sequence[float]) -> float:
    """Return the last step of a training; if it is unknown, the last one that was seen."""
    return max(data.models[model].last_step or 0, steps[-1])


def _find_peak(logarithm: np.ndarray, steps: Sequence[float]) -> BoundedNumber:
    """Find between which steps a curve has its peak, in logarithms, along a last axis of two.

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


def _ranges_apart(trainings: Sequence[Sequence[BoundedNumber]]) -> BoundedNumber:
    """Return how far the beginning of one range lies above the end of another, at most; less for wider ranges.

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
    """Return the least change of all estimators up, or down, whichever is more."""
    change = logarithms[..., pair[1], :, :] - logarithms[..., pair[0], :, :]
    return stack_bounds(
        [bound_by_jackknife(change).least(), bound_by_jackknife(-change).least()]
    ).greatest()


def _three_quarters(of: BoundedNumber) -> BoundedNumber:
    """Return the number that three quarters of several reach."""
    return of.kth_largest(math.ceil(0.75 * of.estimate.shape[-1]))
