"""HDF5 files that cannot be read."""

import os
from pathlib import Path

from shape_of_learning.errors import InputError

# What h5py raises for a file that is missing, truncated, damaged or something else.
UNREADABLE = (OSError, KeyError, RuntimeError, ValueError)


def unreadable(path: Path, error: Exception, remedy: str) -> InputError:
    """Say in one sentence what is wrong with a file.

    Parameters
    ----------
    path : Path
        The file.
    error : Exception
        One of `UNREADABLE`.
    remedy : str
        Completes the sentence.
    """
    if not path.exists():
        reason = "is missing"
    elif isinstance(error, OSError) and error.errno:
        reason = f"cannot be read ({os.strerror(error.errno)})"
    else:
        reason = "cannot be read (truncated?)"
    return InputError(f"{path} {reason}; {remedy}")
