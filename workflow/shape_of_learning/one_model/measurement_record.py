"""Make the record that a file of values carries: the protocol, the software, and digests of all inputs."""

import hashlib
import json
import math
import platform
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, NonNegativeInt, PositiveInt

from shape_of_learning import __version__
from shape_of_learning.checkpoints.local import GGUF, find_local_path
from shape_of_learning.checkpoints.shapes import find_model_folder
from shape_of_learning.checkpoints.weight_files import list_checkpoint_files, list_tokenizer_files
from shape_of_learning.embeddings.model import find_device
from shape_of_learning.file_hashes import remember_sha256
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS, TEXT_COLUMNS
from shape_of_learning.one_model.options import NEIGHBOURS, MeasurementOptions
from shape_of_learning.one_model.sources import ModelSource
from shape_of_learning.validation import Section

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy")
DIGEST = "sha256"  # the key of the digest of record and rows, beside the record's own keys
TextKind = Literal["built-in", "file", "stream"]


class TextSource(Section):
    """The text of the windows, which is Python's documentation, a file or a stream, and its SHA-256."""

    source: TextKind
    path: str
    sha256: str


class MeasurementProtocol(Section):
    """All options that decide a number; the options of the forward pass are null for a file of vectors."""

    measures: list[str]
    windows: PositiveInt | None
    window_characters: PositiveInt | None
    batch_vectors: Annotated[int, Field(ge=2)]
    neighbours: PositiveInt
    seed: NonNegativeInt
    batch_size: PositiveInt | None
    layers: Literal["all"] = "all"
    tokens: Literal["all"] = "all"
    last_layer: Literal["after_final_norm"] | None
    precision: Literal["float32"] | None


class MeasurementRecord(Section):
    """Everything that is needed to measure a model again, and to check that it is the same model.

    Attributes
    ----------
    version : int
        The version of this format.
    model, revision : str
        As the user gave them.
    commit : str
        The commit of a model on the Hub; empty for any other model.
    files : dict of str to str
        SHA-256 of each file that decides the hidden states, by name: configuration, weights, adapter and tokenizer, or
        the GGUF file, or the file of vectors.
    text : TextSource or None
        None for a file of vectors.
    protocol : MeasurementProtocol
    device : str
    versions : dict of str to str
        The versions of this package, of Python and of the libraries that compute.
    """

    version: Literal[1] = 1
    model: str
    revision: str
    commit: str
    files: dict[str, str]
    text: TextSource | None
    protocol: MeasurementProtocol
    device: str
    versions: dict[str, str]


class RecordedEstimates(NamedTuple):
    """The rows of estimates of one model, with columns :data:`.ESTIMATE_COLUMNS`, and their record."""

    rows: Sequence[Sequence[Any]]
    record: MeasurementRecord

    def make_cell(self) -> dict[str, Any]:
        """Return the record for a file, with the digest of record and rows."""
        return {**self.record.model_dump(mode="json"), DIGEST: self.compute_digest()}

    def compute_digest(self) -> str:
        """Return the SHA-256 of the record and of the cells of the rows, in any order of the rows."""
        rows = [[*map(_format_cell, ESTIMATE_COLUMNS, row)] for row in self.rows]
        content = [self.record.model_dump(mode="json"), sorted(rows)]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def _format_cell(column: str, cell: Any) -> str:
    """Format a cell; a value has the same text whether it was computed or read from CSV or JSON."""
    if column in TEXT_COLUMNS:
        return str(cell)
    if cell is None or cell == "" or math.isnan(number := float(cell)):
        return ""
    return repr(number)


def make_record(
    source: ModelSource, text: TextSource | None, options: MeasurementOptions
) -> MeasurementRecord:
    """Make the record of a measurement; a file of vectors has no text."""
    has_text = not source.is_vector_file
    return MeasurementRecord(
        model=source.model,
        revision=source.revision,
        commit=source.commit,
        files=hash_files(source),
        text=text if has_text else None,
        protocol=MeasurementProtocol(
            measures=list(options.measures),
            windows=options.windows if has_text else None,
            window_characters=options.window_characters if has_text else None,
            batch_vectors=options.batch_vectors,
            neighbours=NEIGHBOURS,
            seed=options.seed,
            batch_size=options.batch_size if has_text else None,
            last_layer="after_final_norm" if has_text else None,
            precision="float32" if has_text else None,
        ),
        device=str(find_device(options.device)) if has_text else "cpu",
        versions=list_versions(),
    )


def hash_files(source: ModelSource) -> dict[str, str]:
    """Return the SHA-256 of each file that decides the hidden states of a model, by its name."""
    if source.is_vector_file or source.model.lower().endswith(GGUF):
        file = find_local_path(source.model)
        return {file.name: remember_sha256(file)}
    base = find_model_folder(source.path)
    files = {path.name: path for path in list_checkpoint_files(base)}
    if base != source.path:  # an adapter, which may have its own tokenizer
        adapter = [*list_tokenizer_files(source.path), *source.path.glob("adapter_*")]
        files |= {path.name: path for path in adapter}
    return {name: remember_sha256(path) for name, path in sorted(files.items())}


def list_versions() -> dict[str, str]:
    """Return the versions of this package, of Python and of the libraries that compute."""
    versions = {"shape-of-learning": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):  # not installed as a package
            versions[name] = metadata.version(name)
    return versions
