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
from shape_of_learning.claims.evidence import NO_ROWS, ClaimData, pair_models, subtract_all_pairs
from shape_of_learning.claims.statistics import MOST_LAYERS
from shape_of_learning.errors import InputError

FEWEST_BLOCKS_OF_RANGE = 3
FEWEST_BLOCKS_OF_PEAK = 5  # a peak with two blocks on each side
OUTER = 0.2  # the share of the blocks that are outer blocks at each end
DEPTHS = 11  # the number of depths at which profiles of models with different numbers of blocks are compared
FEWEST_STEPS = 3  # so that a curve has a step between its ends
MOST_STEPS_OF_RANKS = 8
MOST_PAIRS = 0.75  # a share of the pairs of steps


def peak_in_the_middle(data: ClaimData, estimators: tuple[str], dip: float) -> Units:
    """Test whether a profile is a bell whose highest block lies in the middle.

    A fifth of the blocks at each end, and at least two, are outer blocks. The middle holds the blocks between a quarter
    and three quarters of the depth that are not outer blocks.

    Returns
    -------
    Units
        The numbers describe the highest block of the middle of each model: ``over_ends`` is its height above the first
        block or above the last block, whichever is less; ``one_peak`` is this height less the deepest dip divided by
        `dip` (:func:`peak`); ``height`` is its height above the highest outer block; and ``place`` is its height above
        the highest block that is not in the middle.
    """
    units = {}
    for name, values in _select_profiles(data, estimators, FEWEST_BLOCKS_OF_PEAK).items():
        number = values.shape[-2]
        outer = max(2, round(OUTER * number))
        ends = [*range(outer), *range(number - outer, number)]
        # The values may leave out the last block, since most models return it only after the final norm.
        quarter = data.models[name].layers / 4
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
        The numbers are those of the decoder less those of the encoder. ``range`` is the largest difference between two
        blocks; its bounds allow for the choice of the blocks, so that noise alone makes no profile uneven. ``spread``
        is the standard deviation over blocks, which a single spike hardly changes.
    """
    ranges = {}
    spreads = {}
    for name, values in _select_profiles(data, estimators, FEWEST_BLOCKS_OF_RANGE).items():
        differences = subtract_all_pairs(values, values)
        pairs = differences.reshape(*differences.shape[:-3], -1, differences.shape[-1])
        ranges[name] = bound_by_jackknife(pairs).greatest()
        spreads[name] = bound_by_jackknife(values.std(axis=-2))
    range_pairs = pair_models(data, ranges, "decoder", "encoder")
    spread_pairs = pair_models(data, spreads, "decoder", "encoder")
    return {
        pair: {
            "range": subtract_numbers(*range_pairs[pair]),
            "spread": subtract_numbers(*spread_pairs[pair]),
        }
        for pair in range_pairs
    }


def profiles_apart(data: ClaimData, estimators: tuple[str]) -> Units:
    """Return the mean absolute difference of two models' profiles at the same depths, for each pair of trainings."""
    places = np.linspace(0, 1, DEPTHS)
    profiles = {}
    for name, values in _select_profiles(data, estimators, FEWEST_BLOCKS_OF_RANGE).items():
        positions = places * (values.shape[-2] - 1)
        below = np.minimum(positions.astype(int), values.shape[-2] - 2)
        share = (positions - below)[:, None]
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
        Of each model, ``growth``, the change of the mean over layers from the first step to the last; and
        ``of_layers``, the growth that three quarters of the layers reach. Three numbers measure how far a curve has not
        settled; `share` of the size of the growth is subtracted from each: ``falls_back``, the height of the highest
        step of the second half of training above the last step; ``below_start``, the depth of the lowest step below the
        first step; and ``still_to_grow``, the depth of the lowest step of the last quarter below the last step.
        ``moving_on`` is the largest of the three. ``settling`` is below zero if one of the three may be above zero, or
        if any step may lie above the last step by more than the growth.

        If no checkpoint is at the middle of training, or at three quarters, the three numbers count from the first
        checkpoint after this point, and ``settling`` counts from the last checkpoint before it. A model without a
        checkpoint in the first half is left out.
    """
    units: dict[str, dict[str, BoundedNumber]] = {}
    for name, (steps, (curve,), (layers,)) in _select_curves(data, *estimators).items():
        end = _find_end(data, name, steps)
        if steps[0] <= end / 2:
            last = curve[..., -1:, :]
            first = curve[..., :1, :]
            half, half_before = _find_beginnings(steps, end / 2)
            late, late_before = _find_beginnings(steps, 3 / 4 * end)
            growth = np.abs(last - first)
            tolerance = share * growth
            kinds = {
                "falls_back": curve[..., half:, :] - last - tolerance,
                "below_start": first - curve - tolerance,
                "still_to_grow": last - curve[..., late:, :] - tolerance,
            }
            certain_excesses = np.concatenate([*kinds.values()], axis=-2)
            possible_excesses = [
                certain_excesses,
                curve[..., half_before:, :] - last - tolerance,
                last - curve[..., late_before:, :] - tolerance,
                curve - last - growth,
            ]
            growth_of_layers = bound_by_jackknife(layers[..., -1, :, :] - layers[..., 0, :, :])
            units[name] = {
                "growth": bound_by_jackknife((last - first)[..., 0, :]),
                "of_layers": growth_of_layers.find_floor(MOST_LAYERS),
                "settling": bound_by_jackknife(-np.concatenate(possible_excesses, axis=-2)).least(),
                "moving_on": bound_by_jackknife(certain_excesses).greatest(),
                **{part: bound_by_jackknife(excess).greatest() for part, excess in kinds.items()},
            }
    data.require(units, "a good step in the first half of its training")
    return units


def _find_beginnings(steps: Sequence[float], point: float) -> tuple[int, int]:
    """Return the places of the first step at or after a point of a training, and of the last step at or before it."""
    places_after = [place for place, step in enumerate(steps) if step >= point]
    places_before = [place for place, step in enumerate(steps) if step <= point]
    return min(places_after, default=len(steps) - 1), max(places_before)


def rise_then_fall(data: ClaimData, estimators: tuple[str], dip: float) -> Units:
    """Test whether a curve rises to a step of the first half of training and falls from it (:func:`peak`).

    A height is the difference between the logarithms of means over layers at a step and at the first or the last step,
    whichever difference is less. At the highest step, three quarters of the layers lie at least ``of_layers`` above
    their own first and last values.
    """
    units = {}
    for name, (steps, (curve,), (layers,)) in _select_curves(data, *estimators).items():
        half = _find_end(data, name, steps) / 2
        early = [place for place in range(1, len(steps) - 1) if steps[place] <= half]
        if early:
            logarithm = np.log(curve)
            layer_logarithms = np.log(layers)
            heights = logarithm[..., early, :] - logarithm[..., [0, -1], :].max(-2, keepdims=True)
            best = np.array(early)[heights[..., 0].argmax(axis=-1)]
            top = np.take_along_axis(layer_logarithms, best[..., None, None, None], -3)
            above = np.moveaxis(top - layer_logarithms[..., [0, -1], :, :], -3, -2)
            units[name] = {
                **peak(logarithm, early, [0, -1], dip),
                "of_layers": bound_by_jackknife(above).least().find_floor(MOST_LAYERS),
            }
    data.require(units, "a good step between the first one and the middle of its training")
    return units


def improvement_during_fall(data: ClaimData, estimators: tuple[str]) -> Units:
    """Return the largest fall of a dimension from a step to a later step, and the fall of the loss between them.

    Returns
    -------
    Units
        Of each model, ``fall``, the logarithm of the ratio of the means over layers at the two steps, with bounds that
        allow for the choice of both steps; and ``gain``, the loss at the first step less the loss at the second, in
        nats per token, which counts as exact.

    Raises
    ------
    NotMeasured
        If too few models have a loss at the steps of their curves.
    """
    units = {}
    for name, (curve,) in data.select_curves(*estimators).items():
        verdicts = data.evidence.tables.get("verdicts", NO_ROWS)
        rows = verdicts[verdicts["model"] == name].drop_duplicates("revision")
        losses_by_revision = (
            dict(zip(rows["revision"], rows["loss"], strict=True)) if len(rows) else {}
        )
        losses = np.array(
            [losses_by_revision.get(revision, math.nan) for revision in curve.revisions]
        )
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

        Of all models together, as logarithms of ratios: ``multiples_apart``, the gap between the peaks of the trainings
        in multiples of their warm-ups; ``most_apart``, the smallest gap between just over half of the trainings; and
        ``steps_apart``, the gap between the peaks in steps. Since only a range of steps is known to hold a peak, a gap
        is negative if one multiple, or one step, fits all trainings. The range of a training reaches from the first
        beginning to the last end of the ranges of its seeds. The gaps are unknown unless two trainings have a peak.

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
        places_before = [place for place, step in enumerate(steps) if step <= end][-1:]
        places_after = [place for place, step in enumerate(steps) if step >= end][:1]
        around = sorted({*places_before, *places_after})
        other_places = [place for place in range(1, len(steps) - 1) if place not in around]
        if other_places:
            logarithm = np.log(curve)
            elsewhere = _bound_rise_and_fall(logarithm, other_places, [0, -1, *around])
            warm_up_heights = _bound_rise_and_fall(logarithm, around)
            units[name] = {
                "elsewhere": elsewhere.greatest(),
                "at_warm_up": warm_up_heights.greatest(),
            }
            low, _ = stack_bounds([*units[name].values()]).greatest().bounds(TAIL, TAIL)
            if np.all(low > 0):  # else the curve is not known to have a peak
                training = data.models[name].training or name
                peaks[training].append((_find_peak(logarithm, steps), -np.log(end)))
    data.require(units, "good steps beside the ends and those around the end of the warm-up")
    unknown_number = make_undecided(bound_exactly(math.nan))
    joint_numbers = dict.fromkeys(("multiples_apart", "most_apart", "steps_apart"), unknown_number)
    if len(peaks) > 1:
        multiples = [
            [shift(peak_range, offset) for peak_range, offset in seeds] for seeds in peaks.values()
        ]
        step_ranges = [[peak_range for peak_range, _ in seeds] for seeds in peaks.values()]
        joint_numbers = {
            "multiples_apart": _bound_gap_of_ranges(multiples),
            "most_apart": _bound_gap_of_nearest(multiples, len(peaks) // 2 + 1),
            "steps_apart": _bound_gap_of_ranges(step_ranges),
        }
    return {**units, ALL_TOGETHER: joint_numbers}


def higher_at_peak_and_end(data: ClaimData, estimators: tuple[str]) -> Units:
    """Compare the first model with the second, at the highest points of their curves and at the ends.

    The numbers ``peak`` and ``end`` are logarithms of ratios of means over layers.
    """
    curves = _select_curves(data, *estimators)
    if len(curves) != 2:
        raise InputError(
            f"claim `{data.claim.name}`: `{data.claim.statistic}` compares two models, but {len(curves)} have values; "
            "name two measured models under `models`"
        )
    difference = subtract_all_pairs(*(np.log(curve) for _, (curve,), _ in curves.values()))
    numbers = {
        "peak": bound_by_jackknife(difference).least().greatest(),
        "end": bound_by_jackknife(difference[..., -1, -1, :]),
    }
    return {PAIR.join(curves): numbers}


def concordance(data: ClaimData, estimators: Sequence[str]) -> Units:
    """Test whether estimators agree on how training changes a mean over layers.

    The agreed change between two steps is the least of the estimators' changes, which are logarithms of ratios. It is
    negative if two estimators contradict each other.

    Returns
    -------
    Units
        Of each model, ``direction``, the lesser of two agreed changes, from the first step to the middle step and from
        the middle step to the last; ``rank``, the agreed change that three quarters of the pairs of up to eight steps
        reach; ``shared``, the largest agreed change of a pair; and ``agreement``, the sum of the agreed changes of all
        pairs over the sum of the mean sizes of the changes. If the curves are proportional, ``agreement`` is 1.
    """
    units = {}
    for name, (steps, curves, _) in _select_curves(data, *estimators).items():
        logarithms = np.stack([np.log(curve) for curve in curves], axis=-2)
        last = len(steps) - 1
        halves = [(0, last // 2), (last // 2, last)]
        number = min(len(steps), MOST_STEPS_OF_RANKS)
        places = np.linspace(0, last, number).round().astype(int).tolist()
        pairs = list(combinations(places, 2))
        changes = stack_bounds([_bound_agreed_change(logarithms, pair) for pair in pairs])
        units[name] = {
            "direction": stack_bounds(
                [_bound_agreed_change(logarithms, pair) for pair in halves]
            ).least(),
            "rank": changes.find_floor(MOST_PAIRS),
            "shared": changes.greatest(),
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
        ``height``; and ``one_peak``, the height less the deepest dip divided by `dip`. ``one_peak`` is above zero if
        every fall before the peak and every rise after it is smaller than its largest share of the height.
    """
    heights = []
    excesses = []
    for place in places:
        falls = [
            values[..., i, :] - values[..., j, :] for i, j in combinations(range(place + 1), 2)
        ]
        rest = range(place, values.shape[-2])
        rises = [values[..., j, :] - values[..., i, :] for i, j in combinations(rest, 2)]
        height = values[..., [place], :] - values[..., list(around), :]
        no_dip = np.zeros_like(values[..., 0, :])
        dips = np.stack([no_dip, *falls, *rises], axis=-2)
        excess = height[..., :, None, :] - dips[..., None, :, :] / dip
        heights.append(bound_by_jackknife(height).least())
        excesses.append(
            bound_by_jackknife(excess.reshape(*excess.shape[:-3], -1, excess.shape[-1])).least()
        )
    return {
        "height": stack_bounds(heights).greatest(),
        "one_peak": stack_bounds(excesses).greatest(),
    }


