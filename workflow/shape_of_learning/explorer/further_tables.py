"""What other tables than that of estimates hold by layer or by step, as rows of estimates."""

import csv
import io
from collections.abc import Collection, Iterable
from pathlib import Path

from shape_of_learning.metrics.table_columns import ESTIMATE_COLUMNS
from shape_of_learning.storage.digests import read_unchanged

VERDICTS, LOSS = "verdicts", "loss"
LABELS = {LOSS: ("Cross-entropy", "nats per token")}
# By the kind of a table what its columns are called which a row of estimates calls otherwise.
KINDS = {
    VERDICTS: {"value": LOSS, "n": "predicted_tokens"},
    "weights": {"selection": "matrix"},
    "finetuning_layers": {"selection": "sample"},
    "finetuning_structure": {"estimator": "quantity", "selection": "sample"},
}


def further_rows(
    tables: Iterable[tuple[str, Path]], models: Collection[str]
) -> dict[str, list[list[str]]]:
    """Read tables of these kinds.

    Parameters
    ----------
    tables : iterable of (str, Path)
        A kind and a CSV file each.
    models : collection of str
        Those that the page shows.

    Returns
    -------
    dict of str to list of list of str
        By kind, rows of ``ESTIMATE_COLUMNS``; losses and measures of matrices have no layer.

    Raises
    ------
    InputError
        If a file is missing or is not what was written.
    """
    found: dict[str, list[list[str]]] = {}
    for kind, path in tables:
        content = read_unchanged(path).decode("utf-8")
        rows = list(csv.DictReader(io.StringIO(content, newline="")))
        last = max((int(row["layer"]) for row in rows if row.get("layer")), default=0)
        for row in rows:
            # What is of clusters has another axis; a checkpoint may have no loss.
            is_curve = not row.get("clusters") and (kind != VERDICTS or row[LOSS])
            if is_curve and row["model"] in models:
                found.setdefault(kind, []).append(_as_estimate(row, KINDS[kind], last))
    return found


def without_entry(
    rows: dict[str, list[list[str]]], named: Iterable[str]
) -> list[dict[str, object]]:
    """Describe the measures of such rows that have no entry, as the page describes those that have one."""
    known = set(named)
    names = dict.fromkeys(measure_of(row) for of in rows.values() for row in of)
    found = []
    for name in (each for each in names if each not in known):
        label, axis = LABELS.get(name, (name.replace("_", " ").capitalize(), ""))
        found.append({"name": name, "label": label, "axis": axis})
    return [{**each, "description": "", "suspect_above": None} for each in found]


def measure_of(row: list[str]) -> str:
    """The name of the measure of a row."""
    return row[ESTIMATE_COLUMNS.index("estimator")]


def _as_estimate(row: dict[str, str], names: dict[str, str], last: int) -> list[str]:
    cells = {name: row.get(names.get(name, name)) or "" for name in ESTIMATE_COLUMNS}
    cells["estimator"] = cells["estimator"] or LOSS
    cells["selection"] = cells["selection"] or "all"
    if cells["layer"] and last:
        cells["depth"] = str(int(cells["layer"]) / last)
    return list(cells.values())
