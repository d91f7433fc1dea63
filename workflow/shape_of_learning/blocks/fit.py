"""An affine map for each block, fitted on the training text or distilled, and its error on each token."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from shape_of_learning.blocks.editing import BlockEditing
from shape_of_learning.blocks.replace import AffineMap, EditableBlocks
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
    """
    layers: list[list[np.ndarray]] = [[] for _ in range(len(blocks) + 1)]
    with torch.no_grad():
        for first in range(0, len(windows), size):
            texts = [window.ids for window in windows[first : first + size]]
            for layer, states in zip(layers, blocks.states(texts, padding), strict=True):
                rows = states.float().cpu().numpy()
                layer += [own[: len(ids)].copy() for own, ids in zip(rows, texts, strict=True)]
    # Each layer's parts are given back before the next one is joined.
    return [np.concatenate(layers.pop(0)) for _ in range(len(layers))]


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


class TeacherStates:
    """Windows of the training text, and the hidden states that the unchanged model gives them.

    Parameters
    ----------
    windows : sequence of TokenisedWindow
    states : sequence of ndarray of float32, shape (tokens, d), length L + 1
        Of all tokens of all windows in their order.
    padding : int
        Token that fills up short windows.
    """

    def __init__(
        self, windows: Sequence[TokenisedWindow], states: Sequence[np.ndarray], padding: int
    ):
        self._windows, self._states, self._padding = windows, states, padding
        ends = np.cumsum([len(window.ids) for window in windows])
        self._rows = [
            slice(end - len(w.ids), end) for w, end in zip(windows, ends.tolist(), strict=True)
        ]
        self._spreads = [float(state.var(axis=0, dtype=np.float64).sum()) for state in self._states]

    def error(self, blocks: EditableBlocks, first: int, chosen: Iterable[int]) -> torch.Tensor:
        r"""Error of the hidden states after the blocks `first` to L on some windows.

        Mean over these blocks of :math:`\sum_i \|s_i - y_i\|^2 / \sum_i \|y_i - \bar y\|^2`: each is compared
        with the variance of its own hidden states, else the last ones would weigh most.

        Parameters
        ----------
        blocks : EditableBlocks
            Of the changed model.
        first : int
            The first one that is changed: before it nothing differs.
        chosen : iterable of int
            Numbers of the windows.
        """
        chosen = list(chosen)
        found = blocks.states([self._windows[number].ids for number in chosen], self._padding)
        rows = [self._rows[number] for number in chosen]
        tokens = sum(each.stop - each.start for each in rows)
        errors = []
        for number in range(first, len(found)):
            squares = []
            for own, each in zip(found[number], rows, strict=True):
                wanted = torch.from_numpy(self._states[number][each]).to(own.device)
                squares.append((own[: len(wanted)].float() - wanted).square().sum())
            errors.append(torch.stack(squares).sum() / (tokens * self._spreads[number]))
        return torch.stack(errors).mean()

    def __len__(self) -> int:
        return len(self._windows)


def distil(
    blocks: EditableBlocks,
    parameters: Iterable[torch.nn.Parameter],
    teacher: TeacherStates,
    first: int,
    editing: BlockEditing,
    random: np.random.Generator,
) -> None:
    """Train parameters of a changed model by Adam, at a rate that falls to zero linearly.

    Parameters
    ----------
    blocks : EditableBlocks
        Of the changed model.
    parameters : iterable of Parameter
        Those that are trained; they are changed.
    teacher : TeacherStates
    first : int
        The first block that is changed.
    editing : BlockEditing
        Number of updates, windows of each, learning rate.
    random : numpy.random.Generator
        Decides which windows.
    """
    trained = [parameter.requires_grad_() for parameter in parameters]
    optimiser = torch.optim.Adam(trained, lr=editing.learning_rate)
    for step in range(editing.distillation_steps):
        for group in optimiser.param_groups:
            group["lr"] = editing.learning_rate * (1 - step / editing.distillation_steps)
        chosen = random.permutation(len(teacher))[: editing.distillation_windows]
        optimiser.zero_grad()
        teacher.error(blocks, first, chosen.tolist()).backward()
        optimiser.step()
