"""The blocks of a loaded decoder, and the affine maps that replace them, fitted on the training text or distilled."""

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
    "model",
    "revision",
    "layer",
    "depth",
    "tokens",
    "linearity",
    "share_of_worst_tokens",
    *(f"quantile_{quantile:g}" for quantile in linearity.QUANTILES),
)
WINDOW_BATCH = 16  # the number of windows of the training text in a forward pass


class AffineMap(torch.nn.Module):
    """The map y = x A + b, which is computed in float32 for any precision of x.

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
        The model. One token is run through it, to see what its blocks return.
    name : str
        The name of the model in messages.

    Raises
    ------
    InputError
        If the model has no list of blocks.
    """

    def __init__(self, forward: ForwardPass, name: str):
        remedy = (
            f"its blocks cannot be changed one by one: remove {name} from the figures that draw "
            "changed blocks"
        )
        self._blocks = forward.find_blocks(remedy)
        self._forward = forward
        self._entries: list[int | None] = []
        with hook_modules(self._blocks, self._note_entries):
            forward.run([np.zeros(1, dtype=np.int64)], 0)

    def __len__(self) -> int:
        return len(self._blocks)

    @contextmanager
    def replace_blocks(self, maps: Mapping[int, torch.nn.Module]) -> Iterator[None]:
        """Replace blocks by maps, and put the blocks back at the end.

        Parameters
        ----------
        maps : mapping of int to Module
            The number of a block -> the map that takes the hidden states before the block, shape (batch, tokens, d),
            to the hidden states after it: ``torch.nn.Identity()`` drops a block. Maps are moved to the device of the
            model.
        """
        originals = {number: self._blocks[number - 1] for number in maps}
        try:
            for number, block in originals.items():
                states_map = maps[number].to(self._forward.device)
                entries = self._entries[number - 1]
                self._blocks[number - 1] = _make_block(block, states_map, entries)
            yield
        finally:
            for number, block in originals.items():
                self._blocks[number - 1] = block

    def compute_states(self, texts: list[np.ndarray], padding: int) -> list[torch.Tensor]:
        """Run windows through the model.

        Parameters
        ----------
        texts : list of ndarray of int64, shape (length,)
            The tokens of each window, which are padded on the right by the token `padding`.

        Returns
        -------
        list of tensor, length L + 1
            The hidden states before the first block and after each block, before any final norm, shape (windows,
            tokens of the longest window, d).
        """
        with record_states(self._blocks) as states:
            self._forward.run(texts, padding)
        return states

    def _note_entries(self, block: Any, args: tuple, options: dict, output: Any) -> None:
        """Note the number of entries of the tuple that a block returns; None if it returns one tensor."""
        self._entries.append(len(output) if isinstance(output, tuple) else None)


