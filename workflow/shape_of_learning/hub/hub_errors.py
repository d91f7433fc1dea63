"""What the Hub and its client raise, said in one sentence with a remedy."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from http import HTTPStatus

import httpx2
import huggingface_hub
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from shape_of_learning.errors import InputError, UnreachableError
from shape_of_learning.hub.hub_client import LimitError, asked
from shape_of_learning.storage.files import DISK_FULL

SHOWN_REVISIONS = 8
SHOWN_CHARACTERS = 200  # of what a server says
# What the client makes of an answer that is no answer of a Hub, such as the page of a network's login.
MALFORMED = (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError)


class RevisionMissingError(InputError):
    """The repository is there, but not the revision."""


class GatedError(InputError):
    """The repository is for those who have accepted its licence, and the token is of nobody who has."""


@contextmanager
def explained(repository: str, revision: str, *, where: str, key: str) -> Iterator[None]:
    """Turn what the Hub's client raises inside the block into an `InputError`.

    Parameters
    ----------
    repository, revision : str
        What is being asked for.
    where, key : str
        How the sentence names the model's entry and the key to correct.

    Raises
    ------
    InputError
        If the repository or revision does not exist or is gated, or the Hub cannot be reached, refuses, or
        answers what no Hub does. What the client raised is its cause.
    GatedError
        The `InputError` for a repository whose licence has not been accepted.
    RevisionMissingError
        The `InputError` for a revision that a repository does not have.
    UnreachableError
        The `InputError` for a network that is not there, and for offline mode.
    OSError
        As it is, if it names a local file or the disk is full.
    """
    # Its warnings show addresses, which may be signed; the error says what matters of them.
    huggingface_hub.logging.set_verbosity_error()
    try:
        yield
    except (OSError, httpx2.HTTPError, HFValidationError) as error:
        # What the client found out first, where all that it says is that there is no local file either.
        if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
            error = error.__cause__
        if isinstance(error, OSError) and (error.filename or error.errno in DISK_FULL):
            raise
        raise _explanation(error, repository, revision, where, key) from error
    except MALFORMED as error:
        wanted = f"`{repository}` at revision `{revision}`"
        if isinstance(error, UnreachableError):
            raise UnreachableError(f"{where}: {error}") from error
        if isinstance(error, LimitError):
            raise InputError(
                f"{where}: {wanted} is given up, since {error}; run again later, or set HF_ENDPOINT to "
                "another server of the same files"
            ) from error
        if isinstance(error, InputError):
            raise
        if isinstance(error, UnicodeEncodeError):
            raise InputError(
                f"{where}: the Hugging Face token holds characters that no token has; correct HF_TOKEN"
            ) from None
        raise InputError(
            f"{where}: {shown_endpoint()} answers for {wanted} what is no answer of a Hub; check "
            "HF_ENDPOINT, and whether the network wants a login first"
        ) from error


def shown_endpoint() -> str:
    """The address of the Hub as messages say it: without a user's name and password."""
    return _without_secrets(HfApi().endpoint)


def lacking(repository: str, revision: str, what: str, *, where: str) -> InputError:
    """Make the error for a revision that lacks a file.

    Parameters
    ----------
    repository, revision : str
        What was listed: by the Hub, or offline by the user's cache, which may hold a part only.
    what : str
        ``"no config.json"`` and the like, optionally with another remedy after a semicolon.
    where : str
        How the sentence names the model's entry.
    """
    wanted = f"`{repository}` at revision `{revision}`"
    missing, _, remedy = what.partition("; ")
    if constants.is_offline_mode():
        return _forbidden(f"{wanted} has {missing} in the Hugging Face cache, it", where)
    remedy = remedy or "correct `repository`, `revision` or `subfolder` in the entry"
    return InputError(f"{where}: {wanted} has {missing}; {remedy}")


def invisible(repository: str, *, where: str, key: str = "repository") -> InputError:
    """Make the error for a repository that the Hub does not have, or does not show."""
    return InputError(
        f"{where}: the Hub has no repository `{repository}`, or shows it only to others; correct "
        f"the key `{key}` of the entry, or set HF_TOKEN if it is private"
    )


def _forbidden(wanted: str, where: str) -> UnreachableError:
    return UnreachableError(
        f"{where}: {wanted} is not downloaded yet and HF_HUB_OFFLINE forbids to ask for it; unset it, "
        "or run once where there is a network"
    )


def _explanation(
    error: Exception, repository: str, revision: str, where: str, key: str
) -> InputError:
    endpoint = shown_endpoint()
    wanted = f"`{repository}` at revision `{revision}`"
    if isinstance(error, GatedRepoError):
        return GatedError(
            f"{where}: {wanted} is gated; accept its licence at {endpoint}/{repository} and set HF_TOKEN "
            "to a token of that account, remove the model from `models`, or say `gated: true` in its entry, "
            "so that key `gated_models` decides"
        )
    lost = isinstance(error, RevisionNotFoundError | RepositoryNotFoundError)
    # A mirror may say so in words of its own.
    if lost or (
        isinstance(error, HfHubHTTPError) and error.response.status_code == HTTPStatus.NOT_FOUND
    ):
        existing = _revisions(repository)
        if existing is None:
            wrong = "repository" if key == "revision" else key
            return invisible(repository, where=where, key=wrong)
    if lost:
        near = get_close_matches(revision, existing, n=SHOWN_REVISIONS, cutoff=0)
        return RevisionMissingError(
            f"{where}: `{repository}` has no revision `{revision}`; correct the key `{key}` of the entry, "
            f"the nearest that exist are {', '.join(f'`{_shown(name)}`' for name in near) or 'none'}"
        )
    if isinstance(error, HFValidationError):
        return InputError(f"{where}: `{repository}` is no name of a repository; correct the entry")
    if constants.is_offline_mode():
        return _forbidden(wanted, where)
    if isinstance(error, HfHubHTTPError):
        return InputError(
            f"{where}: {endpoint} answered {error.response.status_code} for {wanted} "
            f"({_first_line(error)}); check HF_TOKEN and HF_ENDPOINT, or run again later"
        )
    if isinstance(error, httpx2.HTTPError | LocalEntryNotFoundError | ConnectionError):
        return UnreachableError(
            f"{where}: {endpoint} cannot be reached for {wanted} ({_first_line(error)}); check the "
            "network and HF_ENDPOINT and run again, files that are complete are kept"
        )
    return InputError(
        f"{where}: {wanted} could not be downloaded ({_first_line(error)}); check the free space and "
        "run again, files that are complete are kept"
    )


def _revisions(repository: str) -> list[str] | None:
    """Branches and tags, or None if the repository is not to be seen.

    Asked for even after "repository not found", because mirrors say that of a missing revision too.
    """
    try:
        refs = asked(lambda: HfApi().list_repo_refs(repository))
        return [str(ref.name) for ref in [*refs.branches, *refs.tags]]
    except (OSError, httpx2.HTTPError, *MALFORMED):
        return None


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return _shown(_without_secrets(lines[0])).rstrip(".") if lines else type(error).__name__


def _without_secrets(text: str) -> str:
    """Leave out the token; of addresses names, passwords and what follows a `?`, which may be a signature."""
    text = re.sub(r"(?i)bearer\s.*", "Bearer ...", text)
    return re.sub(r"(://[^\s?']*)\?[^\s']*", r"\1", re.sub(r"(?<=://)[^\s/@]*@", "", text))


def _shown(text: str) -> str:
    """A server's words on a terminal: no characters that control it, and no pages."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return plain if len(plain) <= SHOWN_CHARACTERS else f"{plain[:SHOWN_CHARACTERS]}..."
