"""Whether the configuration still describes the corpus that results rest on, and what it came from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shape_of_learning.corpus.corpus_file import QUALITIES, local_path, read_receipt
from shape_of_learning.errors import InputError
from shape_of_learning.files import fingerprint


def check_receipt(source: str, entry: Mapping[str, Any], receipt: Path) -> None:
    """Compare the entry of a corpus source with what was fetched.

    That a fact was added to the entry makes nothing anew, so it is checked here.

    Parameters
    ----------
    source : str
        Name of the source.
    entry : mapping
        Its entry in key `corpus.sources`.
    receipt : Path
        ``source.json``, which need not exist.

    Raises
    ------
    InputError
        Where one contradicts the other.
    """
    if not receipt.exists():
        return
    found = read_receipt(receipt)
    for fact, (_, key) in QUALITIES.items():
        if key in entry and entry[key] != found[fact]:
            raise InputError(
                f"configuration key `corpus.sources.{source}.{key}` is {entry[key]}, but the corpus of "
                f"these results has {found[fact]}; correct the key, or delete {receipt.parent} to fetch anew"
            )


def local_origin(entry: Mapping[str, Any], receipt: Path) -> str:
    """Fingerprint of the file of this machine that a corpus is fetched from; empty for one from elsewhere.

    A copy more is no other origin, and one that is gone is still the origin of what was fetched.
    """
    local = [path for path in map(local_path, entry["urls"]) if path is not None]
    there = [path for path in local if path.is_file()]
    if not receipt.exists():
        return fingerprint(there[0]) if there and local_path(entry["urls"][0]) else ""
    origin = read_receipt(receipt)["origin"]
    return fingerprint(there[0]) if origin and there else origin
