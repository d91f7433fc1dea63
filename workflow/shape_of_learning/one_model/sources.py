"""Find and measure a model that a user names: a checkpoint on the Hub or this machine, or a file of vectors."""

from pathlib import Path
from typing import NamedTuple

from shape_of_learning.checkpoints.local import find_checkpoint_folder, is_local
from shape_of_learning.files import expand_home
from shape_of_learning.one_model.in_python import measure_request
from shape_of_learning.one_model.measurement import MeasurementResult, Progress, measure_checkpoint
from shape_of_learning.one_model.options import MeasurementOptions
from shape_of_learning.one_model.request import Request
from shape_of_learning.one_model.vector_files import is_vector_file


class ModelSource(NamedTuple):
    """A model that is on this machine now.

    Attributes
    ----------
    model, revision : str
        As the user gave them.
    path : Path
        The folder of the checkpoint, or the file of vectors.
    """

    model: str
    revision: str
    path: Path

    @property
    def is_vector_file(self) -> bool:
        """Whether the model is a file of vectors, which needs no text."""
        return is_vector_file(self.model)

    @property
    def commit(self) -> str:
        """The commit of a model on the Hub, by which the Hub's client names the folder; empty for any other model."""
        return "" if self.is_vector_file or is_local(self.model) else self.path.name


def find_source(model: str, revision: str = "main") -> ModelSource:
    """Find a model on this machine, or download it from the Hub; InputError if it does not exist."""
    if is_vector_file(model):
        return ModelSource(model, revision, expand_home(model))
    return ModelSource(model, revision, find_checkpoint_folder(model, revision)[1])


def measure_source(
    source: ModelSource,
    text: Path,
    options: MeasurementOptions,
    *,
    name: str,
    revision: str,
    shuffle_name: str = "",
    progress: Progress | None = None,
) -> MeasurementResult:
    """Measure a model, or the vectors in a file.

    Parameters
    ----------
    source : ModelSource
    text : Path
        The text of the windows; not read for a file of vectors.
    options : MeasurementOptions
    name, revision : str
        The name and revision in the table.
    shuffle_name, progress
        As in :func:`.measure_checkpoint`.
    """
    if not source.is_vector_file:
        return measure_checkpoint(
            source.path,
            text,
            options,
            name=name,
            revision=revision,
            shuffle_name=shuffle_name,
            progress=progress,
        )
    request = Request(
        measures=options.measures, name=name, seed=options.seed, batch_vectors=options.batch_vectors
    )
    result, _ = measure_request(source.model, request, shuffle_name)
    return result
