"""Read and write the hidden states of all layers of one checkpoint in HDF5 files.

Hidden state 0 is the embedding output, L the last layer, and L + 1, if it is stored, the last state before the final
norm. The files are ``layer_0.h5`` to ``layer_L.h5``, and ``layer_L_before_final_norm.h5``.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.estimators.massive import find_massive_in_any_state
from shape_of_learning.files import atomic_write

ROWS = ("token_ids", "positions", "windows", "special")
MASSIVE = "massive"
# A chunk is the unit of reading and of the checksum. 256 kB take longer to read than to find. They are also smaller
# than the rows of a window, so that few chunks are written in parts, which HDF5 would read and write again.
CHUNK_BYTES = 1 << 18


class StateFiles:
    """Hidden states in the files of a dump, which are read when they are used.

    Parameters
    ----------
    folder : Path
        Folder of the dump.
    layers : int
        Number of layers of the model.
    """

    def __init__(self, folder: Path, layers: int):
        self.folder, self.layers = folder, layers
        self._states: dict[int, np.ndarray] = {}
        self._rows: dict[str, np.ndarray] = {}

    def __getitem__(self, state: int) -> np.ndarray:
        """Return one hidden state, float32 of shape (tokens, width)."""
        if state not in self._states:
            self._read(state)
        return self._states[state]

    @property
    def rows(self) -> dict[str, np.ndarray]:
        """The columns that describe the rows, the same in all files."""
        if not self._rows:
            self._read(next(iter(self._states), self.layers))
        return self._rows

    @property
    def massive(self) -> np.ndarray:
        """Whether each token is massive in any hidden state of the dump, bool of shape (tokens,)."""
        return self.rows[MASSIVE]

    def _read(self, state: int) -> None:
        path = name_state_file(self.folder, state, self.layers)
        try:
            with open_states(path, "r") as file:
                self._states[state] = file["embeddings"][()]
                if MASSIVE not in file:
                    raise InputError(
                        f"{path} does not say which tokens are massive in any layer, like files of earlier versions; "
                        f"delete {self.folder} and run again"
                    )
                self._rows = {name: file[name][()] for name in (*ROWS, MASSIVE)}
        except (OSError, KeyError, RuntimeError) as error:  # also for a wrong checksum
            reason = " ".join(str(error).split())
            raise InputError(
                f"{path} is damaged or missing ({reason}); delete {self.folder} and run again"
            ) from error


def open_states(path: Path, mode: str, **options: Any) -> h5py.File:
    """Open a file of hidden states without a lock, since some file systems of clusters have none.

    One process writes a file and renames it when it is whole, so a lock is not needed.

    Raises
    ------
    InputError
        If the environment asks for locks, and the file system has none.
    OSError
        If h5py cannot open the file.
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
    """Return the path of the file of a hidden state."""
    if state > layers:
        return folder / f"layer_{layers}_before_final_norm.h5"
    return folder / f"layer_{state}.h5"


class StateWriter:
    """A store that writes hidden states into files, window by window; see :func:`write_states`."""

    device = "cpu"

    def __init__(self, files: list[h5py.File]):
        self._files = files

    def write(self, state: int, rows: slice, values: np.ndarray) -> None:
        """Write `values`, float32 of shape (rows, width)."""
        self._files[state]["embeddings"][rows] = values


@contextmanager
def write_states(folder: Path, sample: Any, attributes: Mapping[str, Any]) -> Iterator[StateWriter]:
    """Open a file for each hidden state of a sample; the folder appears when all files are whole.

    Parameters
    ----------
    folder : Path
    sample : SampleRun
        The run that writes the hidden states; untyped, so that reading files imports no model.
    attributes : mapping
        The origin of the data, which each file stores as attributes beside ``layer``.

    Notes
    -----
    Dataset ``embeddings`` is float32 of shape ``(tokens, width)``. The other datasets, of shape ``(tokens,)``, are
    :data:`ROWS` and ``massive``: whether a token is massive in any hidden state, so that a job that measures one layer
    need not read all layers. All chunks have checksums, so reading a flipped bit is an error. Nothing is compressed,
    since the mantissa of a hidden state is noise to a compressor.
    """
    with atomic_write(folder) as partial, ExitStack() as stack:
        partial.mkdir()
        files = []
        for state, width in enumerate(sample.widths):
            # The latest version of the format has checksums of its own structure.
            path = name_state_file(partial, state, sample.layers)
            file = stack.enter_context(open_states(path, "w", libver="latest"))
            files.append(file)
            file.attrs.update({"layer": min(state, sample.layers), **attributes})
            shape = (sample.tokens, width)
            chunk = (min(sample.tokens, max(1, CHUNK_BYTES // (4 * width))), width)
            file.create_dataset("embeddings", shape, np.float32, chunks=chunk, fletcher32=True)
            for name in ROWS:
                file.create_dataset(name, data=sample.rows[name], chunks=True, fletcher32=True)
        yield StateWriter(files)
        layers = files[: sample.layers + 1]  # without the last state before the final norm
        massive = find_massive_in_any_state(file["embeddings"][()] for file in layers)
        for file in files:
            file.create_dataset(MASSIVE, data=massive, chunks=True, fletcher32=True)
