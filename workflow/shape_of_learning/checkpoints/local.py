"""Checkpoints on this machine: a folder, a folder of an installed package, an unpacked GGUF file."""

import re
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from shape_of_learning.checkpoints.gguf_files import unpack
from shape_of_learning.errors import InputError
from shape_of_learning.files import expand_home

PACKAGE, GGUF = "package:", ".gguf"
WITHOUT_MODEL = ("main", "model")  # names of folders, as in `package:NAME/model`
STEP = re.compile(r"(checkpoint|step)[-_]?\d+")  # names that many trainings have
REPOSITORY = re.compile(r"([\w.-]+/)?[\w.-]+", re.ASCII)  # names that the Hub allows


def find_local_checkpoint(path: str) -> Path:
    """Find the folder of a checkpoint.

    Parameters
    ----------
    path : str
        The path of a folder or of a GGUF file; ``~`` is the user's home. A GGUF file is unpacked once into the cache of
        the Hub's client. ``package:NAME/PATH`` is a path inside an installed package.

    Raises
    ------
    InputError
        If there is no such package, or the file cannot be unpacked.
    """
    local_path = find_local_path(path)
    return unpack(local_path) if local_path.suffix.lower() == GGUF else local_path


def find_local_path(path: str) -> Path:
    """Find a path, also inside an installed package; InputError if there is no such package."""
    local_path = expand_home(path)
    if path.startswith(PACKAGE):
        name, _, inside = path.removeprefix(PACKAGE).partition("/")
        package = None
        with suppress(ValueError):  # __main__ has no specification
            package = find_spec(name) if name.isidentifier() else None
        if package is None or not package.submodule_search_locations:
            raise InputError(
                f"{path}: there is no package `{name}`; install it where this runs, or correct the name"
            )
        local_path = Path(package.submodule_search_locations[0], inside)
    return local_path


def is_local(model: str) -> bool:
    """Return whether a name belongs to this machine, even if it is missing, and not to the Hub.

    Names of this machine are paths that exist, GGUF files, parts of packages, and names that no repository can
    have, because they begin with a dot, a slash or a tilde, end with a slash, or have more than one slash.
    """
    return (
        model.startswith((PACKAGE, "/", "~", "."))
        or model.lower().endswith(GGUF)
        or REPOSITORY.fullmatch(model) is None
        or Path(model).exists()
    )


def find_checkpoint_folder(model: str, revision: str) -> tuple[str, Path]:
    """Find a checkpoint on this machine or on the Hub, and return its name and its folder.

    Raises
    ------
    InputError
        If there is none.
    """
    if is_local(model):
        folder = find_local_checkpoint(model)
        if not folder.exists():
            raise InputError(f"{model}: there is no folder {folder.absolute()}; correct the path")
        return name_local(model), folder
    from shape_of_learning.checkpoints.download import download_snapshot

    return Path(model).name, download_snapshot(model, revision)


def name_local(model: str) -> str:
    """Name a checkpoint on this machine after its folder or file, or after the parent if that names no model.

    Examples
    --------
    >>> [name_local(path) for path in ("/models/gpt2", "/models/gpt2.gguf", "/models/gpt2/main")]
    ['gpt2', 'gpt2', 'gpt2']
    >>> name_local("/models/run/checkpoint-500")
    'run/checkpoint-500'
    """
    path = expand_home(model)
    path = path.resolve() if path.name in ("", "..") else path
    name = path.stem if path.suffix.lower() == GGUF else path.name
    parent = path.parent.name.removeprefix(PACKAGE)
    if parent and name in WITHOUT_MODEL:
        return parent
    return f"{parent}/{name}" if parent and STEP.fullmatch(name) else name
