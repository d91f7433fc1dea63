"""A file that grows over several runs and takes its name only when it is what the Hub lists."""

import os
from pathlib import Path
from types import TracebackType

from shape_of_learning.hub.fingerprint import Fingerprint
from shape_of_learning.hub.remote_revision import RemoteFile


def part_of(final: Path) -> Path:
    """Where the bytes of `final` gather until they are complete."""
    return final.with_name(f"{final.name}.part")


class Part:
    """A file being gathered in ``{name}.part``, to use in a ``with`` statement.

    What a killed run left there is read once, for its fingerprint, and gone on with.

    Parameters
    ----------
    final : Path
        The file to make; its folder is created.
    listed : RemoteFile
        What it has to be.
    """

    def __init__(self, final: Path, listed: RemoteFile) -> None:
        self.final = final
        self.path = part_of(final)
        self.listed = listed

    def __enter__(self) -> "Part":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = self.path.open("ab")
        self._fingerprint = Fingerprint.of(self.path, self.listed)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stream.close()

    @property
    def bytes(self) -> int:
        """How much there is."""
        return self._fingerprint.bytes

    def append(self, block: bytes) -> None:
        """Write a block through to the operating system, so that a kill cannot take it back.

        Raises
        ------
        OSError
            If it cannot be written; names the final file.
        """
        try:
            self._stream.write(block)
            self._stream.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.final)) from error
        self._fingerprint.add(block)

    def clear(self) -> None:
        """Throw away what there is."""
        self._stream.truncate(0)
        self._fingerprint = Fingerprint(self.listed)

    def finish(self) -> dict[str, int | str] | None:
        """Give the file its name if it is what the Hub lists, else remove it.

        Returns
        -------
        dict or None
            Size and SHA-256 for ``checkpoint.json``; None if size or hash are not those listed.
        """
        if not self._fingerprint.agrees():
            self.path.unlink()
            return None
        os.fsync(self._stream.fileno())  # else a power cut could leave the name on an empty file
        self.path.rename(self.final)
        return self._fingerprint.entry()
