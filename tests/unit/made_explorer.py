"""A small explorer of made-up numbers, by the script that draws the real one."""

import csv
import json
from math import inf
from pathlib import Path

import draw_explorer
from figure_tables import rows_of_model, undefined, verdicts_on, write_rows, write_verdicts
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.table_columns import CLAIM_COLUMNS
from shape_of_learning.storage.csv_table import write_table

STEPS = (0, 1, 8, 64, 512)
MEASURED = ("anisotropy", "average_cosine", "two_nn")
# Of an element, a script, a template and a formula of Vega.
HOSTILE = "</script><b onclick=alert(1)>\"'${x}%%STYLE%% datum.x"
LABELS = {"one": HOSTILE, "two": "Model two", "still": "Without steps"}


def made_rows() -> list[dict]:
    """Two models with steps, one of them with a selection of its own, and one without steps."""
    rows = rows_of_model("one", layers=4, steps=STEPS, estimators=MEASURED)
    rows += rows_of_model("two", layers=6, steps=STEPS[1:], estimators=MEASURED)
    rows += rows_of_model("still", layers=3, estimators=MEASURED[:1])
    rows += [
        row | {"selection": "without_first_token", "value": row["value"] * 1.1}
        for row in rows_of_model("two", layers=6, steps=STEPS[1:], estimators=MEASURED[:1])
    ]
    for row in rows:
        if row["model"] == "two" and row["estimator"] == "two_nn" and row["layer"] == 2:
            row["near_duplicates"] = 0.4
        if row["estimator"] == "average_cosine" and row["layer"] == 0:
            row |= {key: 100 * row[key] for key in ("value", "low", "high")}
    at = next(n for n, row in enumerate(rows) if row["step"] == 64 and row["layer"] == 3)
    rows[at] = undefined(rows[at])
    return rows


def made_claim(claim: str, verdict: str, **others: object) -> list[object]:
    cells = {"claim": claim, "sentence": f"Claimed: {claim} & <i>more</i>", "where": "figure 2"}
    cells |= {"verdict": verdict, "because": "one of one models", **others}
    return [cells.get(name, "") for name in CLAIM_COLUMNS]


def draw(folder: Path, *, name: str = "explorer.html", rows: list[dict] | None = None) -> Path:
    """Write the tables and the page."""
    folder.mkdir(parents=True, exist_ok=True)
    estimates = write_rows(folder / "estimates.csv", rows or made_rows())
    flagged = {8: ("same weights as step64", "hollow"), 64: ("broken: loss", "no")}
    verdicts = [
        write_verdicts(folder / "one.csv", verdicts_on("one", STEPS, flagged)),
        write_verdicts(folder / "two.csv", verdicts_on("two", STEPS[1:])),
    ]
    claims = folder / "claims" / "paper_b.csv"
    growth = {"estimate": 0.25, "low": 0.125, "high": 0.5, "models": "two", "smallest_visible": 0.1}
    growth["selections"] = "all"
    endless = {"estimate": 0.5, "low": -inf, "high": inf, "models": "still"}
    write_table(
        claims,
        CLAIM_COLUMNS,
        [
            made_claim("growth", "supported", **growth),
            made_claim("fall", "not measured"),
            made_claim("structure", "undecided", **endless),
            made_claim("probes", "undecided", models="still"),
        ],
    )
    structure = folder / "finetuning_structure.csv"
    columns = ("model", "revision", "step", "sample", "layer", "quantity", "clusters", "n", "value")
    of_model = [
        ["still", f"step{step}", step, "topic/held_out", layer, "share_between_types", None, 900]
        for step in (0, 64)
        for layer in range(4)
    ]
    of_clusters = ["still", "step64", 64, "topic/held_out", 3, "share_between_types", 27, 900, 0.5]
    shares = [[*cells, 0.1 * cells[4] + 0.01 * cells[2]] for cells in of_model]
    write_table(structure, columns, [*shares, of_clusters])
    measures = [MEASURES[each].chosen(each, {}) for each in MEASURED]
    keys = ("name", "label", "axis", "description", "suspect_above")
    description = {
        "models": [{"name": name, "label": label} for name, label in LABELS.items()],
        "measures": [{key: getattr(each, key) for key in keys} for each in measures],
        "papers": [
            {
                "name": "paper_a",
                "title": "A & B",
                "models": ["one"],
                "measures": ["two_nn"],
                "tables": [],
            },
            {
                **{"name": "paper_b", "title": "C", "models": ["one", "still"]},
                **{"measures": [*MEASURED], "tables": ["verdicts", "finetuning_structure"]},
            },
        ],
        "claimed": {
            "paper_b": {
                "growth": {"measures": ["anisotropy"], "tables": [], "view": "step", "figures": []},
                "fall": {"measures": ["two_nn"], "tables": [], "view": "layer", "figures": []},
                "structure": {
                    **{"measures": [], "tables": ["finetuning_structure"]},
                    **{"view": "step", "figures": ["Figure 4"]},
                },
                "probes": {
                    **{"measures": [], "tables": ["finetuning_probes"]},
                    **{"view": "step", "figures": ["Figure 3"]},
                },
            }
        },
        "notes": ["These numbers are made up."],
    }
    page = folder / name
    further = [("finetuning_structure", structure)]
    draw_explorer.main(json.dumps(description), estimates, verdicts, further, [claims], page)
    return page


def table_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))
