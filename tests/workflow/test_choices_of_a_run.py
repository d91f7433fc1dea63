"""Claims under other specifications, by the rules of a run."""

import csv
import json
import zipfile
from pathlib import Path

import tiny_runs
from checkouts import Checkout

FIRST = {"text": "own", "first_token": "keep", "token_types": "all", "windows_share": "1"}


def rows_of(checkout: Checkout, path: str) -> list[dict[str, str]]:
    with (checkout.folder / "results" / path).open(newline="") as table:
        return list(csv.DictReader(table))


def test_a_run_is_judged_under_every_specification_without_another_of_its_own_numbers(checkout):
    settings = tiny_runs.set_up(checkout)
    settings["embeddings"] = {"dump": False}
    settings["choices"] = {
        # Also another text than that of the run.
        "text": ["own", "python_topics"],
        "special_tokens": ["keep"],
        "checkpoints_per_job": 2,
        "estimators": {"dimension": ["two_nn", {"two_nn": {"kept": 0.2}}]},
    }
    checkout.write("tiny.yaml", settings)
    run = ("--configfile", "tiny.yaml", "--cores", "2", "--quiet", "rules")
    # Off unless it is asked for.
    assert "measure_choices" not in checkout.planned("--configfile", "tiny.yaml")
    assert checkout.planned("choices", "--configfile", "tiny.yaml")["measure_choices"] == 1
    checkout.snakemake("choices", *run)

    found = rows_of(checkout, "choices/tiny/0.csv")
    assert {row["revision"] for row in found} == {"step0", "step1"}
    assert {row["text"] for row in found} == {"own", "python_topics"}
    own = [
        row
        for row in found
        if row["last_layer"] == "after_final_norm"
        and all(row[name] == value for name, value in FIRST.items())
    ]
    compared = 0
    for row in own:
        if row["estimator"] in ("anisotropy", "two_nn"):
            standard = rows_of(checkout, f"left_out/tiny/{row['revision']}/{row['estimator']}.csv")
            (of_layer,) = [each for each in standard if each["layer"] == row["layer"]]
            assert {name: row[name] for name in of_layer} == of_layer
            compared += 1
    assert compared == 2 * 2 * 2  # steps, layers, estimators

    # Two steps of one layer decide nothing, and the figures say so.
    page = (checkout.folder / "results/claims/choices.md").read_text()
    assert "| dimension_rises_then_falls | not measured |" in page
    curve = rows_of(checkout, "figures/specification_dimension_rises_then_falls.csv")
    assert {row["verdict"] for row in curve} == {"not measured"}
    assert len(curve) == 2**7
    assert checkout.planned("choices", "--configfile", "tiny.yaml") == {}

    # In a report each curve has its own caption.
    checkout.snakemake("choices", "--report", "report.zip", "--configfile", "tiny.yaml")
    with zipfile.ZipFile(checkout.folder / "report.zip") as archive:
        said = archive.read("report/report.html").decode()
    _, _, said = said.partition('<script id="results">')[2].partition("var results = ")
    results, _ = json.JSONDecoder().raw_decode(said)
    curves = [Path(path) for path in results if "/specification_" in path]
    assert len(curves) > 3
    for path in curves:
        assert f"<strong>{path.stem}." in results[str(path)]["caption"]
