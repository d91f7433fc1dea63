"""Whether the files of a described run are what it wrote; Python's own library is enough to see it."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from shape_of_learning.errors import InputError
from shape_of_learning.storage.digests import recorded_digests, sha256_of

METADATA = "ro-crate-metadata.json"
LOGS = "logs"
NO_RESULTS = (METADATA, "README.md", LOGS, "benchmarks")  # beside results
# Of a crate what is its own; all else in it is links to results.
OWN = ("jobs.csv", "rules.csv", "environments.json", "outputs.sha256", "locks", "workflow")


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
    described, folders, texts = _description(crate / METADATA)
    place = _place_of_results(crate, described)
    results = _files(crate, place, described)
    others = [*place.glob(f"*/provenance/{METADATA}")]
    # The cleaned text, where it still lies beside what describes it: archives do not have it.
    kept = {(place / where).with_name("text.txt"): digest for where, digest in texts.items()} | {
        path: digest
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
    known = {*(crate / where for where in described), *results, *kept, *others}
    for folder in sorted({base / where for base in (crate, place) for where in folders}):
        for path in _strangers(folder, known):
            yield f"{_shown(path)} is not among the files that the run wrote; move it elsewhere"


def _description(file: Path) -> tuple[dict[Path, str], list[Path], dict[Path, str]]:
    """What a description says: digests of files, folders, digests of texts by what describes them."""
    try:
        entities = json.loads(file.read_bytes())["@graph"]
        files = {
            _inside(entity["@id"]): entity["sha256"]
            for entity in entities
            if "File" in entity["@type"] and "sha256" in entity and "://" not in entity["@id"]
        }
        if not files:
            raise ValueError("nothing to compare")
        folders = [_inside(each["@id"]) for each in entities if "Dataset" in each["@type"]]
        texts = {
            _inside(each["subjectOf"]["@id"]): each["sha256"]
            for each in entities
            if each["@id"] == "#text"
        }
    except OSError as error:
        raise InputError(
            f"{file} cannot be read ({error.strerror}); describe the run again"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{file} is no description of a run; delete it and run again") from error
    return files, folders, texts


def _inside(identifier: str) -> Path:
    path = Path(unquote(identifier))
    if path.is_absolute() or ".." in path.parts or "\0" in str(path):
        raise ValueError(identifier)
    return path


def _place_of_results(crate: Path, described: Iterable[Path]) -> Path:
    """The folder of results: that around the crate, also where a copy followed links; an archive itself."""
    around = crate.parent
    is_beside = crate.name == "provenance" and any((around / each).exists() for each in described)
    return around if is_beside or any((crate / each).is_symlink() for each in described) else crate


def _files(crate: Path, place: Path, described: Mapping[Path, str]) -> dict[Path, str]:
    """What is to be compared: results where they lie, and in the crate what is no link to them."""
    found = {}
    for where, digest in described.items():
        inside, result = crate / where, place / where
        if where.parts[0] in OWN:
            result = inside
        found[result] = digest
        if _real(inside) != _real(result):
            found[inside] = digest
    return found


def _strangers(folder: Path, known: set[Path]) -> Iterator[Path]:
    """Files in a folder, and in folders of it that hold none which is known, that are not known themselves.

    What has no digests, as the weights of models that a run has trained, is known by its stage's logs.
    """
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name[0] == "." or path.name in NO_RESULTS or path in known:
            continue
        if path.is_dir():
            is_known = any(each.is_relative_to(path) for each in known)
            if not is_known and not (folder / LOGS / path.name).is_dir():
                found = [path] if path.is_symlink() else sorted(path.rglob("*"))
                yield from (each for each in found if each.is_symlink() or not each.is_dir())
        elif not (path.suffix == ".sha256" and path.with_suffix("") in known):
            yield path


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _shown(path: Path) -> str:
    """A path as the user knows it: relative to the working directory, where it is below that."""
    return os.path.relpath(path) if path.is_relative_to(_real(Path())) else str(path)