def _select_profiles(
    data: ClaimData, estimators: Sequence[str], fewest: int
) -> dict[str, np.ndarray]:
    """Select the values of the blocks at the last checkpoint, as in the plots that the authors released.

    Layer 0, the embedding output, is left out. The last layer, which most models return after their final norm, is left
    out unless it is known to be from before the norm. A model with an undefined block is left out.
    """
    profiles = {}
    for name, (curve,) in data.select_curves(*estimators).items():
        last = data.models[name].layers - (not curve.is_before_norm)
        is_block = (curve.layers >= 1) & (curve.layers <= last)
        if last >= fewest and is_block.sum() == last:
            profiles[name] = data.keep_layers(name, estimators[0], is_block).last
    data.require(
        profiles, f"`{estimators[0]}` at all blocks before the last one, {fewest} at least,"
    )
    return profiles


def _select_curves(
    data: ClaimData, *estimators: str
) -> dict[str, tuple[list[float], list[np.ndarray], list[np.ndarray]]]:
    """Return the steps that all estimators of a model have, the means over layers, (..., steps, 17), and the values."""
    data.require_training()
    curves_by_model = {}
    for name, curves in data.select_curves(*estimators).items():
        common_steps = [
            step
            for step in curves[0].steps.tolist()
            if all(step in curve.steps for curve in curves)
        ]
        if len(common_steps) >= FEWEST_STEPS:
            values = [
                curve.values[..., np.isin(curve.steps, common_steps), :, :] for curve in curves
            ]
            means = [layer_values.mean(axis=-2) for layer_values in values]
            curves_by_model[name] = common_steps, means, values
    data.require(curves_by_model, f"`{estimators[0]}` at {FEWEST_STEPS} good steps")
    return curves_by_model


