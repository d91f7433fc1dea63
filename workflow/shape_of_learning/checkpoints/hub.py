"""Asking the Hugging Face Hub: what a repository lists, and one sentence for what goes wrong.

The client is huggingface_hub. Ours is another try where a network or a server only fails for a while.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import huggingface_hub
from huggingface_hub import HfApi, constants, get_session, hf_hub_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
)
from huggingface_hub.hf_api import RepoFile

from shape_of_learning.checkpoints.lock import LockedRevision, WeightFile
from shape_of_learning.checkpoints.shapes import is_inside
from shape_of_learning.errors import InputError, UnreachableError, without_secrets

SILENT_SECONDS = 30.0  # between two pieces of an answer; of itself the client waits for ever
# Seconds between tries; who plans without a network waits for all of them.
QUESTION_PAUSES = (1.0, 2.0, 4.0)
UNREACHABLE = (httpx2.HTTPError, LocalEntryNotFoundError, ConnectionError)
# What the client makes of an answer that is none of a Hub, such as the page of a network's login.
MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)

Result = TypeVar("Result")
Files = Mapping[str, WeightFile]


class MissingError(InputError):
    """There is no such repository, revision or file, or the Hub does not show it."""


class GatedError(MissingError):
    """The repository is for those who have accepted its licence, and the token is of nobody who has."""


@contextmanager
def explained(
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
    host = without_secrets(HfApi().endpoint)
    try:
        yield
    except InputError:
        raise
    except (OSError, httpx2.HTTPError, *MALFORMED) as error:
        # What the client found out first, where all that it says is that there is no local file either.
        if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
            error = error.__cause__
        if isinstance(error, GatedRepoError):
            raise GatedError(
                f"{where}: {wanted} is gated; accept its licence at {host}/{repository} and set HF_TOKEN to "
                "a token of that account, remove the model from `models`, or say `gated: true` in its "
                "entry, so that key `gated_models` decides"
            ) from error
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
        if status in (401, 404):
            raise MissingError(
                f"{where}: the Hub has no {wanted}, or shows it only to others; correct the key `{key}` of "
                "the entry or its `repository`, or set HF_TOKEN if it is private"
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


def asked(
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
    get_session().timeout = SILENT_SECONDS
    for pause in pauses:
        try:
            with explained(repository, revision, where=where, key=key):
                return question()
        except InputError as error:
            if not _may_pass(error.__cause__):
                raise
        time.sleep(pause)
    with explained(repository, revision, where=where, key=key):
        return question()


def commits_of(repository: str, *, where: str) -> dict[str, str]:
    """Resolve all branches and tags of a repository: name -> commit; MissingError if there is none."""
    refs = asked(
        lambda: HfApi().list_repo_refs(repository),
        repository,
        "main",
        where=where,
        key="repository",
    )
    return {ref.name: ref.target_commit for ref in [*refs.tags, *refs.branches]}


def commit_of(repository: str, revision: str, *, where: str) -> str | None:
    """Resolve a revision that is neither branch nor tag, such as a commit; None if there is none."""
    try:
        return asked(
            lambda: HfApi().model_info(repository, revision=revision).sha,
            repository,
            revision,
            where=where,
        )
    except GatedError:
        raise
    except MissingError:
        return None


def files_at(repository: str, revision: str, commit: str, *, where: str) -> Files:
    """List the files of a commit, which `revision` stands for in errors: path -> size and hash."""

    def list_them() -> dict[str, WeightFile]:
        tree = HfApi().list_repo_tree(repository, revision=commit, recursive=True)
        files = {}
        for each in tree:
            if isinstance(each, RepoFile) and is_inside(each.path):
                digest = f"sha256:{each.lfs.sha256}" if each.lfs else f"git:{each.blob_id}"
                files[each.path] = WeightFile(bytes=each.size, hash=digest)
        return files

    return asked(list_them, repository, revision, where=where)


def read_json(place: LockedRevision, path: str, *, where: str) -> dict[str, Any]:
    """Read a small JSON file of a pinned revision that holds an object, by way of the user's cache."""

    def read() -> Any:
        file = hf_hub_download(place.repository, path, revision=place.commit)
        return json.loads(Path(file).read_bytes())

    content = asked(read, place.repository, place.revision, where=where)
    if not isinstance(content, dict):
        raise InputError(
            f"{where}: {path} of `{place.repository}` at revision `{place.revision}` is no JSON object; "
            "choose another revision"
        )
    return content


def is_closed(repository: str, *, where: str) -> bool:
    """Whether the Hub refuses a gated repository to the token there is; False if it cannot be asked."""
    try:
        asked(lambda: HfApi().auth_check(repository), repository, "main", where=where)
    except GatedError:
        return True
    except InputError:
        pass  # what is wrong with it is said when its revisions are resolved
    return False


def _may_pass(error: BaseException | None) -> bool:
    """Whether the same question may get another answer in a while."""
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in (408, 429) or error.response.status_code >= 500
    return isinstance(error, httpx2.TransportError)


def _first_line(error: BaseException) -> str:
    """A server's words: no passwords and no pages."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return without_secrets(line)[:200]
