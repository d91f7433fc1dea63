"""Asking the Hub: the commit that a revision resolves to, and the files there."""

import json
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

from huggingface_hub import HfApi, get_session, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

from shape_of_learning.errors import InputError
from shape_of_learning.hub.hub_client import ANSWER_SECONDS, asked
from shape_of_learning.hub.hub_errors import explained
from shape_of_learning.hub.remote_revision import RemoteFile, RemoteRevision
from shape_of_learning.hub.retries import seconds_left, with_retries

Result = TypeVar("Result")


def commits_of(repository: str, *, where: str) -> dict[str, str] | None:
    """Resolve all branches and tags of a repository: name -> commit; None if it does not exist.

    Raises
    ------
    InputError
        If the Hub cannot be reached or refuses to answer.
    """

    def ask() -> dict[str, str] | None:
        try:
            refs = HfApi().list_repo_refs(repository)
        except GatedRepoError:
            raise
        except RepositoryNotFoundError:  # which a gated one is, too, for the client
            return None
        except HfHubHTTPError as error:
            if error.response.status_code == HTTPStatus.NOT_FOUND:  # a mirror, in its own words
                return None
            raise
        commits = {ref.name: ref.target_commit for ref in [*refs.tags, *refs.branches]}
        _require(all(isinstance(word, str) for pair in commits.items() for word in pair), "a name")
        return commits

    return _answer(ask, repository, "main", where, "repository")


def commit_of(repository: str, revision: str, *, where: str) -> str | None:
    """Resolve a revision that is neither branch nor tag, such as a commit; None if there is none.

    Raises
    ------
    InputError
        If the Hub cannot be reached or refuses to answer.
    """

    def ask() -> str | None:
        try:
            info = HfApi().model_info(repository, revision=revision)
        except GatedRepoError:
            raise
        except (RevisionNotFoundError, RepositoryNotFoundError):  # mirrors confuse the two
            return None
        return info.sha

    return _answer(ask, repository, revision, where, "revision")


def list_files(
    repository: str, revision: str, commit: str, *, where: str, key: str = "revision"
) -> RemoteRevision:
    """List the files of a commit, which `revision` stands for in errors.

    Raises
    ------
    InputError
        If the Hub cannot be reached, refuses to answer, or lists what no repository can hold.
    """

    def ask() -> dict[str, RemoteFile]:
        tree = HfApi().list_repo_tree(repository, revision=commit, recursive=True)
        return {item.path: _listed_file(item) for item in tree if isinstance(item, RepoFile)}

    files = _answer(ask, repository, revision, where, key)
    return RemoteRevision(repository, revision, commit, files)


def read_json(source: RemoteRevision, path: str, *, where: str) -> dict[str, Any]:
    """Read a small JSON file that holds an object, without keeping it.

    Raises
    ------
    InputError
        If it cannot be had or is something else.
    """

    def ask() -> bytes:
        answer = get_session().get(
            hf_hub_url(source.repository, path, revision=source.commit),
            headers=build_hf_headers(),
        )
        hf_raise_for_status(answer)
        return answer.content

    cached = try_to_load_from_cache(source.repository, path, revision=source.commit)
    if isinstance(cached, str):
        answer = Path(cached).read_bytes()
    else:
        answer = _answer(ask, source.repository, source.revision, where, "revision")
    try:
        content = json.loads(answer)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise InputError(
            f"{where}: {path} of `{source.repository}` at revision `{source.revision}` is not a JSON "
            "object; choose another revision"
        )
    return content


def inside(folder: str, name: str) -> str:
    """Path of a file in a folder of the repository, ``""`` for the top."""
    return f"{folder}/{name}" if folder else name


def _listed_file(item: RepoFile) -> RemoteFile:
    sha256 = item.lfs.sha256 if item.lfs else None
    _require(isinstance(item.path, str) and isinstance(item.blob_id, str), "a name")
    _require(sha256 is None or isinstance(sha256, str), "a hash")
    _require(type(item.size) is int and item.size >= 0, "a size")
    return RemoteFile(item.path, item.size, sha256, item.blob_id)


def _require(is_so: bool, what: str) -> None:
    if not is_so:
        raise ValueError(f"{what} is none")


def _answer(
    ask: Callable[[], Result], repository: str, revision: str, where: str, key: str
) -> Result:
    def attempt() -> Result:
        with explained(repository, revision, where=where, key=key):
            return asked(ask, min(ANSWER_SECONDS, seconds_left()))

    return with_retries(attempt)
