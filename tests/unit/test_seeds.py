"""Entries with seeds: models that differ in nothing else, and one curve with its band over them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import figure_tables as made
from shape_of_learning.errors import InputError
from shape_of_learning.figures.tables import join_seeds
from shape_of_learning.plan.entries import expand_seeds, read_models

ENTRY = {
    "repository": "org/bert-seed{seed}",
    "role": "encoder",
    "layers": 3,
    "hidden_size": 8,
    "seeds": [1, 2, 5],
    "training": {"revision": "step{step}", "steps": [0, 8]},
}


def test_each_seed_is_a_model_and_settings_that_name_the_entry_mean_all():
    settings = {"models": ["bert", "x"], "figures": {"figure_1": ["bert"], "figure_2": "all"}}
    settings |= {"training_steps": {"bert": "log"}, "papers": ["bert"]}
    entries, expanded = expand_seeds({"bert": ("f", ENTRY), "x": ("f", {"path": "y"})}, settings)
    names = ["bert-1", "bert-2", "bert-5"]
    assert expanded["models"] == [*names, "x"]
    assert expanded["figures"] == {"figure_1": names, "figure_2": "all"}
    assert expanded["training_steps"] == dict.fromkeys(names, "log")
    assert expanded["papers"] == ["bert"]
    models = read_models(entries, names)
    assert [checkpoint.repository for checkpoint in models["bert-5"].checkpoints] == [
        "org/bert-seed5"
    ] * 2
    assert {m.make_evidence().training for m in models.values()} == {"bert"}


@pytest.mark.parametrize(
    "change", [{"seeds": [1]}, {"seeds": [1, 1]}, {"seeds": "all"}, {"repository": "org/bert"}]
)
def test_seeds_that_cannot_be_are_refused(change):
    with pytest.raises(InputError, match="`seeds` must be a list"):
        expand_seeds({"bert": ("f", ENTRY | change)}, {})


def inputs(**more):
    steps = {"bert-1": (0, 8), "bert-2": (0, 8), "bert-5": (0, 4, 8), "gpt": (0, 8)}
    rows = [
        r
        for name, of in steps.items()
        for r in made.make_model_rows(name, steps=of, estimators=("two_nn",))
    ]
    given = made.make_inputs([*steps], "two_nn", rows=rows, **more)
    models = [
        replace(m, label=f"Bert, seed {m.name[-1]}", seeds_of="bert") if m.name != "gpt" else m
        for m in given.models
    ]
    return replace(given, models=models)


def test_a_curve_of_seeds_is_their_mean_with_students_interval_over_them():
    given = inputs()
    joined = join_seeds(given)
    assert [(m.name, m.label) for m in joined.models] == [("bert-1", "Bert"), ("gpt", "gpt")]
    before, after = given.tables["estimates"], joined.tables["estimates"]
    at = {"step": 8, "layer": 2, "estimator": "two_nn"}

    def rows(table, model):
        found = table[table["model"].str.startswith(model)]
        for key, value in at.items():
            found = found[found[key] == value]
        return found

    seeds, (row,) = rows(before, "bert"), [r for _, r in rows(after, "bert").iterrows()]
    low, high = stats.t.interval(0.95, 2, seeds["value"].mean(), stats.sem(seeds["value"]))
    assert (row["value"], row["low"], row["high"]) == pytest.approx(
        (seeds["value"].mean(), low, high)
    )
    # A step that one seed alone has is no point of the curve; others are as they were.
    assert set(after.loc[after["model"] == "bert-1", "step"]) == {0, 8}
    assert rows(after, "gpt")["value"].tolist() == rows(before, "gpt")["value"].tolist()
    drawing = made.draw("curves:means_by_step", joined)
    assert set(drawing.table["label"]) == {"Bert", "gpt"}
    assert np.isfinite(drawing.table["value"]).all()


def test_a_bad_checkpoint_of_one_seed_is_bad_in_the_curve():
    names = ("bert-1", "bert-2", "bert-5", "gpt")
    verdicts = [
        v
        for n in names
        for v in made.make_verdicts(n, (0, 8), {8: ("broken", "hollow")} if n == "bert-2" else None)
    ]
    joined = join_seeds(inputs(verdicts=verdicts))
    of = joined.verdicts[joined.verdicts["model"] == "bert-1"].set_index("step")["shown"]
    assert of.to_dict() == {0: "yes", 8: "hollow"}


def test_figures_that_read_other_tables_have_seeds_one_by_one():
    given = inputs()
    other = replace(given, tables={**given.tables, "weights": given.tables["estimates"]})
    assert join_seeds(other) is other
