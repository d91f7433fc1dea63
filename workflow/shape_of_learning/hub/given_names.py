"""Names that servers, caches and lock files give, which must not lead out of a folder as paths."""

import re

_COMMIT = re.compile("[0-9a-f]{40}")
_HASH = re.compile("sha256:[0-9a-f]{64}|git:[0-9a-f]{40}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def is_commit(text: object) -> bool:
    """Whether it is git's full name of a commit, 40 hexadecimal digits."""
    return isinstance(text, str) and _COMMIT.fullmatch(text) is not None


def is_hash(text: object) -> bool:
    """Whether it is ``sha256:`` or ``git:`` (the SHA-1 by which git names a content) and all its digits."""
    return isinstance(text, str) and _HASH.fullmatch(text) is not None


def is_inside(path: object) -> bool:
    """Whether it is a relative path: ``a/b``, without ``..``, ``.``, a drive or a control character."""
    return (
        isinstance(path, str)
        and not _CONTROL.search(path)
        and not re.match("[A-Za-z]:", path)
        and not {"", ".", ".."} & set(re.split(r"[/\\]", path))
    )


def is_file_name(name: object) -> bool:
    """Whether it names a file of one folder, on any system."""
    return isinstance(name, str) and is_inside(name) and not re.search(r"[/\\:]", name)
