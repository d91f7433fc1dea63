"""Changed decoders that are trained to have the hidden states of the unchanged one."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from shape_of_learning.blocks.editing import BlockEditing
from shape_of_learning.blocks.replace import EditableBlocks
from shape_of_learning.embeddings.tokenised_windows import TokenisedWindow


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
