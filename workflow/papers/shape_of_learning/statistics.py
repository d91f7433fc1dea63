"""Statistics of profiles over layers and of curves over training, with bounds."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from shape_of_learning.claims.bounds import (
    ROUNDING,
    TAIL,
    BoundedNumber,
    bound_by_jackknife,
    bound_exactly,
    make_undecided,
    shift,
    stack_bounds,
    subtract_numbers,
)
from shape_of_learning.claims.criteria import ALL_TOGETHER, PAIR, Units
from shape_of_learning.claims.evidence import NO_ROWS, ClaimData, pair_models, subtract_each
from shape_of_learning.claims.statistics import MOST_LAYERS
from shape_of_learning.errors import InputError

FEWEST_OF_RANGE = 3  # blocks
FEWEST_OF_PEAK = 5  # blocks: a peak with two on each side
OUTER = 0.2  # of the layers, at each end
DEPTHS = 11  # the number of depths at which profiles of models with different numbers of blocks are compared
FEWEST_STEPS = 3  # for a curve to have something between its ends
MOST_STEPS_OF_RANKS = 8
MOST_PAIRS = 0.75  # of the pairs of steps


def peak_in_the_middle(data: ClaimData, estimators: tuple[str], dip: float) -> Units:
    """Test whether a profile is a bell whose highest block lies in the middle.

    A fifth of the blocks at each end, and at least two, are outer blocks. The middle has the other blocks between a
    quarter and three quarters of the depth.

    Returns
    -------
    Units
        Of each model, of the highest block of the middle: ``over_ends``, its height above the first block or the last
        one, whichever is less; ``one_peak``, this height less the deepest dip on the way over `dip` (:func:`peak`);
        ``height``, its height above the highest outer block; and ``place``, its height above the highest block that is
        not in the middle.
    """
    units = {}
    for name, values in _select_profiles(data, estimators, FEWEST_OF_PEAK).items():
        number = values.shape[-2]
        outer = max(2, round(OUTER * number))
        ends = [*range(outer), *range(number - outer, number)]
        # The values leave out the last block, which most models give after the final norm only.
        quarter = (number + 1) / 4
        middle = [
            place for place in range(outer, number - outer) if quarter < place + 1 < 3 * quarter
        ]
        elsewhere = [place for place in range(number) if place not in middle]
        bell = peak(values, middle, [0, -1], dip)
        units[name] = {
            "over_ends": bell["height"],
            "one_peak": bell["one_peak"],
            "height": _bound_rise(values, middle, ends),
            "place": _bound_rise(values, middle, elsewhere),
        }
    return units


def flatter(data: ClaimData, estimators: tuple[str]) -> Units:
    """Compare the unevenness of the profiles of a decoder and an encoder, for each pair.

    Returns
    -------
    Units
        Of the decoder less the encoder: ``range``, the largest difference between two blocks, with bounds that allow
        for the choice of the blocks, so that noise alone makes no profile uneven; and ``spread``, the standard
        deviation over blocks, which one spike hardly changes.
    """
    ranges, spreads = {}, {}
    for name, values in _select_profiles(data, estimators, FEWEST_OF_RANGE).items():
        differences = subtract_each(values, values)
        pairs = differences.reshape(*differences.shape[:-3], -1, differences.shape[-1])
        ranges[name] = bound_by_jackknife(pairs).greatest()
        spreads[name] = bound_by_jackknife(values.std(axis=-2))
    of_pairs = [pair_models(data, of, "decoder", "encoder") for of in (ranges, spreads)]
    return {
        pair: {
            "range": subtract_numbers(*of_pairs[0][pair]),
            "spread": subtract_numbers(*of_pairs[1][pair]),
        }
        for pair in of_pairs[0]
    }


def profiles_apart(data: ClaimData, estimators: tuple[str]) -> Units:
    """Return the mean absolute difference of two models' profiles at the same depths, for each pair of trainings."""
    places = np.linspace(0, 1, DEPTHS)
    profiles = {}
    for name, values in _select_profiles(data, estimators, FEWEST_OF_RANGE).items():
        at = places * (values.shape[-2] - 1)
        below = np.minimum(at.astype(int), values.shape[-2] - 2)
        share = (at - below)[:, None]
        profiles[name] = values[..., below, :] * (1 - share) + values[..., below + 1, :] * share
    trainings = {name: data.models[name].training or name for name in profiles}
    return {
        PAIR.join(pair): {
            "difference": bound_by_jackknife(
                np.abs(profiles[pair[0]] - profiles[pair[1]]).mean(axis=-2)
            )
        }
        for pair in combinations(profiles, 2)
        if trainings[pair[0]] != trainings[pair[1]]
    }


