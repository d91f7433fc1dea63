"""Whether the Hub still has what a lock file pins."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from huggingface_hub import constants

from shape_of_learning.checkpoints.lock import LockedRevision
from shape_of_learning.checkpoints.resolution import LISTINGS_AT_ONCE, list_weights
from shape_of_learning.errors import InputError
from shape_of_learning.hub.listing import commit_of, list_files


def verify_pins(pinned: Mapping[str, LockedRevision], *, where: str, lock: str) -> None:
    """List every pinned commit again and compare its weights with those of the lock.

    Parameters
    ----------
    pinned : mapping of str to LockedRevision
        By name, those that are going to be downloaded.
    where, lock : str
        How an error names the model's entry and the lock file.

    Raises
    ------
    InputError
        If a commit is gone or its files are others, or if the Hub cannot be reached. In offline mode
        nothing is asked.
    """
    if constants.is_offline_mode():
        return
    with ThreadPoolExecutor(LISTINGS_AT_ONCE) as pool:
        # list() waits for all and raises the first error.
        list(pool.map(lambda item: _verify(*item, where, lock), pinned.items()))


def _verify(name: str, pinned: LockedRevision, where: str, lock: str) -> None:
    commit = commit_of(pinned.repository, pinned.listed.commit, where=where)
    said = f"{where}: {lock} pins `{name}` to commit {pinned.listed.commit[:10]} of `{pinned.repository}`"
    remedy = f"delete its entry in {lock} to take what `{pinned.revision}` is now"
    if commit is None:
        raise InputError(f"{said}, which the Hub no longer has; {remedy}")
    source = list_files(pinned.repository, pinned.revision, commit, where=where)
    listed = list_weights(source, pinned.subfolder, where=where)
    if not listed.same_weights(pinned.listed):
        raise InputError(f"{said}, whose weights are not those that the lock lists; {remedy}")
