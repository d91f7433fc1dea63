"""Questions to the Hugging Face Hub: commits, files and shapes, with errors of one sentence.

The client is huggingface_hub; this module asks again where a network or a server fails for a while.
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
from shape_of_learning.checkpoints.lock import (
    MAIN,
    MISSING,
    NO_WEIGHTS,
    Files,
    Listing,
    LockedRevision,
    Place,
    WeightFile,
    list_weights,
)
from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    Shape,
    is_inside,
    list_shard_names,
    list_tokenizer_paths,
    parse_shape,
    refuse_listed_adapter,
    refuse_quantised,
)
from shape_of_learning.errors import InputError, UnreachableError, hide_secrets

SILENT_SECONDS = 30.0  # between two pieces of an answer; the client alone waits for ever
QUESTION_PAUSES = (1.0, 2.0, 4.0)  # seconds between tries
# A listing is one small answer; the Hub lets an anonymous address ask a few hundred times in five minutes.
LISTINGS_AT_ONCE = 8
SHA256_DIGITS = 64
# The library under the client: httpx, and from huggingface_hub 2 on httpx2.
HTTP = import_module(HfHubHTTPError.__mro__[1].__module__.partition(".")[0])
UNREACHABLE = (HTTP.HTTPError, LocalEntryNotFoundError, ConnectionError)
# Errors of the client on a response from another server, such as a login page.
MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)

Result = TypeVar("Result")


class MissingError(InputError):
    """A repository, revision or file does not exist, or the Hub does not show it."""


class GatedError(InputError):
    """The repository asks for an accepted licence, and the account of the token has not accepted it."""


@contextmanager
def hub_errors(
    repository: str, revision: str, *, where: str, key: str = "revision"
) -> Iterator[None]:
    """Turn an error of the Hub's client in the block into an `InputError` of one sentence.

    Parameters
    ----------
    repository, revision : str
        The place in the question.
    where, key : str
        The model's entry, and the key to correct in it, for the message.

    Raises
    ------
    InputError
        Its subclasses are :class:`GatedError`, :class:`MissingError` and, without a network,
        :class:`.UnreachableError`. The error of the client is its cause.
    """
    target = f"`{repository}` at revision `{revision}`"
    host = endpoint()
    try:
        yield
    except InputError:
        raise
    except (OSError, HTTP.HTTPError, *MALFORMED) as error:
        # The client's last error only says that there is no local file either; its cause is the first error.
        if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
            error = error.__cause__
        if isinstance(error, GatedRepoError):
            raise GatedError(
                f"{where}: {target} is gated; accept its licence at {host}/{repository} and set HF_TOKEN to "
                "a token of that account, remove the model from `models`, or say `gated: true` in its "
                "entry, so that it is left out"
            ) from error
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
        if status in (401, 404):
            raise MissingError(
                f"{where}: the Hub has no {target}, or shows it only to others; correct the key `{key}` of "
                "the entry or its `repository`, or set HF_TOKEN if it is private"
            ) from error
        if _has_other_size(error):
            raise InputError(
                f"{where}: a file of {target} came with another size than {host} states "
                f"({_read_first_line(error)}); check the network and HF_ENDPOINT and run again"
            ) from error
        if status is None and isinstance(error, OSError) and not isinstance(error, UNREACHABLE):
            raise  # an error of the disk
        answer = f"it answered {status}" if status else _read_first_line(error)
        if constants.is_offline_mode():
            answer = "HF_HUB_OFFLINE forbids asking for it"
        reason = (
            f"{host} cannot be reached for {target} ({answer}); check the network, HF_ENDPOINT and HF_TOKEN "
            "and run again, files that are complete are kept"
        )
        if isinstance(error, UNREACHABLE) and not status:
            raise UnreachableError(reason, where) from error
        raise InputError(f"{where}: {reason}") from error


def ask_hub(
    question: Callable[[], Result],
    repository: str,
    revision: str,
    *,
    where: str,
    key: str = "revision",
    pauses: tuple[float, ...] = QUESTION_PAUSES,
) -> Result:
    """Ask the Hub a question, and repeat it if a network or a server may fail only for a while."""
    # Warnings of the client show addresses, which may be signed; the error states all else.
    huggingface_hub.logging.set_verbosity_error()

    def ask() -> Result:
        CONTACT.listen()
        get_session().timeout = SILENT_SECONDS  # after an error the client may have a new session
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
    """Resolve all branches and tags of a repository to commits, by name; MissingError if there is no repository."""
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
    """List size and hash of the files of a commit, by path; `revision` names the commit in errors."""

    def list_tree() -> Files:
        files = {}
        for item in HfApi().list_repo_tree(repository, revision=commit, recursive=True):
            if isinstance(item, RepoFile) and is_inside(item.path):
                file_hash = f"sha256:{item.lfs.sha256}" if item.lfs else f"git:{item.blob_id}"
                files[item.path] = WeightFile(bytes=item.size, hash=file_hash)
        return files

    return ask_hub(list_tree, repository, revision, where=where, pauses=pauses)


def ask_for_heads(repository: str, commit: str, paths: Iterable[str]) -> Files:
    """Ask for the head of some files of a commit, with size and hash; {} if a head lacks one of them.

    The Hub counts these questions separately from listings, and answers more of them.
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