def growth_then_settling(data: ClaimData, estimators: tuple[str], share: float) -> Units:
    """Return the growth over training, and whether the curve has settled by the last quarter.

    Returns
    -------
    Units
        Of each model ``growth``, the change of the mean over layers from the first step to the last; and
        ``of_layers``, the growth that three quarters of the layers reach. Three numbers say by how much a curve has not
        settled, each less `share` of the size of the change of the mean: ``falls_back``, the height of the highest step
        of the second half of training above the last step; ``below_start``, the depth of the lowest step below the
        first step; ``still_to_grow``, the depth of the lowest step of the last quarter below the last step. Then
        ``moving_on`` is the largest of the three, and ``settling`` is below zero if one of the three may be above zero,
        or if a step at any time may lie above the last one by more than the growth.
        If no checkpoint is at the middle, or at three quarters, ``settling`` counts the part from the checkpoint before
        that point, and the three numbers count it from the checkpoint after it. A model without a checkpoint in the
        first half is left out.
    """
    units: dict[str, dict[str, BoundedNumber]] = {}
    for name, (steps, (curve,), (layers,)) in _select_curves(data, *estimators).items():
        end = _find_end(data, name, steps)
        if steps[0] <= end / 2:
            last, first = curve[..., -1:, :], curve[..., :1, :]
            (half, half_perhaps), (late, late_perhaps) = (
                _find_beginnings(steps, part * end) for part in (1 / 2, 3 / 4)
            )
            growth = np.abs(last - first)
            allowed = share * growth
            kinds = {
                "falls_back": curve[..., half:, :] - last - allowed,
                "below_start": first - curve - allowed,
                "still_to_grow": last - curve[..., late:, :] - allowed,
            }
            surely = np.concatenate([*kinds.values()], axis=-2)
            perhaps = [
                surely,
                curve[..., half_perhaps:, :] - last - allowed,
                last - curve[..., late_perhaps:, :] - allowed,
                curve - last - growth,
            ]
            growth_of_layers = bound_by_jackknife(layers[..., -1, :, :] - layers[..., 0, :, :])
            units[name] = {
                "growth": bound_by_jackknife((last - first)[..., 0, :]),
                "of_layers": growth_of_layers.find_floor(MOST_LAYERS),
                "settling": bound_by_jackknife(-np.concatenate(perhaps, axis=-2)).least(),
                "moving_on": bound_by_jackknife(surely).greatest(),
                **{part: bound_by_jackknife(of).greatest() for part, of in kinds.items()},
            }
    data.require(units, "a sound step in the first half of its training")
    return units


def _find_beginnings(steps: Sequence[float], at: float) -> tuple[int, int]:
    """Return the places of the first step at or after a point of a training, and of the last step at or before it."""
    after = min((place for place, step in enumerate(steps) if step >= at), default=len(steps) - 1)
    return after, max(place for place, step in enumerate(steps) if step <= at)


