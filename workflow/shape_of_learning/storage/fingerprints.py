"""Whether files of the user's are what they were, wherever they lie and whatever their times say."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

# Up to this size a file is read whole. Of a larger one so many blocks are, evenly spread: training changes
# nearly every weight, and to read all of a large model at every start would take minutes.
WHOLE_BYTES = 1 << 22
BLOCKS, BLOCK_BYTES = 64, 1 << 16


def fingerprint(files: Iterable[Path]) -> str:
    """Digest of the names, sizes and contents of files.

    Returns
    -------
    str
        Sixteen hexadecimal digits; those of other files if there are none.
    """
    digest = hashlib.sha256()
    for file in sorted(files):
        size = file.stat().st_size
        digest.update(f"{file.name}\0{size}\0".encode())
        with file.open("rb") as stream:
            if size <= WHOLE_BYTES:
                digest.update(stream.read())
                continue
            for number in range(BLOCKS):
                stream.seek((size - BLOCK_BYTES) * number // (BLOCKS - 1))
                digest.update(stream.read(BLOCK_BYTES))
    return digest.hexdigest()[:16]
