"""Claims under other specifications, by the rules of a run."""

import shutil

import tiny_runs

JACKKNIFE = "tables/jackknife/tiny.csv"
FIRST = {
    "text": "own",
    "first_token": "keep",
    "token_types": "all",
    "windows_share": "1",
    "same_window": "keep",
}


def test_a_run_is_judged_under_every_specification_and_the_first_has_the_numbers_of_the_run(
    checkout,
):
    settings = tiny_runs.set_up(checkout)
    settings["embeddings"] = {"dump": False}
    settings["choices"] = {
        # A second text beside that of the run.
        "text": ["own", "python_topics"],
        "special_tokens": ["keep"],
        "estimators": {"dimension": ["two_nn", {"two_nn": {"kept": 0.2}}]},
    }
    checkout.write("tiny.yaml", settings)
    run = ("--configfile", "tiny.yaml", "--cores", "2", "--quiet", "rules")
    # Claims are judged on folders of a training, not on a pretraining of the run that is so short.
    checkout.snakemake("results/pretrained/tiny", *run)
    shutil.move(checkout.folder / "results/pretrained/tiny", checkout.folder / "training")
    folders = {"path": "training/step{step}", "training": {"steps": "all"}}
    checkout.write("config/models/tiny.yaml", {"tiny": folders})
    # Choices are measured only on request.
    assert "measure_choices" not in checkout.plan_jobs("--configfile", "tiny.yaml")
    assert checkout.plan_jobs("choices", "--configfile", "tiny.yaml")["measure_choices"] == 2
    checkout.snakemake("choices", f"results/{JACKKNIFE}", *run)

    rows = [
        row for step in (0, 1) for row in checkout.read_rows(f"results/choices/tiny/step{step}.csv")
    ]
    assert {row["text"] for row in rows} == {"own", "python_topics"}
    rows_of_first = [
        row
        for row in rows
        if row["last_layer"] == "after_final_norm"
        and row["estimator"] in ("anisotropy", "two_nn")
        and all(row[name] == value for name, value in FIRST.items())
    ]
    assert len(rows_of_first) == 2 * 2 * 2  # steps, layers, estimators
    place = ("revision", "layer", "estimator")
    jackknife_rows = {
        tuple(row[name] for name in place): row
        for row in checkout.read_rows(f"results/{JACKKNIFE}")
    }
    for row in rows_of_first:
        standard = jackknife_rows[tuple(row[name] for name in place)]
        same = row.keys() & standard.keys()
        assert {"value", "without_0", "n", "selection"} <= same
        assert {name: row[name] for name in same} == {name: standard[name] for name in same}

    curve = checkout.read_rows("results/figures/specification_dimension_rises_then_falls.csv")
    assert len(curve) == 2**8
    assert checkout.plan_jobs("choices", "--configfile", "tiny.yaml") == {}