def rise_then_fall(data: ClaimData, estimators: tuple[str], dip: float) -> Units:
    """Test whether a curve rises to a step of the first half of training and falls from it (:func:`peak`).

    Heights are differences of logarithms of means over layers, above the first or the last step, whichever is less.
    At the step where the mean is highest above its ends, three quarters of the layers lie at least ``of_layers`` above
    their own ends.
    """
    units = {}
    for name, (steps, (curve,), (layers,)) in _select_curves(data, *estimators).items():
        half = _find_end(data, name, steps) / 2
        early = [place for place in range(1, len(steps) - 1) if steps[place] <= half]
        if early:
            logarithm, of_layers = np.log(curve), np.log(layers)
            heights = logarithm[..., early, :] - logarithm[..., [0, -1], :].max(-2, keepdims=True)
            best = np.array(early)[heights[..., 0].argmax(axis=-1)]
            top = np.take_along_axis(of_layers, best[..., None, None, None], -3)
            above = np.moveaxis(top - of_layers[..., [0, -1], :, :], -3, -2)
            units[name] = {
                **peak(logarithm, early, [0, -1], dip),
                "of_layers": bound_by_jackknife(above).least().find_floor(MOST_LAYERS),
            }
    data.require(units, "a sound step between the first one and the middle of its training")
    return units


def improvement_during_fall(data: ClaimData, estimators: tuple[str]) -> Units:
    """Return the largest fall of a dimension from one step to a later one, and the gain in loss between them.

    Returns
    -------
    Units
        Of each model ``fall``, the logarithm of the ratio of the means over layers at the two steps, with bounds that
        allow for the choice of both; and ``gain``, the loss at the first of them less the loss at the second, in nats
        per token. Losses have no interval.

    Raises
    ------
    NotMeasured
        If too few models have a loss at the steps of their curves.
    """
    units = {}
    for name, (curve,) in data.select_curves(*estimators).items():
        verdicts = data.evidence.tables.get("verdicts", NO_ROWS)
        rows = verdicts[verdicts["model"] == name].drop_duplicates("revision")
        by_revision = dict(zip(rows["revision"], rows["loss"], strict=True)) if len(rows) else {}
        losses = np.array([by_revision.get(revision, math.nan) for revision in curve.revisions])
        logarithm = np.log(curve.means)
        begins, ends = np.triu_indices(len(losses), 1)
        falls = logarithm[..., begins, :] - logarithm[..., ends, :]
        gain = (losses[begins] - losses[ends])[falls[..., 0].argmax(axis=-1)]
        if not np.isnan(gain).any():
            units[name] = {
                "fall": bound_by_jackknife(falls).greatest(),
                "gain": bound_exactly(gain),
            }
    data.require(units, f"`{estimators[0]}` and a loss at the steps between which it falls")
    return units


