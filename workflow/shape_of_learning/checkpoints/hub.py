"""Asking the Hugging Face Hub: commits, weight files and a shape, and one sentence for what goes wrong.

The client is huggingface_hub. Ours is another try where a network or a server only fails for a while.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import huggingface_hub
from huggingface_hub import (
    HfApi,
    constants,
    get_hf_file_metadata,
    get_session,
    get_token,
    hf_hub_download,
    hf_hub_url,
)
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, LocalEntryNotFoundError
from huggingface_hub.hf_api import RepoFile

from shape_of_learning.checkpoints.contact import CONTACT, endpoint
from shape_of_learning.checkpoints.listed_files import Files
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
    is_inside,
    list_shard_names,
    list_tokenizer_paths,
    parse_shape,
    refuse_listed_adapter,
    refuse_quantised,
)
from shape_of_learning.errors import InputError, UnreachableError, hide_secrets

SILENT_SECONDS = 30.0  # between two pieces of an answer; of itself the client waits for ever
QUESTION_PAUSES = (1.0, 2.0, 4.0)  # seconds between tries
# A listing is one small answer; the Hub lets an anonymous address ask a few hundred times in five minutes.
LISTINGS_AT_ONCE = 8
SHA256_DIGITS = 64
# The library that the client asks by: httpx, and from huggingface_hub 2 on httpx2.
HTTP = import_module(HfHubHTTPError.__mro__[1].__module__.partition(".")[0])
UNREACHABLE = (HTTP.HTTPError, LocalEntryNotFoundError, ConnectionError)
# What the client makes of an answer that is none of a Hub, such as the page of a network's login.
MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)

Result = TypeVar("Result")


class MissingError(InputError):
    """There is no such repository, revision or file, or the Hub does not show it."""


class GatedError(InputError):
    """The repository is for those who have accepted its licence, and the token is of nobody who has."""


@contextmanager
def hub_errors(
    repository: str, revision: str, *, where: str, key: str = "revision"
) -> Iterator[None]:
    """Turn what the Hub's client raises inside the block into an `InputError` of one sentence.

    Parameters
    ----------
    repository, revision : str
        What is being asked for.
    where, key : str
        How the sentence names the entry of the configuration and the key to correct.

    Raises
    ------
    InputError
        Its subclasses are :class:`GatedError`, :class:`MissingError` and, without a network,
        :class:`.UnreachableError`. What the client raised is its cause.
    """
    wanted = f"`{repository}` at revision `{revision}`"
    host = endpoint()
    try:
        yield
    except InputError:
        raise
    except (OSError, HTTP.HTTPError, *MALFORMED) as error:
        # What the client found out first, where all that it says is that there is no local file either.
        if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
            error = error.__cause__
        if isinstance(error, GatedRepoError):
            raise GatedError(
                f"{where}: {wanted} is gated; accept its licence at {host}/{repository} and set HF_TOKEN to "
                "a token of that account, remove the model from `models`, or say `gated: true` in its "
                "entry, so that it is left out"
            ) from error
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
        if status in (401, 404):
            raise MissingError(
                f"{where}: the Hub has no {wanted}, or shows it only to others; correct the key `{key}` of "
                "the entry or its `repository`, or set HF_TOKEN if it is private"
            ) from error
        if _has_other_size(error):
            raise InputError(
                f"{where}: a file of {wanted} came with another size than {host} says "
                f"({_first_line(error)}); check the network and HF_ENDPOINT and run again"
            ) from error
        if status is None and isinstance(error, OSError) and not isinstance(error, UNREACHABLE):
            raise  # of the disk
        said = f"it answered {status}" if status else _first_line(error)
        if constants.is_offline_mode():
            said = "HF_HUB_OFFLINE forbids to ask for it"
        kind = UnreachableError if isinstance(error, UNREACHABLE) and not status else InputError
        raise kind(
            f"{where}: {host} cannot be reached for {wanted} ({said}); check the network, "
            "HF_ENDPOINT and HF_TOKEN and run again, files that are complete are kept"
        ) from error


def ask_hub(
    question: Callable[[], Result],
    repository: str,
    revision: str,
    *,
    where: str,
    key: str = "revision",
    pauses: tuple[float, ...] = QUESTION_PAUSES,
) -> Result:
    """Ask something of the Hub, and again where a network or a server may only fail for a while."""
    # Its warnings show addresses, which may be signed; the error says what matters of them.
    huggingface_hub.logging.set_verbosity_error()

    def ask() -> Result:
        CONTACT.listen()
        get_session().timeout = SILENT_SECONDS  # after an error it may be another session
        with hub_errors(repository, revision, where=where, key=key):
            return question()

    for pause in (*pauses, None):
        try:
            return CONTACT.ask_first(ask, repository, revision, where)
        except InputError as error:
            if pause is None or not _is_temporary(error.__cause__) or CONTACT.is_out_of_time(pause):
                raise
        time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def list_commits(
    repository: str, *, where: str, pauses: tuple[float, ...] = QUESTION_PAUSES
) -> dict[str, str]:
    """Resolve all branches and tags of a repository: name -> commit; MissingError if there is none."""
    question = partial(HfApi().list_repo_refs, repository)
    refs = ask_hub(question, repository, MAIN, where=where, key="repository", pauses=pauses)
    return {ref.name: ref.target_commit for ref in [*refs.tags, *refs.branches]}


def find_commit(repository: str, revision: str, *, where: str) -> str | None:
    """Resolve a revision that is neither branch nor tag, such as a commit; None if there is none."""
    question = partial(HfApi().model_info, repository, revision=revision)
    try:
        return ask_hub(question, repository, revision, where=where).sha
    except MissingError:
        return None


def list_files(
    repository: str,
    revision: str,
    commit: str,
    *,
    where: str,
    pauses: tuple[float, ...] = QUESTION_PAUSES,
) -> Files:
    """List the files of a commit, which `revision` stands for in errors: path -> size and hash."""

    def list_them() -> Files:
        files = {}
        for each in HfApi().list_repo_tree(repository, revision=commit, recursive=True):
            if isinstance(each, RepoFile) and is_inside(each.path):
                digest = f"sha256:{each.lfs.sha256}" if each.lfs else f"git:{each.blob_id}"
                files[each.path] = WeightFile(bytes=each.size, hash=digest)
        return files

    return ask_hub(list_them, repository, revision, where=where, pauses=pauses)


def ask_for_heads(repository: str, commit: str, paths: Iterable[str]) -> Files:
    """Ask for the size and the hash of some files of a commit, each by its head; {} if one cannot be had.

    The Hub counts these questions apart from listings, and answers more of them.
    """
    files = {}
    for path in paths:
        url = hf_hub_url(repository, path, revision=commit)
        try:
            head = ask_hub(
                partial(get_hf_file_metadata, url), repository, commit, where="", pauses=()
            )
        except InputError:
            return {}
        if head.etag is None or head.size is None:
            return {}
        kind = "sha256" if len(head.etag) == SHA256_DIGITS else "git"
        files[path] = WeightFile(bytes=head.size, hash=f"{kind}:{head.etag}")
    return files


def read_json(place: LockedRevision, path: str, *, where: str) -> dict[str, Any]:
    """Read a small JSON file of a pinned revision that holds an object, by way of the user's cache."""

    def read() -> Any:
        file = hf_hub_download(place.repository, path, revision=place.commit)
        return json.loads(Path(file).read_bytes())

    content = ask_hub(read, place.repository, place.revision, where=where)
    if not isinstance(content, dict):
        raise InputError(
            f"{where}: {path} of `{place.repository}` at revision `{place.revision}` is no JSON object; "
            "choose another revision"
        )
    return content


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
            return list_commits(repository, where=where)
        except MissingError as error:
            problems.append(error)
            return None

    with ThreadPoolExecutor(LISTINGS_AT_ONCE) as pool:
        known = dict(zip(repositories, pool.map(commits, repositories), strict=True))
        if problems and len(problems) == len(repositories):
            raise problems[0]
        found = list(
            pool.map(lambda place: _list_revision(place, known[place.repository], where), places)
        )
    listed = {each.repository: each.listing() for each in found[len(wanted) :]}
    return dict(zip(wanted, found, strict=False)), listed


