"""Write all results of a run as an HTML file that contains its numbers, program and style."""

import base64
import csv
import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from html import escape
from itertools import chain, groupby
from math import isinf
from operator import itemgetter
from pathlib import Path
from typing import Any

from shape_of_learning.claims.claim import format_choice, format_option, name_criteria_columns
from shape_of_learning.explorer.job import ExplorerJob, ShownClaim, ShownMeasure

FOLDER = Path(__file__).parent / "page"
FRAME, STYLE, LICENCES = "explorer.html", "explorer.css", "licences.txt"
PROGRAM = (
    "data.js",
    "lines.js",
    "table.js",
    "chart.js",
    "pictures.js",
    "curves.js",
    "controls.js",
    "claims.js",
    "main.js",
)
VERDICTS, LOSS = "verdicts", "loss"
LABELS = {LOSS: ("Cross-entropy", "nats per token")}
# The kind of a table, which is the name of its folder -> for each column of estimates that it fills, its own column.
KINDS = {VERDICTS: {"value": LOSS, "n": "predicted_tokens"}, "weights": {"selection": "matrix"}}
SERIES = ("estimator", "model", "selection")
NUMBERS = ("layer", "depth", "value", "low", "high", "near_duplicates", "n")
DIGITS = {"n": 9}  # other numbers are rounded to six digits
CLAIM_COLUMNS = ("claim", "sentence", "where", "verdict", "summary", "because", "besides")
Row = Mapping[str, str]


def format_page(content: Mapping[str, Any]) -> str:
    """Return the page as HTML.

    Equal content gives equal bytes, and text of the content cannot become an HTML element.

    Parameters
    ----------
    content : mapping
        The result of :func:`.read_content`.
    """
    import vl_convert  # not at the top, since the Snakefile imports this module and may lack the package

    program_content = {key: value for key, value in content.items() if key != "findings"}
    text = json.dumps(program_content, allow_nan=False, separators=(",", ":"))
    parts = {
        # As HTML elements, the findings are visible before the browser has read the program.
        "FINDINGS": "".join(f"<li>{escape(sentence)}</li>" for sentence in content["findings"]),
        "STYLE": _read_part(STYLE),
        "LICENCES": escape(_read_part(LICENCES)),
        "CONTENT": base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii"),
        "DRAWING": _escape_script_end(
            vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        ),
        "PROGRAM": _escape_script_end("\n".join(map(_read_part, PROGRAM))),
    }
    pieces = _read_part(FRAME).split("%%")
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