def peak_beside_warm_up(data: ClaimData, estimators: tuple[str]) -> Units:
    """Test whether curves that rise and fall have their peaks at the end of the warm-up of the learning rate.

    The steps around the end of the warm-up are the last step at or before it, and the first step at or after it.

    Returns
    -------
    Units
        Of each model, in logarithms: ``at_warm_up``, the lesser of rise and fall (:func:`rise_then_fall`) at the better
        step around the end of the warm-up; and ``elsewhere``, the least of the rise, the fall and the height above the
        steps around the end of the warm-up, at the best of the other steps between the ends.
        Of all models together: ``multiples_apart``, the gap between the peaks of the trainings in multiples of their
        warm-ups, as the logarithm of a ratio; ``most_apart``, the least gap among just over half of the trainings; and
        ``steps_apart``, the gap in steps, as the logarithm of a ratio. A peak is known to lie between two steps only,
        so a gap is negative if one multiple, or one step, fits all trainings. The peaks of the seeds of a training may
        lie anywhere between the first and the last of these steps. Unknown unless two trainings have a peak.

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
        steps, (curve,), _ = curves[name]
        before = [place for place, step in enumerate(steps) if step <= end][-1:]
        after = [place for place, step in enumerate(steps) if step >= end][:1]
        around = sorted({*before, *after})
        between = [place for place in range(1, len(steps) - 1) if place not in around]
        if between:
            logarithm = np.log(curve)
            elsewhere = _bound_rise_and_fall(logarithm, between, [0, -1, *around])
            at = _bound_rise_and_fall(logarithm, around)
            units[name] = {"elsewhere": elsewhere.greatest(), "at_warm_up": at.greatest()}
            low, _ = stack_bounds([*units[name].values()]).greatest().bounds(TAIL, TAIL)
            if np.all(low > 0):  # otherwise the curve has no peak
                training = data.models[name].training or name
                peaks[training].append((_find_peak(logarithm, steps), -np.log(end)))
    data.require(units, "sound steps beside the ends and those around the end of the warm-up")
    none = make_undecided(bound_exactly(math.nan))
    together = dict.fromkeys(("multiples_apart", "most_apart", "steps_apart"), none)
    if len(peaks) > 1:
        multiples = [[shift(*of) for of in p] for p in peaks.values()]
        together = {
            "multiples_apart": _bound_gap_of_ranges(multiples),
            "most_apart": _bound_gap_of_nearest(multiples, len(peaks) // 2 + 1),
            "steps_apart": _bound_gap_of_ranges([[of for of, _ in p] for p in peaks.values()]),
        }
    return {**units, ALL_TOGETHER: together}


def higher_at_peak_and_end(data: ClaimData, estimators: tuple[str]) -> Units:
    """Compare the first model with the second, at the highest points of their curves and at the ends.

    The numbers ``peak`` and ``end`` are logarithms of ratios of means over layers.
    """
    curves = _select_curves(data, *estimators)
    if len(curves) != 2:
        raise InputError(
            f"claim `{data.claim.name}`: `{data.claim.statistic}` is of two models, and needs both; "
            "name two under `models`"
        )
    apart = subtract_each(*(np.log(curve) for _, (curve,), _ in curves.values()))
    peak, end = (
        bound_by_jackknife(apart).least().greatest(),
        bound_by_jackknife(apart[..., -1, -1, :]),
    )
    return {PAIR.join(curves): {"peak": peak, "end": end}}


def concordance(data: ClaimData, estimators: Sequence[str]) -> Units:
    """Test whether estimators agree on how training changes a mean over layers.

    The agreed change between two steps is the least of the estimators' changes, which are logarithms of ratios. It is
    negative if two estimators contradict each other.

    Returns
    -------
    Units
        Of each model ``direction``, the lesser of the agreed changes from the first step to the middle one and from
        there to the last; ``rank``, the agreed change that three quarters of the pairs of up to eight steps reach;
        ``shared``, the largest agreed change of a pair; and ``agreement``, the sum of the agreed changes of all pairs
        over the sum of the mean sizes of the changes, which is 1 if curves are proportional, whatever their shape.
    """
    units = {}
    for name, (steps, curves, _) in _select_curves(data, *estimators).items():
        logarithms = np.stack([np.log(curve) for curve in curves], axis=-2)
        last = len(steps) - 1
        halves = [(0, last // 2), (last // 2, last)]
        number = min(len(steps), MOST_STEPS_OF_RANKS)
        spaced = np.linspace(0, last, number).round().astype(int).tolist()
        pairs = list(combinations(spaced, 2))
        agreed = stack_bounds([_bound_agreed_change(logarithms, pair) for pair in pairs])
        units[name] = {
            "direction": stack_bounds(
                [_bound_agreed_change(logarithms, pair) for pair in halves]
            ).least(),
            "rank": agreed.find_floor(MOST_PAIRS),
            "shared": agreed.greatest(),
            "agreement": _bound_agreement(logarithms, pairs),
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
        The points where the peak may be; bounds allow for the choice.
    around : sequence of int
        The points above which the height is measured; the least height counts.
    dip : float
        The largest share of the height that a fall before the peak, or a rise after it, may have.

    Returns
    -------
    dict of str to BoundedNumber
        ``height``, and ``one_peak``, the height less the deepest dip over `dip`, which is above zero if the curve has
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


def _select_profiles(
    data: ClaimData, estimators: Sequence[str], fewest: int
) -> dict[str, np.ndarray]:
    """Select the values of the blocks at the last checkpoint, as in the plots that the authors released.

    Layer 0, the embedding output, is left out. So is the last layer, which most models give after their final norm,
    unless it is known to be from before the norm. A model with an undefined block is left out.
    """
    found = {}
    for name, (curve,) in data.select_curves(*estimators).items():
        last = data.models[name].layers - (not curve.is_before_norm)
        is_block = (curve.layers >= 1) & (curve.layers <= last)
        if last >= fewest and is_block.sum() == last:
            found[name] = data.keep_layers(name, estimators[0], is_block).last
    data.require(found, f"`{estimators[0]}` at all blocks before the last one, {fewest} at least,")
    return found


def _select_curves(
    data: ClaimData, *estimators: str
) -> dict[str, tuple[list[float], list[np.ndarray], list[np.ndarray]]]:
    """Return the steps that all estimators of a model have, the means over layers, (..., steps, 17), and the values."""
    if data.claim.checkpoints != "training":
        raise InputError(
            f"claim `{data.claim.name}`: `{data.claim.statistic}` is of a training; add `checkpoints: training`"
        )
    found = {}
    for name, curves in data.select_curves(*estimators).items():
        common = [step for step in curves[0].steps.tolist() if all(step in c.steps for c in curves)]
        if len(common) >= FEWEST_STEPS:
            values = [c.values[..., np.isin(c.steps, common), :, :] for c in curves]
            found[name] = common, [of.mean(axis=-2) for of in values], values
    data.require(found, f"`{estimators[0]}` at {FEWEST_STEPS} sound steps")
    return found


def _bound_rise_and_fall(
    logarithm: np.ndarray, places: Sequence[int], ends: Sequence[int] = (0, -1)
) -> BoundedNumber:
    """Return the lesser of rise and fall at each of some steps, or the least height above the steps `ends`."""
    at, beside = (logarithm[..., list(steps), :] for steps in (places, ends))
    return bound_by_jackknife(subtract_each(at, beside)).least()


def _find_end(data: ClaimData, model: str, steps: Sequence[float]) -> float:
    """Return the last step of a training; if it is unknown, the last measured step."""
    return max(data.models[model].last_step or 0, steps[-1])


def _find_peak(logarithm: np.ndarray, steps: Sequence[float]) -> BoundedNumber:
    """Find the range of steps that holds the peak of a curve, in logarithms; its ends are along a last axis of two.

    The estimate is the range between the neighbours of the highest step. The first bound is a range that holds the
    range of the peak: the neighbours of all steps that are not shown to be lower than another step. The second bound is
    a range within the range of the peak.
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
        lower = []  # whether a step is shown to be lower than another one
        for place in inside:
            others = [other for other in inside if other != place]
            if not others:
                return estimate, estimate
            less = bound_by_jackknife(logarithm[..., others, :] - logarithm[..., [place], :])
            lower.append(less.bounds(min(below, above) / len(others), 0.5)[0].max(axis=-1) > 0)
        may_be = ~np.stack(lower, axis=-1)
        first = may_be.argmax(axis=-1)
        last = may_be.shape[-1] - 1 - may_be[..., ::-1].argmax(axis=-1)
        # The range of the peak holds the range between these ends, which may be empty.
        return candidate_range(may_be), np.stack([known[last], known[first + 2]], axis=-1)

    return BoundedNumber(estimate, bounds)