def _make_block(
    block: torch.nn.Module, states_map: torch.nn.Module, entries: int | None
) -> torch.nn.Module:
    """Make a block of the same class that applies a map and returns its output in the form of the old block.

    The library records hidden states by hooks on blocks of a certain class: the states of a block of another class, or
    of a block without these hooks, would silently be missing. So the new block has all attributes of the old block,
    hooks included, but not its weights.
    """

    def forward(self: Any, hidden_states: torch.Tensor, *_: Any, **__: Any) -> Any:
        output = self.states_map(hidden_states)
        return output if entries is None else (output, *[None] * (entries - 1))

    kind = type(block)
    new_block = copy.copy(block)
    new_block.__class__ = type(kind.__name__, (kind,), {"forward": forward})
    vars(new_block).update(_parameters={}, _buffers={}, _modules={"states_map": states_map})
    return new_block


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
        The hidden states before the first block and after each block.

    Raises
    ------
    InputError
        If there are so few tokens that a map would fit any data.
    """
    return [_fit_block(x, y) for x, y in pairwise(states)]


def _fit_block(x: np.ndarray, y: np.ndarray) -> FittedBlock:
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        nan_values = np.full(len(x), np.nan)
        return FittedBlock(nan_values, nan_values, nan_values, np.nan)
    pair = Pair(x, y)
    weight, bias, rank = linearity.fit_pair(pair)
    if len(x) - 1 <= rank:
        raise InputError(
            f"{len(x)} tokens of the training text are too few to fit a map in {rank} directions, since it would fit "
            "any data; raise `block_editing.fitting_windows`"
        )
    ratio = linearity.block_norm_ratio(x, y)
    return FittedBlock(weight, bias, linearity.fit_errors(pair), ratio)


def make_fit_error_rows(model: str, revision: str, blocks: Sequence[FittedBlock]) -> list[tuple]:
    """Make one row per block, with the columns :data:`FIT_ERROR_COLUMNS`.

    `layer` is the number of the block, from 1, and `depth` this number over the number of blocks. The quantiles
    describe the errors of all tokens, and `share_of_worst_tokens` is the share of the sum of squared errors that the
    hundredth of the tokens with the largest errors has.
    """
    rows = []
    for number, block in enumerate(blocks, start=1):
        quantiles, worst_share = linearity.summarise_errors(block.errors)
        values = len(block.errors), block.linearity, worst_share, *quantiles
        rows.append((model, revision, number, number / len(blocks), *values))
    return rows


class TeacherStates:
    """Windows of the training text, and their hidden states in the unchanged model.

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
        The hidden states before the first block and after each block, of all tokens of all windows in their order.
    """

    def __init__(self, blocks: EditableBlocks, windows: Sequence[TokenisedWindow], padding: int):
        self._texts = [window.ids for window in windows]
        self._padding = padding
        ends = np.cumsum([len(ids) for ids in self._texts]).tolist()
        self._rows = list(map(slice, [0, *ends], ends))
        layers: list[list[np.ndarray]] = [[] for _ in range(len(blocks) + 1)]
        with torch.no_grad():
            for first in range(0, len(windows), WINDOW_BATCH):
                texts = self._texts[first : first + WINDOW_BATCH]
                for layer, states in zip(
                    layers, blocks.compute_states(texts, padding), strict=True
                ):
                    rows = states.float().cpu().numpy()
                    layer += [
                        vectors[: len(ids)].copy() for vectors, ids in zip(rows, texts, strict=True)
                    ]
        # The parts of a layer are freed before the next layer is joined.
        self.states = [np.concatenate(layers.pop(0)) for _ in range(len(layers))]
        self._spreads = [float(state.var(axis=0, dtype=np.float64).sum()) for state in self.states]

    def compute_error(
        self, blocks: EditableBlocks, first: int, windows: Iterable[int]
    ) -> torch.Tensor:
        r"""Return the error of the hidden states after the blocks `first` to L on some windows.

        The error is the mean over these blocks of :math:`\sum_i \|s_i - y_i\|^2 / \sum_i \|y_i - \bar y\|^2`. The
        squared differences of a block are divided by the variance of its hidden states, since otherwise the last blocks
        would weigh most.

        Parameters
        ----------
        blocks : EditableBlocks
            The blocks of the changed model.
        first : int
            The first block that is changed; no hidden state before it differs.
        windows : iterable of int
            The numbers of the windows.
        """
        numbers = list(windows)
        states = blocks.compute_states([self._texts[number] for number in numbers], self._padding)
        slices = [self._rows[number] for number in numbers]
        tokens = sum(rows.stop - rows.start for rows in slices)
        errors = []
        for number in range(first, len(states)):
            squares = []
            for vectors, rows in zip(states[number], slices, strict=True):
                teacher_states = torch.from_numpy(self.states[number][rows]).to(vectors.device)
                difference = vectors[: len(teacher_states)].float() - teacher_states
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
    """Train parameters of a changed model by Adam, at a learning rate that falls linearly to zero.

    Parameters
    ----------
    blocks : EditableBlocks
        The blocks of the changed model.
    parameters : iterable of Parameter
        The parameters, which are trained in place.
    teacher : TeacherStates
    first : int
        The first block that is changed.
    distillation : Distillation
    random : numpy.random.Generator
        The generator that draws the windows.
    """
    trained_parameters = [parameter.requires_grad_() for parameter in parameters]
    optimiser = torch.optim.Adam(trained_parameters, lr=distillation.learning_rate)
    for step in range(distillation.steps):
        for group in optimiser.param_groups:
            group["lr"] = distillation.learning_rate * (1 - step / distillation.steps)
        windows = random.permutation(len(teacher))[: distillation.windows]
        optimiser.zero_grad()
        teacher.compute_error(blocks, first, windows.tolist()).backward()
        optimiser.step()