def read_listed_shape(revision: LockedRevision, *, where: str) -> Shape:
    """Read the shape of a model from the ``config.json`` of one of its revisions."""
    config = read_json(revision, revision.path(CONFIGURATION), where=where)
    refuse_quantised(config, where)
    return parse_shape(config, where)


def is_closed(repository: str, *, where: str) -> bool:
    """Whether the Hub refuses a gated repository to the token there is, or there is none.

    Where it cannot be asked, a token is believed.
    """
    if get_token() is None:
        return True
    try:
        ask_hub(partial(HfApi().auth_check, repository), repository, MAIN, where=where)
    except GatedError:
        return True
    except InputError:
        pass  # what is wrong with it is said when its revisions are resolved
    return False


def _list_revision(place: Place, commits: Mapping[str, str] | None, where: str) -> LockedRevision:
    """What is at a place of a repository that has these branches and tags, None if it is missing."""
    named, commit = (place.repository, place.revision), None
    if commits is not None:
        commit = commits.get(place.revision) or find_commit(*named, where=where)
    if commit is None:
        return LockedRevision(**place._asdict(), problem=MISSING)
    files = list_files(*named, commit, where=where)
    with hub_errors(*named, where=where):
        found = LockedRevision(**place._asdict(), commit=commit, problem=NO_WEIGHTS)
    formats = []
    for whole, index in WEIGHTS:
        if found.path(whole) in files:
            formats.append(({whole: files[found.path(whole)]}, ""))
        elif found.path(index) in files:
            formats.append(_list_shards(found, files, found.path(index), where))
    if formats:
        refuse_listed_adapter(files, place.subfolder, where)
        (weights, problem), *others = formats
        update: dict[str, Any] = {"files": weights, "problem": problem}
        update["other_format"] = others[0][0] if others else {}
        found = found.model_copy(update=update)
    paths = sorted({*found.settings_paths(), *list_tokenizer_paths(files, place.subfolder)})
    small = {path: files[path].hash for path in paths if path in files}
    return found.model_copy(update={"small_files": small})


def _list_shards(
    place: LockedRevision, files: Files, index: str, where: str
) -> tuple[dict[str, WeightFile], str]:
    """The shards that an index names, and what is wrong if some are not there or hold too little."""
    content = read_json(place, index, where=where)
    try:
        names = list_shard_names(content)
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


def _is_temporary(error: BaseException | None) -> bool:
    """Whether the same question may get another answer in a while."""
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in (408, 429) or error.response.status_code >= 500
    return isinstance(error, HTTP.TransportError) or _has_other_size(error)


def _has_other_size(error: BaseException | None) -> bool:
    """Whether the client has downloaded more or fewer bytes than it was told."""
    return isinstance(error, OSError) and str(error).startswith("Consistency check failed")


def _first_line(error: BaseException) -> str:
    """A server's words: no passwords and no pages."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return hide_secrets(line)[:200]