@cache
def digest_page() -> str:
    """Return a digest of the files of the page, whose change makes Snakemake draw the page again."""
    text = "\0".join(map(_read_part, (FRAME, STYLE, LICENCES, *PROGRAM)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read_part(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _escape_script_end(program: str) -> str:
    """Keep the strings of a program from ending its script element."""
    return program.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def read_content(
    job: ExplorerJob,
    estimates: Iterable[Row],
    findings: Sequence[str],
    verdicts: Sequence[Path] = (),
    further: Sequence[Path] = (),
    claims: Sequence[Path] = (),
    choices: Sequence[Path] = (),
) -> dict[str, Any]:
    """Read all tables of a run for the page.

    Parameters
    ----------
    job : ExplorerJob
    estimates : iterable of mapping
        Rows of ``tables/estimates.csv``, with cells as text.
    findings : sequence of str
        Sentences of :mod:`shape_of_learning.findings`.
    verdicts, further, claims : sequence of Path
        ``tables/verdicts/{model}.csv``, other tables of :data:`KINDS` and of papers, ``claims/{paper}.csv``.
    choices : sequence of Path
        ``claims/choices.csv``, then ``figures/specification_{claim}.csv`` of its claims; empty if the run has judged
        no claim under several choices.

    Returns
    -------
    dict
        `models`, `measures`, `papers`, `claims`, `sample`, `notes` and `findings`; `checkpoints`, with model,
        revision, step, tokens, verdict and `shown`; and `series`, lists [estimator, model, selection, rows]. The rows
        [number of the checkpoint, *NUMBERS, reason] are sorted by step, then by layer, with averages over layers last.
    """
    models = [model.name for model in job.models]
    kinds = {**KINDS, **job.curves}
    rows_by_kind: dict[str, list[Row]] = {}
    for path in (*verdicts, *further):
        kind = path.parent.name.removeprefix("last_")
        rows_by_kind.setdefault(kind, []).extend(_convert_to_estimates(path, kinds[kind], models))
    rows = [*estimates, *chain(*rows_by_kind.values())]
    measures_in_batches = {row["estimator"] for row in rows if row.get("batch_sd")}
    measures = [*job.measures, *_describe_further_measures(rows, job.measures)]
    verdict_rows = {
        (row["model"], row["revision"]): row for path in verdicts for row in read_table(path)
    }
    judged_claims = [
        _add_measures(claim, rows_by_kind) for claim in _read_claims(claims, job.claims)
    ]
    curves = {path.stem.removeprefix("specification_"): path for path in choices[1:]}
    flips = [
        _describe_flip(row) for path in choices[:1] for row in read_table(path) if row["flips"]
    ]
    for claim in judged_claims:
        claim["choices"] = [flip for flip in flips if flip["claim"] == claim["claim"]]
        if claim["claim"] in curves:
            claim["specifications"] = _read_specifications(curves[claim["claim"]])
    content = {
        "models": [asdict(model) for model in job.models],
        "measures": [asdict(m) | {"in_batches": m.name in measures_in_batches} for m in measures],
        "papers": [_add_measures(asdict(paper), rows_by_kind) for paper in job.papers],
        "claims": judged_claims,
        "sample": job.sample,
        "notes": job.notes,
        "findings": findings,
    }
    names = [measure.name for measure in measures]
    return content | _group_curves(rows, names, models, verdict_rows)


def read_table(path: Path) -> list[dict[str, str]]:
    """Read the rows of a CSV file, with cells as text."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _convert_to_estimates(
    path: Path, columns: Mapping[str, str], models: Sequence[str]
) -> Iterable[Row]:
    """Yield the rows of curves as estimates; `columns` maps columns of estimates to columns of the table."""
    rows = read_table(path)
    last = max((int(row["layer"]) for row in rows if row.get("layer")), default=0)
    for row in rows:
        # Values of clusters are not curves over layers or steps, and a checkpoint may have no loss.
        is_curve = not row.get("clusters") and (columns.get("value") != LOSS or row[LOSS])
        if is_curve and row["model"] in models:
            cells = {"estimator": LOSS, "selection": "all"} | row
            cells |= {name: row[other] for name, other in columns.items()}
            if row.get("layer") and last:
                cells["depth"] = str(int(row["layer"]) / last)
            yield cells


def _describe_further_measures(
    rows: Iterable[Row], measures: Sequence[ShownMeasure]
) -> Iterable[ShownMeasure]:
    """Describe the measures of tables that the job does not describe."""
    names = {measure.name for measure in measures}
    for name in dict.fromkeys(row["estimator"] for row in rows if row["estimator"] not in names):
        label, axis = LABELS.get(name, (name.replace("_", " ").capitalize(), ""))
        yield ShownMeasure(name, label, axis)


def _read_claims(
    tables: Iterable[Path], claims: Mapping[tuple[str, str], ShownClaim]
) -> Iterable[dict[str, Any]]:
    for table in tables:
        for row in read_table(table):
            claim = claims[table.stem, row["claim"]]
            rests_on = {key: row[key].split(";") for key in ("models", "selections")}
            criteria = {
                "criteria": json.loads(row["criteria"] or "[]"),
                "criteria_columns": name_criteria_columns(row["verdict"]),
            }
            words = {key: row[key] for key in CLAIM_COLUMNS}
            yield {**asdict(claim), **words, "paper": table.stem, **criteria, **rests_on}


def _describe_flip(row: Row) -> dict[str, str]:
    """Describe how a choice changes a verdict."""
    words = {
        "choice": format_choice(row["choice"]),
        "option": format_option(row["choice"], row["option"]),
    }
    return {key: row[key] for key in ("claim", "verdict_of_reference", "verdict", "flips")} | words


def _read_specifications(table: Path) -> dict[str, Any]:
    """Read the curve of a claim: its choices, and the verdict, numbers and options of each combination."""
    rows = read_table(table)
    columns = [*rows[0]]
    choices = columns[columns.index("n") + 1 : columns.index("because")]
    options = {name: list(dict.fromkeys(row[name] for row in rows)) for name in choices}
    return {
        "choices": [
            {
                "label": format_choice(name),
                "options": [format_option(name, o) for o in options[name]],
            }
            for name in choices
        ],
        "rows": [
            [
                row["verdict"],
                row["is_reference"] == "yes",
                *(_round_cell(row[key], 6) for key in ("estimate", "low", "high")),
                [options[name].index(row[name]) for name in choices],
            ]
            for row in rows
        ],
    }


def _add_measures(
    entry: Mapping[str, Any], rows_by_kind: Mapping[str, list[Row]]
) -> dict[str, Any]:
    """Return a paper or claim with the measures of its tables."""
    names = (row["estimator"] for kind in entry["tables"] for row in rows_by_kind.get(kind, ()))
    return {**entry, "measures": list(dict.fromkeys([*entry["measures"], *names]))}


def _group_curves(
    rows: list[Row],
    measures: Sequence[str],
    models: Sequence[str],
    verdict_rows: Mapping[tuple[str, str], Row],
) -> dict[str, Any]:
    measure_order = {name: place for place, name in enumerate(measures)}
    model_order = {name: place for place, name in enumerate(models)}

    def make_sort_key(row: Row) -> tuple[Any, ...]:
        return (
            measure_order[row["estimator"]],
            model_order[row["model"]],
            row["selection"],
            float(row["step"] or "inf"),
            row["revision"],
            float(row.get("layer") or "inf"),
        )

    rows.sort(key=make_sort_key)
    checkpoints: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        key = model, revision = row["model"], row["revision"]
        if key not in checkpoints:
            step = int(row["step"]) if row["step"] else None
            verdict = verdict_rows.get(key, {"verdict": "", "shown": "yes"})
            checkpoints[key] = {"model": model, "revision": revision, "step": step, "tokens": None}
            checkpoints[key] |= {name: verdict[name] for name in ("verdict", "shown")}
        if row.get("tokens"):  # some tables have no tokens
            checkpoints[key]["tokens"] = int(row["tokens"])
    numbers = {key: number for number, key in enumerate(checkpoints)}

    def list_cells(row: Row) -> list[Any]:
        rounded_numbers = (_round_cell(row.get(name), DIGITS.get(name, 6)) for name in NUMBERS)
        return [numbers[row["model"], row["revision"]], *rounded_numbers, row.get("reason") or None]

    series = [
        [*names, [list_cells(row) for row in group]]
        for names, group in groupby(rows, itemgetter(*SERIES))
    ]
    return {"checkpoints": list(checkpoints.values()), "series": series}


def _round_cell(cell: str | None, digits: int) -> float | str | None:
    """Return a rounded number; infinity as a string, since JSON has no infinity."""
    if not cell:
        return None
    value = float(f"{float(cell):.{digits}g}")
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return int(value) if value.is_integer() else value
