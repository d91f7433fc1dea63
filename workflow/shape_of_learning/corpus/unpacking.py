"""The one file inside an archive, as a stream."""

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO

from shape_of_learning.corpus.corpus_file import Unusable

_OPENERS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\0": lzma.open,
    b"BZh": bz2.open,
}
_ZIP = b"PK\x03\x04"
_ENCRYPTED = 1  # bit of a member's flags


@contextmanager
def unpacked(packed: BinaryIO, member: str | None = None) -> Iterator[IO[bytes]]:
    """Open a zip, gzip, xz or bzip2 file, or a plain one, as the bytes inside.

    Parameters
    ----------
    packed : file object
        Read from its beginning. The kind is told from the first bytes.
    member : str, optional
        File to read from a zip archive; may be left out where it holds only one. Ignored for the
        other kinds, which hold one by nature.

    Yields
    ------
    file object
        Readable, binary.

    Raises
    ------
    Unusable
        Where the archive is damaged, which may show only while it is read within the block, or
        lacks the member.
    """
    packed.seek(0)
    head = packed.read(6)
    packed.seek(0)
    try:
        if head.startswith(_ZIP):
            with (
                zipfile.ZipFile(packed) as archive,
                archive.open(_require_plain(archive, _member(archive, member))) as stream,
            ):
                yield stream
        else:
            opener = next((o for magic, o in _OPENERS.items() if head.startswith(magic)), None)
            yield opener(packed) if opener else packed
    except (zipfile.BadZipFile, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError) as error:
        raise Unusable(f"it is a damaged archive ({error})") from error
    except OSError as error:
        if error.errno is not None:  # a full disk, say; bz2 has no exception of its own
            raise
        raise Unusable(f"it is a damaged archive ({error})") from error
    except NotImplementedError as error:
        raise Unusable(f"it is packed in a way that cannot be unpacked here ({error})") from error


def _member(archive: zipfile.ZipFile, member: str | None) -> str:
    names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    if member is None and len(names) == 1:
        return names[0]
    if member not in names:
        listed = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        wanted = "a single file" if member is None else f"{member!r}"
        raise Unusable(f"the archive holds {listed or 'nothing'}, not {wanted}", "member")
    return member


def _require_plain(archive: zipfile.ZipFile, name: str) -> str:
    if archive.getinfo(name).flag_bits & _ENCRYPTED:
        raise Unusable(
            f"{name} in the archive is encrypted; unpack it, and give the path of the file"
        )
    return name
