"""What a model is shown during local pretraining, and what it has to predict."""

from dataclasses import dataclass

import numpy as np

IGNORED = -100  # the label that transformers leaves out of the loss
# Devlin et al. 2019, section 3.1: of the masked positions 80 % show the mask, 10 % another token.
MASKED_SHARE, SHOWN_AS_MASK, SHOWN_AS_OTHER = 0.15, 0.8, 0.1


@dataclass(frozen=True)
class CausalObjective:
    """Predict the next token."""

    context: int

    def batch(
        self, ids: np.ndarray, size: int, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw `size` stretches of the text; shown and predicted tokens, each (size, context)."""
        shown = _stretches(ids, size, self.context, random)
        return shown, shown  # the model shifts the labels itself


@dataclass(frozen=True)
class MaskedObjective:
    """Predict masked tokens of ``[CLS] stretch [SEP]`` (Devlin et al. 2019).

    Attributes
    ----------
    context : int
        Length of a sequence, both special tokens included.
    cls, sep, mask : int
        Their ids.
    ordinary : range
        The ids that are no special tokens.
    """

    context: int
    cls: int
    sep: int
    mask: int
    ordinary: range

    def batch(
        self, ids: np.ndarray, size: int, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw `size` stretches of the text and mask them; shown and predicted, (size, context)."""
        body = _stretches(ids, size, self.context - 2, random)
        chosen = random.random(body.shape) < MASKED_SHARE
        chosen[:, 0] |= ~chosen.any(axis=1)  # a sequence with nothing to predict has no loss
        fate = random.random(body.shape)
        other = random.integers(self.ordinary.start, self.ordinary.stop, body.shape)
        shown = np.where(chosen & (fate < SHOWN_AS_MASK), self.mask, body)
        replaced = (fate >= SHOWN_AS_MASK) & (fate < SHOWN_AS_MASK + SHOWN_AS_OTHER)
        shown = np.where(chosen & replaced, other, shown)
        predicted = np.where(chosen, body, IGNORED)
        return _framed(shown, self.cls, self.sep), _framed(predicted, IGNORED, IGNORED)


def _stretches(ids: np.ndarray, size: int, length: int, random: np.random.Generator) -> np.ndarray:
    starts = random.integers(0, len(ids) - length + 1, size)
    return ids[starts[:, np.newaxis] + np.arange(length)]


def _framed(body: np.ndarray, first: int, last: int) -> np.ndarray:
    return np.pad(body, ((0, 0), (1, 1)), constant_values=((0, 0), (first, last)))
