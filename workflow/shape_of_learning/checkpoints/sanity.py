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
# Ours: how much a nat below the curve costs against one above it. Weights fail in many ways, but a low loss
# must come from somewhere: from a later step, whose loss is then as low, or else from this one.
BELOW, BELOW_ALL_LATER = 1.5, 3.0
# Ours, nats: what two exchanged steps must stand out by, and what exchanging them back may leave of it.
EXCHANGED = 1.5
LEFT_OVER = 0.2


@dataclass(frozen=True)
class MeasuredLoss:
    """A checkpoint's cross-entropy.

    Attributes
    ----------
    name : str
        Of the checkpoint within its model.
    step : int
    loss : float
        Nats per predicted token; NaN where it is undefined, infinite where it overflowed.
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
    A checkpoint is broken if its loss is infinite; if it is step 0 and does better than guessing,
    ``ln(vocabulary)``, by more than 1 nat; or if its loss is more than ``ln(250)`` from
    :func:`falling_curve`. Two checkpoints are exchanged if both stand out by more than 1.5 nats, one below
    and one above those between them, and the curve falls once they change places.

    Not found are: wrong weights whose loss is within ``ln(250)`` of what is expected there, such as those of
    a neighbour; a guessing model where no earlier checkpoint has learned; exchanged neighbours that are
    less apart, which look like a spike; a curve most of which is wrong.
    """
    found: dict[str, str] = {}
    comparable = []
    for each in sorted(losses, key=lambda measured: measured.step):
        below = math.log(each.vocabulary) - each.loss if each.vocabulary else math.nan
        if math.isinf(each.loss):
            found[each.name] = "broken: perplexity is infinite"
        elif each.step == 0 and below > NEAR_GUESSING:
            found[each.name] = (
                f"broken: perplexity {_ratio(below)} times lower than that of guessing"
            )
        elif not math.isnan(each.loss):
            comparable.append(each)
    curve = falling_curve([each.loss for each in comparable])
    for each, expected in zip(comparable, curve, strict=True):
        above = each.loss - expected
        if above > MARGIN:
            found[each.name] = f"broken: perplexity {_ratio(above)} times that of the other steps"
        elif above < -MARGIN:
            ratio = _ratio(-above)
            found[each.name] = (
                f"broken: perplexity {ratio} times lower than that of the other steps"
            )
    sound = [each for each in comparable if each.name not in found]
    while pair := _exchanged([each.loss for each in sound]):
        early, late = sound[pair[0]], sound[pair[1]]
        sound = [each for each in sound if each not in (early, late)]
        found[early.name] = f"exchanged with step {late.step}, by its loss"
        found[late.name] = f"exchanged with step {early.step}, by its loss"
    return found


def falling_curve(losses: Sequence[float]) -> np.ndarray:
    r"""Fit a curve that never rises, by least absolute deviations.

    Isotonic regression: among all :math:`f_1 \ge f_2 \ge \dots` that which minimises

    .. math:: \sum_i \max(l_i - f_i, 0) + w_i \max(f_i - l_i, 0)

    where :math:`w_i` is 1.5, or 3 for a loss that no later one comes within a nat of: it cannot be that of
    a later step. Sums of distances, instead of counts, let one checkpoint that is far off weigh more than a
    ripple, and less than several.

    Parameters
    ----------
    losses : sequence of float
        By training step, finite, in nats.

    Returns
    -------
    ndarray of float64, shape (n,)
        Values of `losses` themselves; as high as possible where several curves are as good.

    Notes
    -----
    By dynamic programming over the n values, O(n^2), as in Stout, "Fastest isotonic regression algorithms".
    """
    observed = np.asarray(losses, dtype=float)
    if not observed.size:
        return observed
    levels = np.unique(observed)[::-1]
    later = np.minimum.accumulate(np.append(observed, np.inf)[::-1])[::-1][1:]
    below = np.where(later > observed + NEAR_GUESSING, BELOW_ALL_LATER, BELOW)
    cost = np.zeros(len(levels))
    costs = []
    for loss, weight in zip(observed, below, strict=True):
        distance = loss - levels
        cost = np.minimum.accumulate(cost) + np.where(distance > 0, distance, -weight * distance)
        costs.append(cost)
    fitted, place = np.empty(len(observed)), len(levels)
    for i in range(len(observed) - 1, -1, -1):
        place = int(np.argmin(costs[i][: place + 1]))
        fitted[i] = levels[place]
    return fitted


def _exchanged(losses: Sequence[float]) -> tuple[int, int] | None:
    """Places of two losses, one below and one above those between, that fit where the other is."""
    jumps = np.diff(losses)
    best, pair = LEFT_OVER, None
    for i, j in combinations(np.flatnonzero(jumps >= EXCHANGED), 2):
        early, late = int(i), int(j) + 1
        around = list(losses[max(early - 1, 0) : late + 2])
        a, b = min(early, 1), late - max(early - 1, 0)
        if (
            min(_misfit(around[:a] + around[a + 1 :]), _misfit(around[:b] + around[b + 1 :]))
            < EXCHANGED
        ):
            continue
        back = around.copy()
        back[a], back[b] = around[b], around[a]
        left = _misfit(back) / _misfit(around)
        if left < best:
            best, pair = left, (early, late)
    return pair


def _misfit(losses: Sequence[float]) -> float:
    """Distance from the falling curve, summed."""
    return float(np.abs(np.asarray(losses) - falling_curve(losses)).sum())


def _ratio(difference: float) -> str:
    """Exponential of a difference of losses, to two digits, as people write it."""
    ratio = math.exp(min(difference, 700.0))
    if ratio >= 1e9:
        return f"{ratio:.0e}".replace("e+0", "e").replace("e+", "e")
    digits = max(0, 1 - math.floor(math.log10(ratio)))
    return f"{round(ratio, 1 - math.floor(math.log10(ratio))):,.{digits}f}"
