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


def test_a_run_is_judged_under_every_specification_without_another_of_its_own_numbers(checkout):
    settings = tiny_runs.set_up(checkout)
    settings["embeddings"] = {"dump": False}
    settings["choices"] = {
        # Also another text than that of the run.
        "text": ["own", "python_topics"],
        "special_tokens": ["keep"],
        "estimators": {"dimension": ["two_nn", {"two_nn": {"kept": 0.2}}]},
    }
    checkout.write("tiny.yaml", settings)
    run = ("--configfile", "tiny.yaml", "--cores", "2", "--quiet", "rules")
    # Claims are not judged on so short a pretraining of the run itself, but on folders of a training.
    checkout.snakemake("results/pretrained/tiny", *run)
    shutil.move(checkout.folder / "results/pretrained/tiny", checkout.folder / "training")
    folders = {"path": "training/step{step}", "training": {"steps": "all"}}
    checkout.write("config/models/tiny.yaml", {"tiny": folders})
    # Off unless it is asked for.
    assert "measure_choices" not in checkout.planned("--configfile", "tiny.yaml")
    assert checkout.planned("choices", "--configfile", "tiny.yaml")["measure_choices"] == 2
    checkout.snakemake("choices", f"results/{JACKKNIFE}", *run)

    found = [
        row for step in (0, 1) for row in checkout.rows(f"results/choices/tiny/step{step}.csv")
    ]
    assert {row["text"] for row in found} == {"own", "python_topics"}
    own = [
        row
        for row in found
        if row["last_layer"] == "after_final_norm"
        and row["estimator"] in ("anisotropy", "two_nn")
        and all(row[name] == value for name, value in FIRST.items())
    ]
    assert len(own) == 2 * 2 * 2  # steps, layers, estimators
    place = ("revision", "layer", "estimator")
    of_run = {
        tuple(row[name] for name in place): row for row in checkout.rows(f"results/{JACKKNIFE}")
    }
    for row in own:
        standard = of_run[tuple(row[name] for name in place)]
        same = row.keys() & standard.keys()
        assert {"value", "without_0", "n", "selection"} <= same
        assert {name: row[name] for name in same} == {name: standard[name] for name in same}

    curve = checkout.rows("results/figures/specification_dimension_rises_then_falls.csv")
    assert len(curve) == 2**8
    assert checkout.planned("choices", "--configfile", "tiny.yaml") == {}