def read_json(place: Place, commit: str, path: str, *, where: str) -> dict[str, Any]:
    """Read a small JSON file of a commit into an object, through the user's cache."""

    def read() -> Any:
        file = hf_hub_download(place.repository, path, revision=commit)
        return json.loads(Path(file).read_bytes())

    content = ask_hub(read, place.repository, place.revision, where=where)
    if not isinstance(content, dict):
        raise InputError(
            f"{where}: {path} of `{place.repository}` at revision `{place.revision}` is no JSON object; "
            "choose another revision"
        )
    return content


def resolve(
    places: Mapping[str, Place], mains: Iterable[str], *, where: str
) -> tuple[dict[str, LockedRevision], dict[str, Listing]]:
    """Find the commit and the files of each revision.

    Parameters
    ----------
    places : mapping of str to Place
        The places of the revisions, by name.
    mains : iterable of str
        Repositories whose main branches are listed, too.
    where : str
        The name of the model's entry, for errors.

    Returns
    -------
    dict of str to LockedRevision
        A revision that does not exist is listed as missing; so is a repository, unless all are missing.
    dict of str to Listing
        The main branch of each repository, with or without weights.

    Raises
    ------
    InputError
        If the Hub cannot be reached, refuses to answer, or shows none of the repositories.
    """
    branches = [Place(repository, MAIN) for repository in mains]
    all_places = [*places.values(), *branches]
    repositories = sorted({place.repository for place in all_places})
    errors: list[MissingError] = []

    def list_commits_if_any(repository: str) -> dict[str, str] | None:
        try:
            return list_commits(repository, where=where)
        except MissingError as error:
            errors.append(error)
            return None

    with ThreadPoolExecutor(LISTINGS_AT_ONCE) as pool:
        commits = dict(zip(repositories, pool.map(list_commits_if_any, repositories), strict=True))
        if errors and len(errors) == len(repositories):
            raise errors[0]
        revisions = list(
            pool.map(
                lambda place: _list_revision(place, commits[place.repository], where), all_places
            )
        )
    main_listings = {
        revision.repository: revision.listing() for revision in revisions[len(places) :]
    }
    return dict(zip(places, revisions, strict=False)), main_listings


def read_listed_shape(revision: LockedRevision, *, where: str) -> Shape:
    """Read the shape of a model from the ``config.json`` of one of its revisions."""
    path = revision.path(CONFIGURATION)
    config = read_json(revision.place, revision.commit, path, where=where)
    refuse_quantised(config, where)
    return parse_shape(config, where)


def lacks_access(repository: str, *, where: str) -> bool:
    """Return whether there is no token, or the Hub refuses a gated repository to it.

    If the Hub cannot be reached, a token counts as accepted.
    """
    if get_token() is None:
        return True
    try:
        ask_hub(partial(HfApi().auth_check, repository), repository, MAIN, where=where)
    except GatedError:
        return True
    except InputError:
        pass  # resolving its revisions raises the error
    return False


def _list_revision(place: Place, commits: Mapping[str, str] | None, where: str) -> LockedRevision:
    """List a revision; `commits` are those of all branches and tags, None if the repository is missing."""
    repository, revision, subfolder = place
    commit = None
    if commits is not None:
        commit = commits.get(revision) or find_commit(repository, revision, where=where)
    if commit is None:
        return LockedRevision(**place._asdict(), problem=MISSING)
    files = list_files(repository, revision, commit, where=where)

    def read_index(path: str) -> tuple[list[str], float]:
        index = read_json(place, commit, path, where=where)
        try:
            return list_shard_names(index), float(index.get("metadata", {}).get("total_size", 0))
        except (ValueError, TypeError, AttributeError) as error:
            raise InputError(
                f"{where}: {path} of `{repository}` at revision `{revision}` is no index of shards ({error}); "
                "choose another revision"
            ) from error

    with hub_errors(repository, revision, where=where):
        listing = list_weights(files, commit, subfolder, read_index)
        locked_revision = LockedRevision(**place._asdict(), **dict(listing))
    if locked_revision.problem != NO_WEIGHTS:
        refuse_listed_adapter(files, subfolder, where)
    paths = sorted({*locked_revision.settings_paths(), *list_tokenizer_paths(files, subfolder)})
    small_files = {path: files[path].hash for path in paths if path in files}
    return locked_revision.model_copy(update={"small_files": small_files})


def _is_temporary(error: BaseException | None) -> bool:
    """Return whether the same question may succeed later."""
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in (408, 429) or error.response.status_code >= 500
    return isinstance(error, HTTP.TransportError) or _has_other_size(error)


def _has_other_size(error: BaseException | None) -> bool:
    """Return whether the client has downloaded more or fewer bytes than it expected."""
    return isinstance(error, OSError) and str(error).startswith("Consistency check failed")


def _read_first_line(error: BaseException) -> str:
    """Return the first line of a server's message, without passwords."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return hide_secrets(line)[:200]
