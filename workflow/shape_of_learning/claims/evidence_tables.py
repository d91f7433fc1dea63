"""Evidence from the files of a run."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.claims.evidence import Evidence, EvidenceModel, LayerValues
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.table_columns import LEFT_OUT_TABLE_COLUMNS
from shape_of_learning.storage.csv_table import read_rows
from shape_of_learning.storage.digests import read_unchanged, recorded_digest

SOUND = "yes"  # in the column `shown` of the verdicts
VERDICTS = "verdicts"

Rows = list[dict[str, str]]


def read_evidence(
    models: Sequence[Mapping[str, Any]],
    suspect_above: Mapping[str, float],
    left_out: Sequence[Path],
    tables: Sequence[tuple[str, Path]],
    places: tuple[Path, Path],
) -> Evidence:
    """Read what claims are judged by.

    Parameters
    ----------
    models : sequence of mapping
        Of each model of the run what :class:`.EvidenceModel` holds.
    suspect_above : mapping of str to float
        As in :class:`.Evidence`.
    left_out : sequence of Path
        CSV files ``left_out.csv`` of one model and estimator each.
    tables : sequence of (str, Path)
        Kinds of further tables and a CSV file each. Those of the kind ``verdicts`` say which checkpoints are
        sound: a model that has one is judged by these alone, in all tables.
    places : (Path, Path)
        The folder of digests of weights, ``{model}/{revision}.tensors.csv.sha256``, and what describes
        the text.

    Raises
    ------
    InputError
        If a file is missing or is not what was written.
    """
    rows: dict[str, Rows] = {}
    for kind, path in tables:
        rows.setdefault(kind, []).extend(_rows(path))
    judged = {row["model"] for row in rows.get(VERDICTS, ())}
    sound = {(r["model"], r["revision"]) for r in rows.get(VERDICTS, ()) if r["shown"] == SOUND}

    def is_sound(checkpoint: Sequence[str]) -> bool:
        return checkpoint[0] not in judged or tuple(checkpoint) in sound

    values: dict[tuple[str, str], list[LayerValues]] = {}
    kept = {
        kind: [row for row in of if is_sound((row["model"], row["revision"]))]
        for kind, of in rows.items()
    }
    read = {(row["model"], row["revision"]) for of in kept.values() for row in of}
    for path in left_out:
        table = read_rows(path, LEFT_OUT_TABLE_COLUMNS)
        for checkpoint, of in groupby(table, key=lambda row: tuple(row[:2])):
            if is_sound(checkpoint):
                found = _layer_values(list(of))
                values.setdefault((checkpoint[0], found.estimator), []).append(found)
                read.add(checkpoint)
    checkpoints, alphabet = places
    digests = {"text": _text_digest(alphabet)}
    for model, revision in sorted(read):
        if digest := recorded_digest(checkpoints / model / f"{revision}.tensors.csv"):
            digests[f"{model}@{revision}"] = digest
    for kind, path in tables:
        digests[f"{kind}/{path.stem}"] = recorded_digest(path) or ""
    return Evidence(
        models={each["name"]: EvidenceModel(**each) for each in models},
        values={key: sorted(of, key=lambda each: each.step or 0) for key, of in values.items()},
        tables=kept,
        suspect_above=suspect_above,
        digests=digests,
    )


def _layer_values(rows: list[list[str]]) -> LayerValues:
    """Put together the layers of one checkpoint and estimator."""
    _, revision, step, tokens, _, estimator, selection = rows[0][:7]
    numbers = np.array([[float(cell or "nan") for cell in row[7:]] for row in rows])
    value, n, near_duplicates, *without = numbers.T
    return LayerValues(
        revision,
        int(step) if step else None,
        int(tokens) if tokens else None,
        estimator,
        selection,
        layers=tuple(int(row[4]) for row in rows),
        values=np.stack([value, *without], axis=-1),
        near_duplicates=tuple(near_duplicates.tolist()),
        n=float(n.mean()),
    )


def _rows(path: Path) -> Rows:
    content = read_unchanged(path).decode("utf-8")
    return list(csv.DictReader(io.StringIO(content, newline="")))


def _text_digest(alphabet: Path) -> str:
    try:
        return str(json.loads(alphabet.read_text(encoding="utf-8"))["text"]["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{alphabet} does not describe a text; delete it and run again") from error
