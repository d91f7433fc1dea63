"""Claims with their verdicts, as the page lists them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shape_of_learning.storage.csv_table import read_rows

COLUMNS = (
    *("claim", "sentence", "where", "statistic", "estimate", "low", "high", "smallest_visible"),
    *("verdict", "because", "models", "revisions", "n", "selections", "hashes"),
)
SHOWN = ("claim", "sentence", "where", "verdict", "because")
NUMBERS = ("estimate", "low", "high", "smallest_visible")


def read_claims(
    tables: Sequence[Path], claimed: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """Read ``claims/{paper}.csv``.

    Parameters
    ----------
    tables : sequence of Path
    claimed : mapping
        By the name of a paper and that of a claim: the `models` and `measures` that it is about, and `view`,
        ``"layer"`` or ``"step"``.

    Returns
    -------
    list of dict
        Text as it stands in the tables, and `paper`, `models`, `measures` and `view`. The models are those
        that the verdict rests on, or all that the claim is about where it rests on none.

    Raises
    ------
    InputError
        If a table is missing, is not what was written, or has other columns.
    """
    claims = []
    for table in tables:
        for row in read_rows(table, COLUMNS):
            cells = dict(zip(COLUMNS, row, strict=True))
            shown = {key: cells[key] for key in (*SHOWN, *NUMBERS)}
            about = claimed[table.stem][cells["claim"]]
            models = [name for name in cells["models"].split(";") if name] or about["models"]
            claims.append({**about, **shown, "paper": table.stem, "models": models})
    return claims
