"""An affine map for each block, fitted on the training text, and its error on each token."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from shape_of_learning.blocks.replace import AffineMap, EditableBlocks
from shape_of_learning.embeddings.model import require_memory
from shape_of_learning.embeddings.tokenised_windows import TokenisedWindow
from shape_of_learning.errors import InputError
from shape_of_learning.estimators.linearity import (
    QUANTILES,
    block_norm_ratio,
    error_summary,
    fit_errors,
    map_of,
)
from shape_of_learning.estimators.pair import Pair

FIT_ERROR_COLUMNS = (
    *("model", "revision", "layer", "depth", "tokens", "linearity", "share_of_worst_tokens"),
    *(f"quantile_{quantile:g}" for quantile in QUANTILES),
)


@dataclass(frozen=True)
class FittedBlock:
    r"""The affine map that is nearest to a block on the training text.

    Attributes
    ----------
    weight, bias : ndarray of float64, shapes (d, d) and (d,)
        :math:`A, b` that minimise :math:`\sum_i \|x_i A + b - y_i\|^2`, where a block takes hidden state
        :math:`x_i` to :math:`y_i`.
    errors : ndarray of float64, shape (tokens,)
        :math:`\|x_i A + b - y_i\| / \|Y - \bar Y\|_F`, normalised as linearity is: their squares add up to
        1 - linearity.
    norm_ratio : float
        Median of :math:`\|y_i - x_i\| / \|y_i\|`.
    seconds : float
        Of the fit.
    """

    weight: np.ndarray
    bias: np.ndarray
    errors: np.ndarray
    norm_ratio: float
    seconds: float

    @property
    def linearity(self) -> float:
        """Linearity of the block on these tokens, the share of variance that the map gives."""
        return 1 - float(self.errors @ self.errors)

    def map(self) -> AffineMap:
        """Make a module of it."""
        return AffineMap(self.weight, self.bias)


def states_of_training_text(
    blocks: EditableBlocks, windows: Sequence[TokenisedWindow], padding: int, size: int
) -> list[np.ndarray]:
    """Hidden states before the first block and after each, of all tokens of all windows in their order.

    Parameters
    ----------
    blocks : EditableBlocks
        Of the unchanged model.
    windows : sequence of TokenisedWindow
    padding : int
        Token that fills up short windows.
    size : int
        Windows that go through the model together.

    Returns
    -------
    list of ndarray of float32, shape (tokens, d), length L + 1

    Raises
    ------
    InputError
        If memory does not suffice for them.
    """
    ends = np.cumsum([len(window.ids) for window in windows])
    kept: list[np.ndarray] = []
    with torch.no_grad():
        for first in range(0, len(windows), size):
            part = windows[first : first + size]
            for number, states in enumerate(blocks.states([w.ids for w in part], padding)):
                if number == len(kept):
                    require_memory(
                        4 * (len(blocks) + 1 - number) * int(ends[-1]) * states.shape[-1],
                        "the hidden states that maps are fitted on",
                        "lower `block_editing.fitting_windows`",
                    )
                    kept.append(np.empty((ends[-1], states.shape[-1]), dtype=np.float32))
                for window, rows, end in zip(
                    part, states.float().cpu(), ends[first:], strict=False
                ):
                    length = len(window.ids)
                    kept[number][end - length : end] = rows[:length]
    return kept


def fitted_blocks(states: Sequence[np.ndarray]) -> list[FittedBlock]:
    """Fit an affine map to each block by least squares.

    Parameters
    ----------
    states : sequence of ndarray of float32, shape (tokens, d), length L + 1
        Before the first block and after each.

    Raises
    ------
    InputError
        If there are so few tokens that any data would fit.
    """
    return [_fitted(x, y) for x, y in pairwise(states)]


def _fitted(x: np.ndarray, y: np.ndarray) -> FittedBlock:
    start = time.perf_counter()
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        nothing = np.full(len(x), np.nan)
        return FittedBlock(nothing, nothing, nothing, np.nan, 0.0)
    pair = Pair(x, y)
    weight, bias, rank = map_of(pair)
    if len(x) - 1 <= rank:
        raise InputError(
            f"{len(x)} tokens of the training text are too few to fit a map in {rank} directions, where any "
            "data fit; raise `block_editing.fitting_windows`"
        )
    seconds = time.perf_counter() - start
    return FittedBlock(weight, bias, fit_errors(pair), block_norm_ratio(x, y), seconds)


def fit_error_rows(model: str, revision: str, fitted: Sequence[FittedBlock]) -> list[tuple]:
    """One row per block, of the columns :data:`FIT_ERROR_COLUMNS`.

    `layer` is the number of the block from 1, and `depth` its share of them; the quantiles are those of the
    errors of all tokens, and `share_of_worst_tokens` is what the tokens with the largest errors, one in a
    hundred, have of the sum of their squares.
    """
    rows = []
    for number, block in enumerate(fitted, start=1):
        quantiles, worst_share = error_summary(block.errors)
        measured = len(block.errors), block.linearity, worst_share, *quantiles
        rows.append((model, revision, number, number / len(fitted), *measured))
    return rows
