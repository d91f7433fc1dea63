"""The job that changes blocks of a decoder. The Snakefile reads it at every start, so it imports nothing heavy."""

from dataclasses import dataclass
from typing import NamedTuple

from shape_of_learning.embeddings.protocol import SamplingProtocol, Weights


@dataclass(frozen=True, kw_only=True)
class Distillation:
    """The training of a changed decoder on the hidden states of the unchanged one.

    Attributes
    ----------
    steps : int
        The number of updates by Adam.
    windows : int
        The number of windows of an update.
    learning_rate : float
        The learning rate at the start, from which it falls to zero.
    """

    steps: int
    windows: int
    learning_rate: float


@dataclass(frozen=True, kw_only=True)
class Editing:
    """The changes of blocks: the values of section ``block_editing`` of the configuration.

    Attributes
    ----------
    fitting_windows, evaluation_windows : int
        The number of windows that maps are fitted on, and of windows that perplexity is measured on.
    most_blocks : int
        The largest number of blocks that are changed together.
    orders, kinds : tuple of str
        Options of ``block_editing.orders`` and ``block_editing.kinds``.
    distillation : Distillation
    """

    fitting_windows: int
    evaluation_windows: int
    most_blocks: int
    orders: tuple[str, ...]
    kinds: tuple[str, ...]
    distillation: Distillation


class EditJob(NamedTuple):
    """A decoder whose blocks are changed.

    Attributes
    ----------
    weights : Weights
    sampling : SamplingProtocol
        The length of the windows, the seed and the precision; `editing` has the numbers of windows.
    editing : Editing
    """

    weights: Weights
    sampling: SamplingProtocol
    editing: Editing
