"""Checkpoints whose loss cannot be that of their step.

While a model trains its loss falls, but for a slow start, ripples and spikes. A checkpoint far above the
falling curve of the others is broken, one far below it is a later one under a wrong name.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

# Ours: beyond spikes of 5 nats with their ripples, and far below the factors of 6,000 and more by which the
# published checkpoints that are known to be broken differ.
SUSPICIOUS_RATIO = 250.0
MARGIN = math.log(SUSPICIOUS_RATIO)
# A model that knows nothing guesses among its vocabulary: its loss is the logarithm, give or take this.
NEAR_GUESSING = 1.0
# Ours: how much a nat below the curve costs against one above it. Weights fail in many ways, and worse than
# guessing is a sign of it; but a low loss must come from somewhere: from a later step, whose loss is then as
# low, or else from this one.
BELOW, BELOW_ALL_LATER, ABOVE_GUESSING, FAR_OFF = 1.5, 3.0, 0.5, 0.1
# Ours, nats above guessing: what is worse is as bad, and no sum of distances overflows.
HIGHEST = 100.0
# Ours, nats: how far two exchanged steps must be apart, and each must stand out by itself among those
# between; and what share of their distance exchanging them back may leave.
EXCHANGED = 1.5
BETWEEN = 3  # steps; fewer look like a spike
STANDS_OUT = 0.5
LEFT_OVER = 0.1


@dataclass(frozen=True)
class MeasuredLoss:
    """A checkpoint's cross-entropy.

    Attributes
    ----------
    name : str
        Of the checkpoint within its model.
    step : int
    loss : float
        Nats per predicted token, finite; NaN where it is undefined.
    vocabulary : int
        Tokens among which the model chooses.
    """

    name: str
    step: int
    loss: float
    vocabulary: int


def broken(losses: Sequence[MeasuredLoss]) -> dict[str, str]:
    """Find the checkpoints whose loss cannot be right.

    Parameters
    ----------
    losses : sequence of MeasuredLoss
        Of one training curve, all on the same windows.

    Returns
    -------
    dict of str to str
        Name -> verdict, for the broken ones only.

    Notes
    -----
    A checkpoint is broken if it is step 0, does better than guessing, ``ln(vocabulary)``, by more than 1 nat,
    and later ones are more than ``ln(250)`` worse, as many as come before the first of them, for a training
    that starts from trained weights keeps what it knows; or if its loss is more than ``ln(250)`` from
    :func:`expected_losses`, where losses count up to 100 nats above guessing. Two checkpoints are exchanged
    if they are more than 1.5 nats apart, stand out among those between them, one below and one above, and
    fit once they change places.

    Not found are: wrong weights whose loss is within ``ln(250)`` of what is expected there, such as those of
    a neighbour; a guessing model where no earlier checkpoint has learned; steps that are exchanged with the
    first, the last or one of the next three and are less apart, which look like a spike; a curve most of
    which is wrong. A training that diverged for good cannot be told from one with broken checkpoints.
    """
    found: dict[str, str] = {}
    comparable = sorted(
        (each for each in losses if not math.isnan(each.loss)), key=lambda each: each.step
    )
    vocabulary = max((each.vocabulary for each in comparable), default=0)
    guessing = math.log(vocabulary or math.inf)
    start = comparable[0] if comparable else None
    if start and start.step == 0 and vocabulary and start.loss < guessing - NEAR_GUESSING:
        worse = [i for i, each in enumerate(comparable) if each.loss > start.loss + MARGIN]
        if worse and len(worse) >= worse[0]:
            ratio = _ratio(comparable[worse[0]].loss - start.loss)
            found[start.name] = f"broken: perplexity {ratio} times lower than that of later steps"
            comparable = comparable[1:]
    most = HIGHEST + math.log(vocabulary or 1)
    clipped = {each.name: min(each.loss, most) for each in comparable}
    while pair := _exchanged([clipped[each.name] for each in comparable]):
        early, late = comparable[pair[0]], comparable[pair[1]]
        found[early.name] = f"exchanged with step {late.step}, by its loss"
        found[late.name] = f"exchanged with step {early.step}, by its loss"
        comparable = [each for each in comparable if each not in (early, late)]
    curve = expected_losses([clipped[each.name] for each in comparable], guessing)
    for each, expected in zip(comparable, curve, strict=True):
        above = each.loss - expected
        if above > MARGIN:
            found[each.name] = f"broken: perplexity {_ratio(above)} times that of the other steps"
        elif above < -MARGIN:
            ratio = _ratio(-above)
            found[each.name] = (
                f"broken: perplexity {ratio} times lower than that of the other steps"
            )
    return found


def expected_losses(losses: Sequence[float], guessing: float = math.inf) -> np.ndarray:
    """Say which losses a training has at its steps, if some of those measured are not its own.

    Parameters
    ----------
    losses : sequence of float
        By training step, finite, in nats.
    guessing : float
        Loss of a model that knows nothing, if it is known.

    Returns
    -------
    ndarray of float64, shape (n,)
        A :func:`falling_curve`. A nat below it costs 1.5, or 3 where no later loss comes within a nat: then
        it cannot be that of a later step. One above it costs 1, or 0.5 for a loss that is a nat worse than
        guessing. What lies half of ``ln(250)`` off counts a tenth in a second fit, lest it pulls the curve.

    Notes
    -----
    Sums of distances, instead of counts, let one checkpoint that is far off weigh more than ripples, and less
    than several. No loss is farther from the curve than it is above an earlier one or below a later one.
    """
    observed = np.asarray(losses, dtype=float)
    later = np.minimum.accumulate(np.append(observed, np.inf)[::-1])[::-1][1:]
    below = np.where(later > observed + NEAR_GUESSING, BELOW_ALL_LATER, BELOW)
    above = np.where(observed > guessing + NEAR_GUESSING, ABOVE_GUESSING, 1.0)
    first = falling_curve(observed, above, below)
    weight = np.where(np.abs(observed - first) > MARGIN / 2, FAR_OFF, 1.0)
    return falling_curve(observed, weight * above, weight * below)


def falling_curve(losses: np.ndarray, above: np.ndarray, below: np.ndarray) -> np.ndarray:
    r"""Fit a curve that never rises, by weighted least absolute deviations.

    Isotonic regression: among all :math:`f_1 \ge f_2 \ge \dots` that which minimises

    .. math:: \sum_i v_i \max(l_i - f_i, 0) + w_i \max(f_i - l_i, 0)

    Parameters
    ----------
    losses : ndarray of float64, shape (n,)
        :math:`l_i`, finite.
    above, below : ndarray of float64, shape (n,)
        :math:`v_i` and :math:`w_i`, positive.

    Returns
    -------
    ndarray of float64, shape (n,)
        Values of `losses` themselves; as high as possible where several curves are as good.

    Notes
    -----
    By dynamic programming over the n values, O(n^2).
    """
    levels = np.unique(losses)[::-1]
    cost = np.zeros(len(levels))
    costs = []
    for loss, v, w in zip(losses, above, below, strict=True):
        distance = loss - levels
        cost = np.minimum.accumulate(cost) + np.where(distance > 0, v * distance, -w * distance)
        costs.append(cost)
    fitted, place = np.empty(len(losses)), len(levels)
    for i in reversed(range(len(losses))):
        place = int(np.argmin(costs[i][: place + 1]))
        fitted[i] = levels[place]
    return fitted


def _exchanged(losses: Sequence[float]) -> tuple[int, int] | None:
    """Places of two losses, one below and one above those between, that fit where the other is."""
    jumps = np.diff(losses)
    best, pair = LEFT_OVER, None
    for place, other in combinations(np.flatnonzero(jumps >= STANDS_OUT), 2):
        early, late = int(place), int(other) + 1
        low, high = losses[early], losses[late]
        # Of the first nothing says how high it may be, of the last how low.
        at_an_end = early == 0 or late == len(losses) - 1
        if at_an_end or high - low < EXCHANGED or late - early - 1 < BETWEEN:
            continue
        others = np.delete(losses, [early, late])
        curve = falling_curve(others, np.ones(len(others)), np.ones(len(others)))
        before_early, after_early = curve[early - 1 : early + 1]
        before_late, after_late = curve[late - 2 : late]
        if low > after_early - STANDS_OUT or high < before_late + STANDS_OUT:
            continue
        misfit = max(
            0, high - before_early, after_early - high, low - before_late, after_late - low
        )
        if misfit / (high - low) < best:
            best, pair = misfit / (high - low), (early, late)
    return pair


def _ratio(difference: float) -> str:
    """Exponential of a difference of losses, to two digits, as people write it."""
    ratio = math.exp(min(difference, 700.0))
    if ratio >= 1e9:
        return f"{ratio:.0e}".replace("e+0", "e").replace("e+", "e")
    digits = max(0, 1 - math.floor(math.log10(ratio)))
    return f"{round(ratio, 1 - math.floor(math.log10(ratio))):,.{digits}f}"
