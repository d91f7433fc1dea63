"""The blocks of a loaded decoder, and affine maps in their place: fitted on the training text, or distilled."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from papers.linear.job import Distillation
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.hooks import hook_modules, record_states
from shape_of_learning.embeddings.tokenised_windows import TokenisedWindow
from shape_of_learning.errors import InputError
from shape_of_learning.estimators import linearity
from shape_of_learning.estimators.pair import Pair

FIT_ERROR_COLUMNS = (
    *("model", "revision", "layer", "depth", "tokens", "linearity", "share_of_worst_tokens"),
    *(f"quantile_{quantile:g}" for quantile in linearity.QUANTILES),
)
WINDOW_BATCH = 16  # windows of the training text that go through the model together


class AffineMap(torch.nn.Module):
    """y = x A + b, formed in float32 whatever the precision of x.

    Parameters
    ----------
    weight : array-like, shape (d, d)
        A.
    bias : array-like, shape (d,)
        b.
    """

    def __init__(self, weight: Any, bias: Any):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(np.asarray(weight), dtype=torch.float32))
        self.bias = torch.nn.Parameter(torch.tensor(np.asarray(bias), dtype=torch.float32))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Map hidden states, shape (..., d)."""
        return (states.float() @ self.weight + self.bias).to(states.dtype)


class EditableBlocks:
    """The transformer blocks of a loaded model, numbered from 1.

    Parameters
    ----------
    forward : ForwardPass
        The model. A token is run through it.
    name : str
        How messages call it.

    Raises
    ------
    InputError
        If the model has no list of blocks.
    """

    def __init__(self, forward: ForwardPass, name: str):
        remedy = f"its blocks cannot be changed one by one: remove {name} from what draws them"
        self._blocks = forward.find_blocks(remedy)
        self._forward = forward
        self._entries: list[int | None] = []
        with hook_modules(self._blocks, self._note_entries):
            forward.run([np.zeros(1, dtype=np.int64)], 0)

    def __len__(self) -> int:
        return len(self._blocks)

    @contextmanager
    def replace_blocks(self, maps: Mapping[int, torch.nn.Module]) -> Iterator[None]:
        """Let `maps` take the places of blocks, by their numbers, and give these back.

        Parameters
        ----------
        maps : mapping of int to Module
            Each takes the hidden states before its block, shape (batch, tokens, d), to those after it:
            ``torch.nn.Identity()`` drops a block. It is moved to the device of the model.
        """
        originals = {number: self._blocks[number - 1] for number in maps}
        try:
            for number, block in originals.items():
                states_map, entries = (
                    maps[number].to(self._forward.device),
                    self._entries[number - 1],
                )
                self._blocks[number - 1] = _make_block(block, states_map, entries)
            yield
        finally:
            for number, block in originals.items():
                self._blocks[number - 1] = block

    def states(self, texts: list[np.ndarray], padding: int) -> list[torch.Tensor]:
        """Run windows through the model.

        Parameters
        ----------
        texts : list of ndarray of int64, shape (length,)
            Tokens of the windows, which are padded on the right by the token `padding`.

        Returns
        -------
        list of tensor, length L + 1
            Hidden states before the first block and after all blocks, before any final norm: shape (windows,
            longest, d).
        """
        with record_states(self._blocks) as states:
            self._forward.run(texts, padding)
        return states

    def _note_entries(self, block: Any, args: tuple, options: dict, output: Any) -> None:
        """Note the number of entries of the tuple that a block returns; None for one tensor."""
        self._entries.append(len(output) if isinstance(output, tuple) else None)


