"""Whether the files of a described run are what it wrote; Python's own library is enough to see it."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from shape_of_learning.errors import InputError
from shape_of_learning.storage.digests import recorded_digests, sha256_of

METADATA = "ro-crate-metadata.json"
LOGS = "logs"
NO_RESULTS = (METADATA, "README.md", LOGS, "benchmarks")  # beside results


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
        Of a result that is missing; of a file that has other bytes than the description, or the digest beside
        it, says; of what is beside results without being of the run.

    Raises
    ------
    InputError
        If the description cannot be read.
    """
    crate = _real(crate)
    entities = _entities(crate / METADATA)
    described = {
        crate / unquote(entity["@id"]): entity["sha256"]
        for entity in entities
        if "File" in entity["@type"] and "sha256" in entity
    }
    results = {_real(path): digest for path, digest in described.items()}
    places = _places(crate, described)
    others = [file for place in places for file in place.glob(f"*/provenance/{METADATA}")]
    kept = _texts(crate, entities) | {
        path: digest
        for place in places
        for path, digest in recorded_digests(place)
        if not any(path.is_relative_to(other.parents[1]) for other in others)
    }
    for path, digest in sorted((kept | results).items()):
        if not path.is_file():
            if path in results:
                yield f"{_shown(path)} is missing; run again, or restore it"
        elif (found := sha256_of(path)) != digest:
            yield (
                f"{_shown(path)} has other bytes than the run wrote (SHA-256 {found}, not {digest}); "
                "delete it and run again, or restore it"
            )
    known = {*described, *results, *kept, *others}
    folders = [crate / unquote(each["@id"]) for each in entities if "Dataset" in each["@type"]]
    for place in sorted({place for folder in folders for place in _places(folder, described)}):
        for path in _strangers(place, known):
            yield f"{_shown(path)} is not among the files that the run wrote; move it elsewhere"


def _entities(file: Path) -> list[Mapping[str, Any]]:
    try:
        return [each for each in json.loads(file.read_bytes())["@graph"] if each["@type"] != ""]
    except OSError as error:
        raise InputError(
            f"{file} cannot be read ({error.strerror}); describe the run again"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is no description of a run; delete it and run again") from error


def _places(folder: Path, described: Iterable[Path]) -> set[Path]:
    """A folder of the crate, and that of the results which its links lead to."""
    return {folder, *(_real(path).parent for path in described if path.parent == folder)}


def _texts(crate: Path, entities: list[Mapping[str, Any]]) -> dict[Path, str]:
    """The cleaned text, where it still lies beside what describes it: archives do not have it."""
    return {
        _real(crate / unquote(each["subjectOf"]["@id"])).with_name("text.txt"): each["sha256"]
        for each in entities
        if each["@id"] == "#text"
    }


def _strangers(folder: Path, known: set[Path]) -> Iterator[Path]:
    """Files in a folder, and in folders of it that hold none which is known, that are not known themselves.

    What has no digests, as the weights of models that a run has trained, is known by its stage's logs.
    """
    for path in sorted(folder.iterdir()):
        if path.name[0] == "." or path.name in NO_RESULTS or path in known:
            continue
        if path.is_dir():
            place = _real(path)
            is_known = any(
                each.is_relative_to(path) or each.is_relative_to(place) for each in known
            )
            if not is_known and not (folder / LOGS / path.name).is_dir():
                yield from (each for each in sorted(path.rglob("*")) if each.is_file())
        elif not (path.suffix == ".sha256" and path.with_suffix("") in known):
            yield path


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _shown(path: Path) -> str:
    """A path as the user knows it: where a link leads, relative to the working directory."""
    real = _real(path)
    return os.path.relpath(real) if real.is_relative_to(_real(Path())) else str(real)
