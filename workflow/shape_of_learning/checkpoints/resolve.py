"""Revisions to commits, weight files and a shape: all that is asked of the Hub before a download."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from shape_of_learning.checkpoints.hub import (
    GatedError,
    MissingError,
    commit_of,
    commits_of,
    explained,
    files_at,
    read_json,
)
from shape_of_learning.checkpoints.lock import (
    MAIN,
    MISSING,
    MIXED_SHARDS,
    NO_WEIGHTS,
    Listing,
    LockedRevision,
    Place,
    WeightFile,
)
from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    WEIGHTS,
    Shape,
    shape_of,
    shard_names,
    tokenizer_paths,
)
from shape_of_learning.errors import InputError

# A listing is one small answer; the Hub lets an anonymous address ask a few hundred times in five minutes.
LISTINGS_AT_ONCE = 8

Files = Mapping[str, WeightFile]


def resolve(
    wanted: Mapping[str, Place], mains: Iterable[str], *, where: str
) -> tuple[dict[str, LockedRevision], dict[str, Listing]]:
    """Find the commit and the weight files of each revision.

    Parameters
    ----------
    wanted : mapping of str to Place
        By name.
    mains : iterable of str
        Repositories whose main branch is asked for too.
    where : str
        How an error names the model's entry.

    Returns
    -------
    dict of str to LockedRevision
        A revision that does not exist is listed as missing, and so is a repository, if others do exist.
    dict of str to Listing
        The main branch of each repository, whatever it holds.

    Raises
    ------
    InputError
        If the Hub cannot be reached, refuses to answer, or shows none of the repositories.
    """
    branches = [Place(repository, MAIN) for repository in mains]
    places = [*wanted.values(), *branches]
    repositories = sorted({place.repository for place in places})
    problems: list[MissingError] = []

    def commits(repository: str) -> dict[str, str] | None:
        try:
            return commits_of(repository, where=where)
        except GatedError:
            raise
        except MissingError as error:
            problems.append(error)
            return None

    with ThreadPoolExecutor(LISTINGS_AT_ONCE) as pool:
        known = dict(zip(repositories, pool.map(commits, repositories), strict=True))
        if problems and len(problems) == len(repositories):
            raise problems[0]
        found = list(pool.map(lambda place: _listed(place, known[place.repository], where), places))
    listed = {each.repository: each.listing() for each in found[len(wanted) :]}
    return dict(zip(wanted, found, strict=False)), listed


def listed_shape(revision: LockedRevision, *, where: str) -> Shape:
    """Read the shape of a model from the ``config.json`` of one of its revisions."""
    return shape_of(read_json(revision, revision.path(CONFIGURATION), where=where), where)


def _listed(place: Place, commits: Mapping[str, str] | None, where: str) -> LockedRevision:
    at = place._asdict()
    asked = place.repository, place.revision
    commit = None
    if commits is not None:
        commit = commits.get(place.revision) or commit_of(*asked, where=where)
    if commit is None:
        return LockedRevision(**at, problem=MISSING)
    files = files_at(*asked, commit, where=where)
    with explained(*asked, where=where):
        found = LockedRevision(**at, commit=commit, problem=NO_WEIGHTS)
    formats = []
    for whole, index in (map(found.path, names) for names in WEIGHTS):
        if whole in files:
            formats.append(({Path(whole).name: files[whole]}, ""))
        elif index in files:
            formats.append(_shards(found, files, index, where))
    (weights, problem), (others, _) = [*formats, ({}, NO_WEIGHTS), ({}, "")][:2]
    update = {"files": weights, "other_format": others, "problem": problem}
    found = found.model_copy(update=update)
    return found.model_copy(update={"small_files": _small_files(found, files)})


def _shards(
    place: LockedRevision, files: Files, index: str, where: str
) -> tuple[dict[str, WeightFile], str]:
    """The shards that an index names, and what is wrong if some are not there or hold too little."""
    content = read_json(place, index, where=where)
    try:
        names = shard_names(content)
        size = float(content.get("metadata", {}).get("total_size", 0))
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"{where}: {index} of `{place.repository}` at revision `{place.revision}` is no index of shards "
            f"({error}); choose another revision"
        ) from error
    there = {name: files[place.path(name)] for name in names if place.path(name) in files}
    # The index counts the bytes of all tensors; files hold these and a little more.
    is_whole = len(there) == len(names) and sum(file.bytes for file in there.values()) >= size
    return there, "" if is_whole else MIXED_SHARDS


def _small_files(place: LockedRevision, files: Files) -> dict[str, str]:
    """Hashes of configuration, index of shards and tokenizer, as far as they are there."""
    paths = [*place.settings_paths(), *tokenizer_paths(files, place.subfolder)]
    return {path: files[path].hash for path in sorted(paths) if path in files}
