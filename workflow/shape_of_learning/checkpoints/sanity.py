"""Checkpoints that are broken though their files are whole: a loss far from that of their neighbours.

While a model trains its loss falls, but for ripples. A checkpoint that is far worse than those before it is
broken; one that is far better than those after it is a later one under a wrong name.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Ours: far beyond the ripples of any training, and far below the factors of 6,000 and more by which the
# published checkpoints that are known to be broken differ.
SUSPICIOUS_RATIO = 100.0
MARGIN = math.log(SUSPICIOUS_RATIO)
# A model that knows nothing guesses among its vocabulary: its loss is the logarithm, give or take this.
NEAR_GUESSING = 1.0


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
        Of one training curve.

    Returns
    -------
    dict of str to str
        Name -> verdict, for the broken ones only.

    Notes
    -----
    A checkpoint is broken if its loss is infinite; if it does worse than guessing, by more than 1 nat above
    ``ln(vocabulary)``, and is not step 0, whose initial weights may be large; or if it is step 0 and does
    better than guessing by more than 1 nat. Of the others, the largest set is sound in which no checkpoint
    has 100 times the perplexity of an earlier one; the rest is broken.
    """
    found: dict[str, str] = {}
    comparable = []
    for each in sorted(losses, key=lambda measured: measured.step):
        above = each.loss - math.log(each.vocabulary) if each.vocabulary else math.nan
        if math.isinf(each.loss):
            found[each.name] = "broken: perplexity is infinite"
        elif each.step and above > NEAR_GUESSING:
            found[each.name] = f"broken: perplexity {_ratio(above)} times that of guessing"
        elif each.step == 0 and above < -NEAR_GUESSING:
            found[each.name] = (
                f"broken: perplexity {_ratio(-above)} times lower than that of guessing"
            )
        elif not math.isnan(each.loss):
            comparable.append(each)
    sound = _largest_sound_set(comparable)
    for each in comparable:
        if each in sound:
            continue
        before = [other.loss for other in sound if other.step < each.step]
        excess = each.loss - min(before, default=math.inf)
        if excess > MARGIN:
            found[each.name] = f"broken: perplexity {_ratio(excess)} times that of earlier steps"
        else:
            after = max(other.loss for other in sound if other.step > each.step)
            ratio = _ratio(after - each.loss)
            found[each.name] = f"broken: perplexity {ratio} times lower than that of later steps"
    return found


def _largest_sound_set(ordered: Sequence[MeasuredLoss]) -> list[MeasuredLoss]:
    """The most checkpoints of which none is a hundred times worse than an earlier one.

    By dynamic programming over the lowest loss so far, O(n^2). Of sets of the same size, that which keeps the
    earlier checkpoints.
    """
    best: dict[float, list[MeasuredLoss]] = {math.inf: []}
    for each in ordered:
        grown: dict[float, list[MeasuredLoss]] = {}
        for lowest, members in best.items():
            if each.loss <= lowest + MARGIN:
                key = min(lowest, each.loss)
                if len(members) + 1 > len(grown.get(key, ())):
                    grown[key] = [*members, each]
        for key, members in grown.items():
            if len(members) > len(best.get(key, ())):
                best[key] = members
    return max(best.values(), key=len)


def _ratio(difference: float) -> str:
    """Exponential of a difference of losses, to two digits, as people write it."""
    ratio = math.exp(min(difference, 700.0))
    if ratio >= 1e9:
        return f"{ratio:.0e}".replace("e+0", "e").replace("e+", "e")
    digits = max(0, 1 - math.floor(math.log10(ratio)))
    return f"{round(ratio, 1 - math.floor(math.log10(ratio))):,.{digits}f}"
