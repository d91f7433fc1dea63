"""The job that changes blocks of a decoder. The Snakefile reads it at every start, so it imports nothing heavy."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from shape_of_learning.embeddings.protocol import SamplingProtocol, Weights


class EditJob(NamedTuple):
    """A decoder whose blocks are changed.

    Attributes
    ----------
    weights : Weights
    sampling : SamplingProtocol
        Length of the windows, seed and precision; `editing` says how many windows there are.
    editing : mapping
        Section ``block_editing`` of the configuration.
    """

    weights: Weights
    sampling: SamplingProtocol
    editing: Mapping[str, Any]