def _bound_rise_and_fall(
    logarithm: np.ndarray, places: Sequence[int], ends: Sequence[int] = (0, -1)
) -> BoundedNumber:
    """Return for each place the least height above the ends: the lesser of rise and fall, if these are two."""
    place_values = logarithm[..., list(places), :]
    end_values = logarithm[..., list(ends), :]
    return bound_by_jackknife(subtract_all_pairs(place_values, end_values)).least()


def _find_end(data: ClaimData, model: str, steps: Sequence[float]) -> float:
    """Return the last step of a training, or the last measured step if it is unknown."""
    return max(data.models[model].last_step or 0, steps[-1])


def _find_peak(logarithm: np.ndarray, steps: Sequence[float]) -> BoundedNumber:
    """Find the range of steps that holds the peak of a curve, in logarithms; the last axis has its two ends.

    The estimate is the range between the neighbours of the highest step. The first bound is a range that holds the
    range of the peak: it ends at the neighbours of the first and the last step that are not shown to be lower than
    another step. The second bound is a range that the range of the peak holds.
    """
    inside = range(1, len(steps) - 1)
    # Step 0, which has no logarithm, counts as half a step.
    log_steps = np.log(np.maximum(steps, 0.5))

    def find_candidate_range(is_candidate: np.ndarray) -> np.ndarray:
        first = is_candidate.argmax(axis=-1)
        last = is_candidate.shape[-1] - 1 - is_candidate[..., ::-1].argmax(axis=-1)
        return np.stack([log_steps[first], log_steps[last + 2]], axis=-1)

    mean = logarithm[..., inside, 0]
    estimate = find_candidate_range(mean == mean.max(axis=-1, keepdims=True))

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        is_lower = []  # whether a step is shown to be lower than another step
        for place in inside:
            other_places = [other_place for other_place in inside if other_place != place]
            if not other_places:
                return estimate, estimate
            differences = bound_by_jackknife(
                logarithm[..., other_places, :] - logarithm[..., [place], :]
            )
            is_lower.append(
                differences.bounds(min(below, above) / len(other_places), 0.5)[0].max(axis=-1) > 0
            )
        is_candidate_step = ~np.stack(is_lower, axis=-1)
        first = is_candidate_step.argmax(axis=-1)
        last = is_candidate_step.shape[-1] - 1 - is_candidate_step[..., ::-1].argmax(axis=-1)
        # The range of the peak holds the range between these ends, which may be empty.
        return find_candidate_range(is_candidate_step), np.stack(
            [log_steps[last], log_steps[first + 2]], axis=-1
        )

    return BoundedNumber(estimate, bounds)


