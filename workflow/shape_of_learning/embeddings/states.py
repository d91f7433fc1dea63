"""Hidden states of all layers of one checkpoint in HDF5 files.

A hidden state has a number: 0 is the embedding output, L the last layer; L + 1 is the last one before the
final norm, where both are kept. Files are ``layer_0.h5`` to ``layer_L.h5``, and
``layer_L_before_final_norm.h5``.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write

ROWS = ("token_ids", "positions", "windows", "special")
# A chunk is the unit of reading and of the checksum: 256 kB are large against a seek, and smaller than the
# rows of a window. Else most chunks are written in parts, of which HDF5 reads and writes each as a whole.
CHUNK_BYTES = 1 << 18


class StateFiles:
    """Hidden states in the files of a dump, read as they are asked for.

    Parameters
    ----------
    folder : Path
        Of the dump.
    layers : int
        Of the model.
    """

    def __init__(self, folder: Path, layers: int):
        self.folder, self.layers = folder, layers
        self._states: dict[int, np.ndarray] = {}
        self._rows: dict[str, np.ndarray] = {}

    def __getitem__(self, state: int) -> np.ndarray:
        """One hidden state, float32 of shape (tokens, width)."""
        if state not in self._states:
            self._read(state)
        return self._states[state]

    @property
    def rows(self) -> dict[str, np.ndarray]:
        """What each row is, the same in all files."""
        if not self._rows:
            self._read(next(iter(self._states), self.layers))
        return self._rows

    def _read(self, state: int) -> None:
        path = name_state_file(self.folder, state, self.layers)
        try:
            with open_states(path, "r") as file:
                self._states[state] = file["embeddings"][()]
                self._rows = {name: file[name][()] for name in ROWS}
        # As HDF5 calls a checksum that is wrong, too.
        except (OSError, KeyError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"{path} is damaged or missing ({reason}); delete {self.folder} and run again"
            ) from error


def open_states(path: Path, mode: str, **options: Any) -> h5py.File:
    """Open a file of hidden states without a lock, which some file systems of clusters do not have.

    A file is written by one process and gets its name when it is whole, so nobody waits for a lock.

    Raises
    ------
    InputError
        If the environment asks for locks, and the file system has none.
    OSError
        As h5py.
    """
    try:
        return h5py.File(path, mode, locking=False, **options)
    except OSError as error:
        if "lock file" not in str(error):
            raise
        raise InputError(
            f"{path} cannot be locked, which HDF5_USE_FILE_LOCKING in the environment asks for; unset the variable, "
            "or set it to FALSE"
        ) from error


def name_state_file(folder: Path, state: int, layers: int) -> Path:
    """Return the path of one hidden state, by its number."""
    if state > layers:
        return folder / f"layer_{layers}_before_final_norm.h5"
    return folder / f"layer_{state}.h5"


class StateWriter:
    """Writes the hidden states of a checkpoint into files, window by window; see :func:`write_states`."""

    device = "cpu"

    def __init__(self, files: list[h5py.File]):
        self._files = files

    def write(self, state: int, rows: slice, values: np.ndarray) -> None:
        """Write `values`, float32 of shape (rows, width)."""
        self._files[state]["embeddings"][rows] = values


@contextmanager
def write_states(folder: Path, sample: Any, attributes: Mapping[str, Any]) -> Iterator[StateWriter]:
    """Open a file for each hidden state of a sample; the folder is there once all are written.

    Parameters
    ----------
    folder : Path
        Where they go.
    sample : SampleRun
        That writes them; untyped, since who reads them needs no model.
    attributes : mapping
        Where the data come from; stored as attributes of each file, beside ``layer``.

    Notes
    -----
    Dataset ``embeddings`` is float32 of shape ``(tokens, width)``; the others are :data:`ROWS`, of shape
    ``(tokens,)``. Each chunk of rows has a checksum, and so has what describes them: a bit that flips is an
    error when it is read. Nothing is compressed: the mantissa of a hidden state is
    noise to a compressor.
    """
    with atomic_write(folder) as partial, ExitStack() as opened:
        partial.mkdir()
        files = []
        for state, width in enumerate(sample.widths):
            # The latest version of the format has checksums of its own structure.
            path = name_state_file(partial, state, sample.layers)
            file = opened.enter_context(open_states(path, "w", libver="latest"))
            files.append(file)
            file.attrs.update({"layer": min(state, sample.layers), **attributes})
            shape = (sample.tokens, width)
            chunk = (min(sample.tokens, max(1, CHUNK_BYTES // (4 * width))), width)
            file.create_dataset("embeddings", shape, np.float32, chunks=chunk, fletcher32=True)
            for name in ROWS:
                file.create_dataset(name, data=sample.rows[name], chunks=True, fletcher32=True)
        yield StateWriter(files)
