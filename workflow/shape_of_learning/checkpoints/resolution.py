"""Revisions to commits, weight files and a shape: all that is asked of the Hub before a download."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from huggingface_hub import constants

from shape_of_learning.checkpoints.checkpoint_files import (
    CONFIGURATION,
    WEIGHTS,
    index_of,
    shard_names,
    tokenizer_paths,
)
from shape_of_learning.checkpoints.lock import LockedRevision
from shape_of_learning.checkpoints.model_entry import Shape, shape_of
from shape_of_learning.checkpoints.weight_listing import (
    MISSING,
    MIXED_SHARDS,
    NO_WEIGHTS,
    WeightFile,
    WeightListing,
)
from shape_of_learning.errors import InputError
from shape_of_learning.hub.hub_cache import cached_revision
from shape_of_learning.hub.hub_errors import invisible, lacking
from shape_of_learning.hub.listing import commit_of, commits_of, inside, list_files, read_json
from shape_of_learning.hub.remote_revision import RemoteRevision

# A listing is one small answer; the Hub lets an anonymous address ask a few hundred times in five minutes.
LISTINGS_AT_ONCE = 8
MAIN = "main"


def resolve(
    wanted: Mapping[str, LockedRevision], *, where: str
) -> tuple[dict[str, LockedRevision], dict[str, WeightListing]]:
    """Find the commit and the weight files of each revision.

    Parameters
    ----------
    wanted : mapping of str to LockedRevision
        By name: where each revision is. What they list is ignored.
    where : str
        How an error names the model's entry.

    Returns
    -------
    dict of str to LockedRevision
        The same with what is listed there. A revision that does not exist is listed as missing, and so
        is a repository, if others of them do.
    dict of str to WeightListing
        The main branch of each repository that other revisions were asked of, if it has weights.

    Raises
    ------
    InputError
        If the Hub cannot be reached or refuses to answer, or shows none of the repositories; in offline
        mode, if the Hugging Face cache has nothing of a revision.
    """
    if constants.is_offline_mode():
        return {name: _in_cache(each, where) for name, each in wanted.items()}, {}
    repositories = {each.repository for each in wanted.values()}
    mains = sorted({each.repository for each in wanted.values() if each.revision != MAIN})
    with ThreadPoolExecutor(LISTINGS_AT_ONCE) as pool:
        commits = dict(
            zip(
                repositories,
                pool.map(lambda repository: commits_of(repository, where=where), repositories),
                strict=True,
            )
        )
        if wanted and not any(known is not None for known in commits.values()):
            raise invisible(sorted(repositories)[0], where=where)
        listing = partial(_listed, commits=commits, where=where)
        found = pool.map(listing, wanted.values())
        of_mains = pool.map(listing, [LockedRevision(repository, MAIN) for repository in mains])
        resolved = dict(zip(wanted, found, strict=True))
        references = {each.repository: each.listed for each in of_mains}
    return resolved, {name: listed for name, listed in references.items() if not listed.problem}


def listed_shape(revision: LockedRevision, *, where: str) -> Shape:
    """Read the shape of a model from the ``config.json`` of one of its revisions.

    Parameters
    ----------
    revision : LockedRevision
        With the commit that it resolves to.
    where : str
        How an error names the model's entry.

    Raises
    ------
    InputError
        If it cannot be had, or does not state layers and width.
    """
    source = RemoteRevision(revision.repository, revision.revision, revision.listed.commit, {})
    config = read_json(source, inside(revision.subfolder, CONFIGURATION), where=where)
    return shape_of(config, where)


def _in_cache(wanted: LockedRevision, where: str) -> LockedRevision:
    source = cached_revision(wanted.repository, wanted.revision)
    if source is None:
        raise lacking(wanted.repository, wanted.revision, "nothing", where=where)
    return _with_files(wanted, source, where)


def list_weights(source: RemoteRevision, subfolder: str, *, where: str) -> WeightListing:
    """List the weight files of a revision, in both formats if it has both.

    Raises
    ------
    InputError
        If an index of shards cannot be read.
    """
    names = source.names_in(subfolder)
    formats: list[WeightListing] = []
    for whole, index in WEIGHTS:
        if whole in names:
            formats.append(_of_files(source, subfolder, [whole]))
        elif index in names:
            formats.append(_of_shards(source, subfolder, index, where))
    if not formats:
        return WeightListing(source.commit, problem=NO_WEIGHTS)
    first, *others = formats
    return replace(first, other_format=others[0].files) if others else first


def _listed(
    wanted: LockedRevision, *, commits: Mapping[str, Mapping[str, str] | None], where: str
) -> LockedRevision:
    known = commits[wanted.repository]
    commit = None
    if known is not None:
        commit = known.get(wanted.revision) or commit_of(
            wanted.repository, wanted.revision, where=where
        )
    if commit is None:
        return replace(wanted, listed=WeightListing(problem=MISSING))
    source = list_files(wanted.repository, wanted.revision, commit, where=where)
    return _with_files(wanted, source, where)


def _with_files(wanted: LockedRevision, source: RemoteRevision, where: str) -> LockedRevision:
    """Say what the lock pins of a revision: the weights, and the small files that go with them."""
    listed = list_weights(source, wanted.subfolder, where=where)
    return replace(wanted, listed=listed, small_files=_small_files(source, wanted, listed))


def _small_files(
    source: RemoteRevision, wanted: LockedRevision, listed: WeightListing
) -> dict[str, str]:
    """Hashes of configuration, index of shards and tokenizer, as far as they are there."""
    beside = [inside(wanted.subfolder, CONFIGURATION)]
    if listed.files and (index := index_of(listed.files)):
        beside.append(inside(wanted.subfolder, index))
    paths = [*beside, *tokenizer_paths(source.files, wanted.subfolder)]
    return {path: source.files[path].hash for path in sorted(paths) if path in source.files}


def _of_files(source: RemoteRevision, subfolder: str, names: Sequence[str]) -> WeightListing:
    listed = {name: source.files[inside(subfolder, name)] for name in names}
    files = {name: WeightFile(file.bytes, file.hash) for name, file in listed.items()}
    return WeightListing(source.commit, files)


def _of_shards(source: RemoteRevision, subfolder: str, index: str, where: str) -> WeightListing:
    path = inside(subfolder, index)
    content = read_json(source, path, where=where)
    try:
        shards = shard_names(content)
        size = content.get("metadata", {}).get("total_size", 0)
        if isinstance(size, bool) or not isinstance(size, int | float):
            raise ValueError(f"its `total_size` is {size!r:.60}")
    except (ValueError, AttributeError) as error:
        raise InputError(
            f"{where}: {path} of `{source.repository}` at revision `{source.revision}` is no index of shards "
            f"({error}); choose another revision"
        ) from error
    present = [name for name in shards if inside(subfolder, name) in source.files]
    listed = _of_files(source, subfolder, present)
    held = sum(file.bytes for file in listed.files.values())
    # The index counts the bytes of all tensors; files hold these and a little more.
    complete = present == shards and held >= size
    return listed if complete else replace(listed, problem=MIXED_SHARDS)
