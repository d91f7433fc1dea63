"""The loss of a checkpoint, its table, and losses that cannot be those of their step.

While a model trains its loss falls, but for a slow start, ripples and spikes. A checkpoint far above those
around it is broken; one far below them is a later one under a wrong name.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import median_low

from shape_of_learning.files import write_table

# Ours: beyond spikes of 5 nats with their ripples, and far below the factors of 6,000 and more by which the
# published checkpoints that are known to be broken differ.
SUSPICIOUS_RATIO = 250.0
MARGIN = math.log(SUSPICIOUS_RATIO)
# Checkpoints on each side that one is compared with: the median of three bears one that is broken, too.
NEIGHBOURS = 3


@dataclass(frozen=True)
class CrossEntropy:
    r"""Mean negative log-likelihood of the predicted tokens.

    .. math:: H = -\frac{1}{n} \sum_{i=1}^{n} \ln p(t_i \mid \text{what the model sees})

    Attributes
    ----------
    loss : float
        In nats per predicted token. NaN where it is undefined: no language-model head, or nothing
        to predict. Infinite where a token gets no probability, or the logits are not finite.
    predicted_tokens : int
        Number :math:`n`; 0 where the loss is undefined.
    vocabulary : int or None
        Width of the logits; a model that knows nothing has a loss of its logarithm. None where the
        loss is undefined.
    """

    loss: float
    predicted_tokens: int
    vocabulary: int | None


COLUMNS = tuple(field.name for field in fields(CrossEntropy))
UNDEFINED = CrossEntropy(math.nan, 0, None)


def write_loss(path: Path, cross_entropy: CrossEntropy) -> None:
    """Write the columns `COLUMNS`; what is undefined is an empty cell, infinity is ``inf``."""
    write_table(path, COLUMNS, [astuple(cross_entropy)])


@dataclass(frozen=True)
class MeasuredLoss:
    """A checkpoint's cross-entropy in nats, NaN where it is undefined, among `vocabulary` tokens."""

    name: str
    step: int
    loss: float
    vocabulary: int


def broken(losses: Sequence[MeasuredLoss]) -> dict[str, str]:
    """Find the checkpoints of one training whose loss cannot be right.

    Returns
    -------
    dict of str to str
        Name -> verdict, for the broken ones only.

    Notes
    -----
    A checkpoint is broken if its loss is more than ``ln(250)`` above the median of the three before it and of
    the three after it; or, among the others, below both. Before the first a model guesses, with a loss of
    ``ln(vocabulary)``. None is too low that no other follows: a training falls.

    Not found are wrong weights whose loss is near that of their neighbours, such as those of a neighbour.
    A training that diverged for good, or three broken ones in a row, cannot be told from a sound one.
    """
    known = sorted((each for each in losses if not math.isnan(each.loss)), key=lambda e: e.step)
    found = {}
    for each, above, _ in _beside(known):
        if above > MARGIN:
            found[each.name] = f"broken: perplexity {_ratio(above)} times that of the other steps"
    for each, _, below in _beside([each for each in known if each.name not in found]):
        if below > MARGIN:
            ratio = _ratio(below)
            found[each.name] = (
                f"broken: perplexity {ratio} times lower than that of the other steps"
            )
    return found


def _beside(known: Sequence[MeasuredLoss]) -> Iterator[tuple[MeasuredLoss, float, float]]:
    """How far each loss is above both sides, and below both."""
    values = [each.loss for each in known]
    for place, each in enumerate(known):
        before, after = values[:place][-NEIGHBOURS:], values[place + 1 :][:NEIGHBOURS]
        if place == 0 and each.vocabulary:
            before = [math.log(each.vocabulary)]
        sides = [median_low(side) for side in (before, after) if side]
        above = min((each.loss - side for side in sides), default=0.0)
        below = min((side - each.loss for side in sides), default=0.0)
        yield each, above, below if after else 0.0


def _ratio(difference: float) -> str:
    """Exponential of a difference of losses, to two digits, as people write it."""
    ratio = math.exp(min(difference, 700.0))
    if ratio >= 1e9:
        return f"{ratio:.0e}".replace("e+0", "e").replace("e+", "e")
    digits = max(0, 1 - math.floor(math.log10(ratio)))
    return f"{round(ratio, 1 - math.floor(math.log10(ratio))):,.{digits}f}"
