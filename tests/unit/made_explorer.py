"""A small explorer of made-up numbers, by the script that draws the real one."""

from math import inf
from pathlib import Path

import draw_explorer
from figure_tables import rows_of_model, undefined, verdicts_on, write_rows, write_verdicts
from shape_of_learning.files import write_table
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.tidy import CLAIM_COLUMNS

STEPS = (0, 1, 8, 64, 512)
MEASURED = ("anisotropy", "average_cosine", "two_nn")
# Of an element, a script, a template and a formula of Vega.
HOSTILE = "</script><b onclick=alert(1)>\"'${x}%%STYLE%% datum.x"
LABELS = {"one": HOSTILE, "two": "Model two", "still": "Without steps"}


KEYS = ("name", "label", "axis", "description", "suspect_above")


def claimed(measures: list[str], tables: list[str], view: str, figures: list[str]) -> dict:
    return {"measures": measures, "tables": tables, "view": view, "figures": figures}


def paper(*cells: object) -> dict:
    return dict(zip(("name", "title", "models", "measures", "tables"), cells, strict=True))


DESCRIPTION = {
    "models": [{"name": name, "label": label} for name, label in LABELS.items()],
    "measures": [
        {key: getattr(MEASURES[name].chosen(name, {}), key) for key in KEYS} for name in MEASURED
    ],
    "papers": [
        paper("paper_a", "A & B", ["one"], ["two_nn"], []),
        paper("paper_b", "C", ["one", "still"], [*MEASURED], ["verdicts", "finetuning_structure"]),
    ],
    "claimed": {
        "paper_b": {
            "growth": claimed(["anisotropy"], [], "step", []),
            "fall": claimed(["two_nn"], [], "layer", []),
            "structure": claimed([], ["finetuning_structure"], "step", ["Figure 4"]),
            "probes": claimed([], ["finetuning_probes"], "step", ["Figure 3"]),
        }
    },
    "notes": ["These numbers are made up."],
}


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


def draw(folder: Path, *, rows: list[dict] | None = None) -> Path:
    """Write the tables and the page."""
    folders = {name: folder / name for name in ("verdicts", "claims", "finetuning_structure")}
    for each in folders.values():
        each.mkdir(parents=True, exist_ok=True)
    estimates = write_rows(folder / "estimates.csv", made_rows() if rows is None else rows)
    flagged = {8: ("same weights as step64", "hollow"), 64: ("broken: loss", "no")}
    of_two = verdicts_on("two", STEPS[1:])
    of_two[0]["loss"] = ""
    verdicts = [
        write_verdicts(folders["verdicts"] / "one.csv", verdicts_on("one", STEPS, flagged)),
        write_verdicts(folders["verdicts"] / "two.csv", of_two),
    ]
    claims = folders["claims"] / "paper_b.csv"
    growth = {"estimate": 0.25, "low": 0.125, "high": 0.5, "models": "two", "smallest_visible": 0.1}
    endless = {"estimate": 0.5, "low": -inf, "high": inf, "models": "still"}
    judged = [
        made_claim("fall", "not measured"),
        made_claim("growth", "supported", **growth, selections="all"),
        made_claim("structure", "undecided", **endless),
        made_claim("probes", "undecided", models="still"),
    ]
    write_table(claims, CLAIM_COLUMNS, judged)
    structure = folders["finetuning_structure"] / "still.csv"
    columns = ("model", "revision", "step", "sample", "layer", "quantity", "clusters", "n", "value")
    shares = [
        ["still", f"step{step}", step, "topic", layer, "share_between_types", None, 900, value]
        for step in (0, 64)
        for layer in range(4)
        for value in [0.1 * layer + 0.01 * step]
    ]
    of_clusters = [*shares[-1][:6], 27, 900, 0.5]
    write_table(structure, columns, [*shares, of_clusters])
    page = folder / "explorer.html"
    draw_explorer.main(estimates, verdicts, [structure], [claims], DESCRIPTION, page)
    return page
