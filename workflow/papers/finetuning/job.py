"""The job that measures a fine-tuning on its task. The Snakefile reads it at every start: it imports nothing heavy."""

from typing import NamedTuple

from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.embeddings.protocol import SamplingProtocol


class TaskJob(NamedTuple):
    """A fine-tuning whose checkpoints are measured on the texts of its task.

    Attributes
    ----------
    model : str
    checkpoints : tuple of (str, int or None)
        The revision of each checkpoint and its step. The folder of a checkpoint has the name of the revision.
    shape : Shape
    sampling : SamplingProtocol
        The seed, the precision and the last layer. Its number and length of windows are 0, since the texts are those
        of the task.
    """

    model: str
    checkpoints: tuple[tuple[str, int | None], ...]
    shape: Shape
    sampling: SamplingProtocol
