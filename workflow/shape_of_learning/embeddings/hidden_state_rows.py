"""The hidden states of one layer, read from their file a block of rows at a time."""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import h5py
import numpy as np

from shape_of_learning.embeddings.hidden_state_files import layer_file
from shape_of_learning.errors import InputError
from shape_of_learning.storage.hdf5_files import UNREADABLE, unreadable


class HiddenStateRows:
    """Rows of one layer, of which no more is in memory than is asked for.

    Parameters
    ----------
    folder : Path
        Folder of the dump.
    layer : int
        Which layer.

    Attributes
    ----------
    width : int
        Number of coordinates.
    is_on_gpu : bool
        False: they are on a disk.

    Raises
    ------
    InputError
        If the file is missing, truncated or unreadable, here or while it is read.
    """

    is_on_gpu = False

    def __init__(self, folder: Path, layer: int):
        self.path = layer_file(folder, layer)
        try:
            # Each chunk is read once, so that a cache of chunks only adds a copy.
            self._file = h5py.File(self.path, "r", rdcc_nbytes=0)
        except UNREADABLE as error:
            raise self._unreadable(error) from error
        try:
            self._dataset = self._file["embeddings"]
            self._tokens, self.width = self._dataset.shape
        except UNREADABLE as error:
            self._file.close()
            raise self._unreadable(error) from error

    def __len__(self) -> int:
        return self._tokens

    def __enter__(self) -> "HiddenStateRows":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def blocks(self, rows: slice, size: int) -> Iterator[np.ndarray]:
        """Read `rows`, of which start and stop are given, by at most `size` at a time.

        Yields
        ------
        ndarray of the stored dtype, shape (m, width)
        """
        for start in range(rows.start, rows.stop, size):
            try:
                block = self._dataset[start : min(start + size, rows.stop)]
            except UNREADABLE as error:
                raise self._unreadable(error) from error
            yield block

    def read(self, rows: slice) -> np.ndarray:
        """Read `rows`, of which start and stop are given, at once."""
        return next(self.blocks(rows, rows.stop - rows.start))

    def _unreadable(self, error: Exception) -> InputError:
        remedy = f"delete {self.path.parent} and run again to dump it anew"
        return unreadable(self.path, error, remedy)
