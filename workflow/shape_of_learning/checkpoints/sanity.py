"""Checkpoints that are broken though their files are whole: a loss far from that of their neighbours.

While a model trains its loss falls, but for ripples. A checkpoint that is far worse than those before it is
broken; one that is far better than those after it is a later one under a wrong name.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

# Ours: far beyond the ripples of any training, and far below the factors of 6,000 and more by which the
# published checkpoints that are known to be broken differ.
SUSPICIOUS_RATIO = 100.0
NEIGHBOURS = 3
# An untrained model guesses among its vocabulary: its loss is the logarithm and a little more.
MORE_THAN_GUESSING = 1.0


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
    Compared are perplexities, the exponentials of losses. A checkpoint is broken if it is infinite, if it
    is 100 times the median of the three sound checkpoints before it, or less than a hundredth of the median
    of the three after it (of two at least, lest one broken neighbour condemn a sound one). With nothing
    before it, it is broken if it does worse than guessing: loss above ``ln(vocabulary) + 1``.
    """
    defined = sorted((each for each in losses if not math.isnan(each.loss)), key=lambda m: m.step)
    margin = math.log(SUSPICIOUS_RATIO)
    found = {
        each.name: "broken: perplexity is infinite" for each in defined if math.isinf(each.loss)
    }
    finite = [each for each in defined if each.name not in found]
    for i, each in enumerate(finite):
        after = [other.loss for other in finite[i + 1 :][:NEIGHBOURS]]
        if len(after) > 1 and each.loss + margin < median_low(after):
            ratio = _ratio(median_low(after) - each.loss)
            found[each.name] = f"broken: perplexity {ratio} times lower than that of later steps"
    sound: list[MeasuredLoss] = []
    for each in finite:
        if each.name in found:
            continue
        before = [other.loss for other in sound[-NEIGHBOURS:]]
        if before and each.loss > median_low(before) + margin:
            ratio = _ratio(each.loss - median_low(before))
            found[each.name] = f"broken: perplexity {ratio} times that of earlier steps"
        elif not before and each.loss > math.log(each.vocabulary) + MORE_THAN_GUESSING:
            ratio = _ratio(each.loss - math.log(each.vocabulary))
            found[each.name] = f"broken: perplexity {ratio} times that of guessing"
        else:
            sound.append(each)
    return found


def _ratio(difference: float) -> str:
    """Exponential of a difference of losses, to two digits, as people write it."""
    ratio = math.exp(min(difference, 700.0))
    if ratio >= 1e9:
        return f"{ratio:.0e}".replace("e+0", "e").replace("e+", "e")
    digits = max(0, 1 - math.floor(math.log10(ratio)))
    return f"{round(ratio, 1 - math.floor(math.log10(ratio))):,.{digits}f}"
