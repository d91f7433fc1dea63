"""A model as the command takes it: a checkpoint on the Hub or on this machine, or a file of vectors."""

from pathlib import Path
from typing import NamedTuple

from shape_of_learning.checkpoints.local import find_checkpoint_folder, is_local
from shape_of_learning.files import expand_home
from shape_of_learning.one_model.in_python import measure_request
from shape_of_learning.one_model.measurement import MeasurementResult, Progress, measure_checkpoint
from shape_of_learning.one_model.options import MeasurementOptions
from shape_of_learning.one_model.sample import Request
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
        """Whether it is a file of vectors, which needs no text."""
        return is_vector_file(self.model)

    @property
    def commit(self) -> str:
        """The commit of a model on the Hub, after which its client names the folder; empty for any other model."""
        return "" if self.is_vector_file or is_local(self.model) else self.path.name


def find_source(model: str, revision: str = "main") -> ModelSource:
    """Find a model on this machine, or bring it from the Hub; InputError if there is none."""
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
    shuffled_as: str = "",
    progress: Progress | None = None,
) -> MeasurementResult:
    """Measure a model, or the vectors in a file, for which there is no text.

    Parameters
    ----------
    source : ModelSource
    text : Path
        Of a checkpoint; not read for vectors.
    options : MeasurementOptions
    name, revision : str
        In the table.
    shuffled_as, progress
        As :func:`.measure_checkpoint` has them.
    """
    if not source.is_vector_file:
        return measure_checkpoint(
            source.path,
            text,
            options,
            name=name,
            revision=revision,
            shuffled_as=shuffled_as,
            progress=progress,
        )
    request = Request(
        measures=options.measures, name=name, seed=options.seed, batch_vectors=options.batch_vectors
    )
    result, _ = measure_request(source.model, request, shuffled_as)
    return result
