"""The loss of one checkpoint, and the table of one row that holds it."""

import math
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from shape_of_learning.storage.csv_table import write_table


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
