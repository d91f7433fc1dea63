"""Checkpoints: their places, commits and files, and whether they are what their names say."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shape_of_learning.checkpoints.atlas import find as find


def __getattr__(name: str) -> Any:
    """Import `find` at its first use, since its libraries take a second."""
    if name != "find":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from shape_of_learning.checkpoints.atlas import find

    return find
