"""Whether the configuration still describes the corpus that results rest on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shape_of_learning.corpus.corpus_file import QUALITIES
from shape_of_learning.errors import InputError


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
    try:
        found = json.loads(receipt.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except ValueError:
        raise InputError(
            f"{receipt} is damaged; delete it, and the corpus is fetched anew"
        ) from None
    for fact, (_, key) in QUALITIES.items():
        if key in entry and entry[key] != found[fact]:
            raise InputError(
                f"configuration key `corpus.sources.{source}.{key}` is {entry[key]}, but the corpus of "
                f"these results has {found[fact]}; correct the key, or delete {receipt.parent} to fetch anew"
            )