def _bound_gap_of_ranges(trainings: Sequence[Sequence[BoundedNumber]]) -> BoundedNumber:
    """Return the largest gap between two ranges, negative if all overlap; wider ranges have a smaller gap."""

    def find_gap(ranges: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
        begins, ends = _join_ranges(ranges)
        return _round_gap(begins.max(axis=0) - ends.min(axis=0))

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = _bound_ranges(trainings, below, above)
        return find_gap(low), find_gap(high)

    return BoundedNumber(find_gap([[of.estimate for of in peaks] for peaks in trainings]), bounds)


def _bound_gap_of_nearest(
    trainings: Sequence[Sequence[BoundedNumber]], number: int
) -> BoundedNumber:
    """Return the distance between the peaks of the `number` trainings whose peaks are nearest to each other.

    The estimate and the lower bound are the gap between their ranges, negative if the ranges overlap. The upper bound
    is the distance from the first beginning to the last end.
    """

    def find_nearest_gap(ranges: Sequence[Sequence[np.ndarray]], *, is_gap: bool) -> np.ndarray:
        begins, ends = _join_ranges(ranges)
        chosen = [list(of) for of in combinations(range(len(ranges)), number)]
        if is_gap:
            return _round_gap(
                np.min([begins[c].max(axis=0) - ends[c].min(axis=0) for c in chosen], axis=0)
            )
        return np.min([ends[c].max(axis=0) - begins[c].min(axis=0) for c in chosen], axis=0)

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        (widest, _), (widest_above, _) = (
            _bound_ranges(trainings, tail, tail) for tail in (below, above)
        )
        return find_nearest_gap(widest, is_gap=True), find_nearest_gap(widest_above, is_gap=False)

    estimates = [[of.estimate for of in peaks] for peaks in trainings]
    return BoundedNumber(find_nearest_gap(estimates, is_gap=True), bounds)


def _join_ranges(trainings: Sequence[Sequence[np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first beginning and the last end of the ranges of the seeds of each training."""
    begins = [np.min([of[..., 0] for of in seeds], axis=0) for seeds in trainings]
    ends = [np.max([of[..., 1] for of in seeds], axis=0) for seeds in trainings]
    return np.stack(begins), np.stack(ends)


def _round_gap(gap: np.ndarray) -> np.ndarray:
    return np.where(np.abs(gap) < ROUNDING, 0, gap)  # at doubled steps, many ranges touch


def _bound_ranges(
    trainings: Sequence[Sequence[BoundedNumber]], below: float, above: float
) -> tuple[list[list[np.ndarray]], list[list[np.ndarray]]]:
    """Return the bounds of all ranges, which share the errors."""
    number = sum(map(len, trainings))
    each = [[of.bounds(below / number, above / number) for of in seeds] for seeds in trainings]
    return [[low for low, _ in of] for of in each], [[high for _, high in of] for of in each]


def _bound_rise(values: np.ndarray, places: Sequence[int], others: Sequence[int]) -> BoundedNumber:
    """Return the height of the highest of some places above the highest of other places."""
    at, beside = values[..., list(places), :], values[..., list(others), :]
    return bound_by_jackknife(subtract_each(at, beside)).least().greatest()


def _bound_agreed_change(logarithms: np.ndarray, pair: tuple[int, int]) -> BoundedNumber:
    """Return the least change of all estimators upwards or downwards, whichever is more."""
    change = logarithms[..., pair[1], :, :] - logarithms[..., pair[0], :, :]
    return stack_bounds(
        [bound_by_jackknife(change).least(), bound_by_jackknife(-change).least()]
    ).greatest()


def _bound_agreement(logarithms: np.ndarray, pairs: Sequence[tuple[int, int]]) -> BoundedNumber:
    """Return the sum of the agreed changes of pairs of steps over the sum of the mean sizes of their changes."""
    first, second = zip(*pairs, strict=True)
    changes = logarithms[..., second, :, :] - logarithms[..., first, :, :]
    agreed = np.maximum(changes.min(axis=-2), -changes.max(axis=-2)).sum(axis=-2)
    with np.errstate(invalid="ignore"):  # undefined where nothing changes
        ratio = agreed / np.abs(changes).mean(axis=-2).sum(axis=-2)
    return replace(bound_by_jackknife(ratio), limits=(-1, 1))
