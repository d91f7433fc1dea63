"""Claims with their verdicts, as the page lists them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shape_of_learning.files import read_rows
from shape_of_learning.metrics.table_columns import CLAIM_COLUMNS

SHOWN = ("claim", "sentence", "where", "verdict", "because")
NUMBERS = ("estimate", "low", "high", "smallest_visible")
RESTS_ON = ("models", "selections")


def read_claims(
    tables: Sequence[Path], claimed: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """Read ``claims/{paper}.csv``.

    Parameters
    ----------
    tables : sequence of Path
    claimed : mapping
        By the name of a paper and that of a claim: `measures`, of which it is, or `tables`, of all of whose
        measures; `view`, ``"layer"`` or ``"step"``, that shows them; `figures`, which draw these tables.

    Returns
    -------
    list of dict
        Text as it stands in the tables, and `paper`, what is claimed of, and the `models` and `selections`
        that the verdict rests on.

    Raises
    ------
    InputError
        If a table is missing, is not what was written, or has other columns.
    """
    claims = []
    for table in tables:
        for row in read_rows(table, CLAIM_COLUMNS):
            cells = dict(zip(CLAIM_COLUMNS, row, strict=True))
            shown = {key: cells[key] for key in (*SHOWN, *NUMBERS)}
            rests_on = {key: [name for name in cells[key].split(";") if name] for key in RESTS_ON}
            about = claimed[table.stem][cells["claim"]]
            claims.append({**about, **shown, "paper": table.stem, **rests_on})
    return claims
