"""Whether the files of a described run are what it wrote; Python's own library is enough to see it."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from shape_of_learning.errors import InputError
from shape_of_learning.storage.digests import sha256_of

METADATA = "ro-crate-metadata.json"


def described_runs(folder: Path) -> list[Path]:
    """Find the descriptions of runs: the folder itself, or those of the results in it and of its named runs.

    Raises
    ------
    InputError
        If there is none.
    """
    for pattern in (METADATA, f"provenance/{METADATA}"):
        if (folder / pattern).is_file():
            own = [(folder / pattern).parent]
            break
    else:
        own = []
    named = [file.parent for file in sorted(folder.glob(f"*/provenance/{METADATA}"))]
    if not own and not named:
        raise InputError(
            f"{folder} holds no description of a run (provenance/{METADATA}); name the folder of its "
            "results, or run `snakemake provenance` with its --configfile"
        )
    return own + named


def differences(crate: Path) -> Iterator[str]:
    """Say in a sentence what is wrong with each file that is not what the run wrote.

    Parameters
    ----------
    crate : Path
        Folder that holds the description.

    Yields
    ------
    str
        Of a file that is missing, has other bytes, or is beside results without being one.

    Raises
    ------
    InputError
        If the description cannot be read.
    """
    entities = _entities(crate / METADATA)
    digests = {
        crate / unquote(entity["@id"]): entity["sha256"]
        for entity in entities
        if "File" in entity["@type"] and "sha256" in entity
    }
    for path, digest in sorted(digests.items()):
        if not path.is_file():
            yield f"{_shown(path)} is missing; run again, or restore it"
        elif (found := sha256_of(path)) != digest:
            yield (
                f"{_shown(path)} has other bytes than the run wrote (SHA-256 {found}, not {digest}); "
                "delete it and run again, or restore it"
            )
    known = {_real(path) for path in digests}
    for entity in entities:
        if "Dataset" in entity["@type"] and entity["@id"] not in ("./", "."):
            folder = crate / unquote(entity["@id"])
            inside = (path for path in digests if path.parent == folder)
            for place in sorted({_real(folder), *(_real(path).parent for path in inside)}):
                yield from map(_not_described, _strangers(place, known))


def _entities(file: Path) -> list[Mapping[str, Any]]:
    try:
        return [each for each in json.loads(file.read_bytes())["@graph"] if each["@type"] != ""]
    except OSError as error:
        raise InputError(
            f"{file} cannot be read ({error.strerror}); describe the run again"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is no description of a run; delete it and run again") from error


def _strangers(folder: Path, known: set[Path]) -> list[Path]:
    """Files in a folder that are not known, and not the digest of one that is."""
    if not folder.is_dir():
        return []
    return [
        path
        for path in sorted(folder.iterdir())
        if path.is_file()
        and path.name[0] != "."
        and _real(path) not in known
        and not (path.suffix == ".sha256" and _real(path.with_suffix("")) in known)
    ]


def _not_described(path: Path) -> str:
    return f"{_shown(path)} is not among the files that the run wrote; move it elsewhere"


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _shown(path: Path) -> str:
    """A path as the user knows it: where a link leads, relative to the working directory."""
    real = _real(path)
    return os.path.relpath(real) if real.is_relative_to(_real(Path())) else str(real)