def _make_block(
    block: torch.nn.Module, states_map: torch.nn.Module, entries: int | None
) -> torch.nn.Module:
    """Make a block of the same class that applies a map and returns it as `block` returns hidden states.

    The library records hidden states by the class of a block, and once and for all by hooks: a block of
    another class, or without these hooks, would silently be missing among them. So the new block has all
    of the old one but its weights, the very hooks too.
    """

    def forward(self: Any, hidden_states: torch.Tensor, *_: Any, **__: Any) -> Any:
        mapped = self.states_map(hidden_states)
        return mapped if entries is None else (mapped, *[None] * (entries - 1))

    kind = type(block)
    replaced = copy.copy(block)
    replaced.__class__ = type(kind.__name__, (kind,), {"forward": forward})
    vars(replaced).update(_parameters={}, _buffers={}, _modules={"states_map": states_map})
    return replaced


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
    """

    weight: np.ndarray
    bias: np.ndarray
    errors: np.ndarray
    norm_ratio: float

    @property
    def linearity(self) -> float:
        """Linearity of the block on these tokens, the share of variance that the map gives."""
        return 1 - float(self.errors @ self.errors)

    def make_map(self) -> AffineMap:
        """Make a module of the map."""
        return AffineMap(self.weight, self.bias)


def fit_blocks(states: Sequence[np.ndarray]) -> list[FittedBlock]:
    """Fit an affine map to each block by least squares.

    Parameters
    ----------
    states : sequence of ndarray of float32, shape (tokens, d), length L + 1
        Hidden states before the first block and after all blocks.

    Raises
    ------
    InputError
        If there are so few tokens that any data would fit.
    """
    return [_fit_block(x, y) for x, y in pairwise(states)]


def _fit_block(x: np.ndarray, y: np.ndarray) -> FittedBlock:
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        nothing = np.full(len(x), np.nan)
        return FittedBlock(nothing, nothing, nothing, np.nan)
    pair = Pair(x, y)
    weight, bias, rank = linearity.fit_pair(pair)
    if len(x) - 1 <= rank:
        raise InputError(
            f"{len(x)} tokens of the training text are too few to fit a map in {rank} directions, where any "
            "data fit; raise `block_editing.fitting_windows`"
        )
    ratio = linearity.block_norm_ratio(x, y)
    return FittedBlock(weight, bias, linearity.fit_errors(pair), ratio)


def fit_error_rows(model: str, revision: str, fitted: Sequence[FittedBlock]) -> list[tuple]:
    """One row per block, of the columns :data:`FIT_ERROR_COLUMNS`.

    `layer` is the number of the block from 1, and `depth` its share of them; the quantiles are those of the
    errors of all tokens, and `share_of_worst_tokens` is what the tokens with the largest errors, one in a
    hundred, have of the sum of their squares.
    """
    rows = []
    for number, block in enumerate(fitted, start=1):
        quantiles, worst_share = linearity.summarise_errors(block.errors)
        measured = len(block.errors), block.linearity, worst_share, *quantiles
        rows.append((model, revision, number, number / len(fitted), *measured))
    return rows


class TeacherStates:
    """Windows of the training text, and the hidden states that the unchanged model gives them.

    Parameters
    ----------
    blocks : EditableBlocks
        The blocks of the unchanged model.
    windows : sequence of TokenisedWindow
    padding : int
        The token that fills up short windows.

    Attributes
    ----------
    states : list of ndarray of float32, shape (tokens, d), length L + 1
        Hidden states before the first block and after all blocks, of all tokens of all windows in their order.
    """

    def __init__(self, blocks: EditableBlocks, windows: Sequence[TokenisedWindow], padding: int):
        self._texts, self._padding = [window.ids for window in windows], padding
        ends = np.cumsum([len(ids) for ids in self._texts]).tolist()
        self._rows = list(map(slice, [0, *ends], ends))
        layers: list[list[np.ndarray]] = [[] for _ in range(len(blocks) + 1)]
        with torch.no_grad():
            for first in range(0, len(windows), WINDOW_BATCH):
                texts = self._texts[first : first + WINDOW_BATCH]
                for layer, states in zip(layers, blocks.states(texts, padding), strict=True):
                    rows = states.float().cpu().numpy()
                    layer += [
                        vectors[: len(ids)].copy() for vectors, ids in zip(rows, texts, strict=True)
                    ]
        # The parts of a layer are freed before the next layer is joined.
        self.states = [np.concatenate(layers.pop(0)) for _ in range(len(layers))]
        self._spreads = [float(state.var(axis=0, dtype=np.float64).sum()) for state in self.states]

    def error(self, blocks: EditableBlocks, first: int, windows: Iterable[int]) -> torch.Tensor:
        r"""Return the error of the hidden states after the blocks `first` to L on some windows.

        It is the mean over these blocks of :math:`\sum_i \|s_i - y_i\|^2 / \sum_i \|y_i - \bar y\|^2`. The error of
        a block is divided by the variance of its own hidden states, since otherwise the last blocks would weigh most.

        Parameters
        ----------
        blocks : EditableBlocks
            The blocks of the changed model.
        first : int
            The first block that is changed; before it no hidden state differs.
        windows : iterable of int
            Numbers of the windows.
        """
        numbers = list(windows)
        states = blocks.states([self._texts[number] for number in numbers], self._padding)
        slices = [self._rows[number] for number in numbers]
        tokens = sum(rows.stop - rows.start for rows in slices)
        errors = []
        for number in range(first, len(states)):
            squares = []
            for vectors, rows in zip(states[number], slices, strict=True):
                unchanged = torch.from_numpy(self.states[number][rows]).to(vectors.device)
                difference = vectors[: len(unchanged)].float() - unchanged
                squares.append(difference.square().sum())
            errors.append(torch.stack(squares).sum() / (tokens * self._spreads[number]))
        return torch.stack(errors).mean()

    def __len__(self) -> int:
        return len(self._texts)


def distil(
    blocks: EditableBlocks,
    parameters: Iterable[torch.nn.Parameter],
    teacher: TeacherStates,
    first: int,
    distillation: Distillation,
    random: np.random.Generator,
) -> None:
    """Train parameters of a changed model by Adam, at a rate that falls to zero linearly.

    Parameters
    ----------
    blocks : EditableBlocks
        The blocks of the changed model.
    parameters : iterable of Parameter
        The parameters that are trained, in place.
    teacher : TeacherStates
    first : int
        The first block that is changed.
    distillation : Distillation
    random : numpy.random.Generator
        It draws the windows.
    """
    trained = [parameter.requires_grad_() for parameter in parameters]
    optimiser = torch.optim.Adam(trained, lr=distillation.learning_rate)
    for step in range(distillation.steps):
        for group in optimiser.param_groups:
            group["lr"] = distillation.learning_rate * (1 - step / distillation.steps)
        windows = random.permutation(len(teacher))[: distillation.windows]
        optimiser.zero_grad()
        teacher.error(blocks, first, windows.tolist()).backward()
        optimiser.step()
