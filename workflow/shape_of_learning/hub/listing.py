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
from shape_of_learning.hub.given_names import is_commit, is_hash, is_inside
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
        return {ref.name: ref.target_commit for ref in [*refs.tags, *refs.branches]}

    commits = _answer(ask, repository, "main", where, "repository")
    for name, commit in (commits or {}).items():
        _require_commit(commit, repository, name, where)
    return commits


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

    commit = _answer(ask, repository, revision, where, "revision")
    if commit is not None:
        _require_commit(commit, repository, revision, where)
    return commit


def _require_commit(commit: object, repository: str, revision: str, where: str) -> None:
    if not is_commit(commit):
        raise InputError(
            f"{where}: the Hub answers {commit!r:.60} for revision `{revision!s:.60}` of `{repository}`, "
            "which is no commit, 40 hexadecimal digits; check HF_ENDPOINT"
        )


def list_files(
    repository: str, revision: str, commit: str, *, where: str, key: str = "revision"
) -> RemoteRevision:
    """List the files of a commit, which `revision` stands for in errors.

    Raises
    ------
    InputError
        If the Hub cannot be reached or refuses to answer, or lists a path that leads out of the repository,
        or a file without its size or hash.
    """

    def ask() -> dict[str, RemoteFile]:
        tree = HfApi().list_repo_tree(repository, revision=commit, recursive=True)
        listed = [item for item in tree if isinstance(item, RepoFile)]
        return {item.path: _file(item, repository, where) for item in listed}

    files = _answer(ask, repository, revision, where, key)
    return RemoteRevision(repository, revision, commit, files)


def _file(item: RepoFile, repository: str, where: str) -> RemoteFile:
    if not is_inside(item.path):
        raise InputError(
            f"{where}: the Hub lists {item.path!r:.80} in `{repository}`, which is no path inside a "
            "repository; check HF_ENDPOINT"
        )
    digest = f"sha256:{item.lfs.sha256}" if item.lfs else f"git:{item.blob_id}"
    if not is_hash(digest) or type(item.size) is not int or item.size < 0:
        raise InputError(
            f"{where}: the Hub lists {item.path} in `{repository}` with {item.size!r:.30} bytes and the hash "
            f"`{digest:.80}`, by which nothing can be verified; check HF_ENDPOINT"
        )
    return RemoteFile(item.path, item.size, digest)


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


def _answer(
    ask: Callable[[], Result], repository: str, revision: str, where: str, key: str
) -> Result:
    def attempt() -> Result:
        with explained(repository, revision, where=where, key=key):
            return asked(ask, min(ANSWER_SECONDS, seconds_left()))

    return with_retries(attempt)
