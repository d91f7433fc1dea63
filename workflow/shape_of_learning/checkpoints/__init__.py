"""Checkpoints: where they are, which commits and files they stand for, and whether they are what their names say."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shape_of_learning.checkpoints.atlas import find as find


def __getattr__(name: str) -> Any:
    """Import `find` when it is asked for, since its libraries take a second."""
    if name != "find":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from shape_of_learning.checkpoints.atlas import find

    return find