def _bound_gap_of_ranges(trainings: Sequence[Sequence[BoundedNumber]]) -> BoundedNumber:
    """Return the largest gap between the ranges of two trainings, negative if all ranges overlap."""

    def find_gap(ranges: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
        begins, ends = _join_ranges(ranges)
        return _round_gap(begins.max(axis=0) - ends.min(axis=0))

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = _bound_ranges(trainings, below, above)
        return find_gap(low), find_gap(high)

    estimates = [[peak_range.estimate for peak_range in seeds] for seeds in trainings]
    return BoundedNumber(find_gap(estimates), bounds)


def _bound_gap_of_nearest(
    trainings: Sequence[Sequence[BoundedNumber]], number: int
) -> BoundedNumber:
    """Return the distance between the peaks of the `number` trainings whose peaks are nearest to each other.

    The estimate and the lower bound are the gap between their ranges, negative if the ranges overlap. The upper bound
    is the distance from the first beginning to the last end.
    """

    def find_nearest_gap(ranges: Sequence[Sequence[np.ndarray]], *, is_gap: bool) -> np.ndarray:
        begins, ends = _join_ranges(ranges)
        groups = [list(group) for group in combinations(range(len(ranges)), number)]
        if is_gap:
            gaps = [begins[group].max(axis=0) - ends[group].min(axis=0) for group in groups]
            return _round_gap(np.min(gaps, axis=0))
        spans = [ends[group].max(axis=0) - begins[group].min(axis=0) for group in groups]
        return np.min(spans, axis=0)

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        wide_ranges, _ = _bound_ranges(trainings, below, below)
        wide_ranges_above, _ = _bound_ranges(trainings, above, above)
        return (
            find_nearest_gap(wide_ranges, is_gap=True),
            find_nearest_gap(wide_ranges_above, is_gap=False),
        )

    estimates = [[peak_range.estimate for peak_range in seeds] for seeds in trainings]
    return BoundedNumber(find_nearest_gap(estimates, is_gap=True), bounds)


def _join_ranges(trainings: Sequence[Sequence[np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first beginning and the last end of the ranges of the seeds of each training."""
    begins = [np.min([seed_range[..., 0] for seed_range in seeds], axis=0) for seeds in trainings]
    ends = [np.max([seed_range[..., 1] for seed_range in seeds], axis=0) for seeds in trainings]
    return np.stack(begins), np.stack(ends)


def _round_gap(gap: np.ndarray) -> np.ndarray:
    # If checkpoints are at doubled steps, many ranges touch.
    return np.where(np.abs(gap) < ROUNDING, 0, gap)


def _bound_ranges(
    trainings: Sequence[Sequence[BoundedNumber]], below: float, above: float
) -> tuple[list[list[np.ndarray]], list[list[np.ndarray]]]:
    """Return the lower and the upper bounds of all ranges; the tails are divided equally between the ranges."""
    number = sum(map(len, trainings))
    bounds = [
        [peak_range.bounds(below / number, above / number) for peak_range in seeds]
        for seeds in trainings
    ]
    lower_bounds = [[low for low, _ in seeds] for seeds in bounds]
    upper_bounds = [[high for _, high in seeds] for seeds in bounds]
    return lower_bounds, upper_bounds


def _bound_rise(
    values: np.ndarray, places: Sequence[int], other_places: Sequence[int]
) -> BoundedNumber:
    """Return the height of the highest of some places above the highest of other places."""
    place_values = values[..., list(places), :]
    other_values = values[..., list(other_places), :]
    return bound_by_jackknife(subtract_all_pairs(place_values, other_values)).least().greatest()


def _bound_agreed_change(logarithms: np.ndarray, pair: tuple[int, int]) -> BoundedNumber:
    """Return the least rise of all estimators, or their least fall, whichever is more."""
    change = logarithms[..., pair[1], :, :] - logarithms[..., pair[0], :, :]
    rise = bound_by_jackknife(change).least()
    fall = bound_by_jackknife(-change).least()
    return stack_bounds([rise, fall]).greatest()


def _bound_agreement(logarithms: np.ndarray, pairs: Sequence[tuple[int, int]]) -> BoundedNumber:
    """Return the sum of the agreed changes of pairs of steps over the sum of the mean sizes of their changes."""
    first, second = zip(*pairs, strict=True)
    changes = logarithms[..., second, :, :] - logarithms[..., first, :, :]
    agreed_changes = np.maximum(changes.min(axis=-2), -changes.max(axis=-2)).sum(axis=-2)
    with np.errstate(invalid="ignore"):  # undefined where nothing changes
        ratio = agreed_changes / np.abs(changes).mean(axis=-2).sum(axis=-2)
    return replace(bound_by_jackknife(ratio), limits=(-1, 1))
