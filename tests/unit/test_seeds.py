"""Entries with seeds give a model per seed, and one curve with a band over the seeds."""

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


def test_each_seed_is_a_model_and_settings_of_the_entry_apply_to_all_seeds():
    settings = {"models": ["bert", "x"], "figures": {"figure_1": ["bert"], "figure_2": "all"}}
    settings |= {"training_steps": {"bert": "log"}, "papers": ["bert"]}
    entries, expanded_settings = expand_seeds(
        {"bert": ("f", ENTRY), "x": ("f", {"path": "y"})}, settings
    )
    names = ["bert-1", "bert-2", "bert-5"]
    assert expanded_settings["models"] == [*names, "x"]
    assert expanded_settings["figures"] == {"figure_1": names, "figure_2": "all"}
    assert expanded_settings["training_steps"] == dict.fromkeys(names, "log")
    assert expanded_settings["papers"] == ["bert"]
    models = read_models(entries, names)
    assert [checkpoint.repository for checkpoint in models["bert-5"].checkpoints] == [
        "org/bert-seed5"
    ] * 2
    assert {m.make_evidence().training for m in models.values()} == {"bert"}


@pytest.mark.parametrize(
    "change", [{"seeds": [1]}, {"seeds": [1, 1]}, {"seeds": "all"}, {"repository": "org/bert"}]
)
def test_impossible_seeds_are_refused(change):
    with pytest.raises(InputError, match="`seeds` must be a list"):
        expand_seeds({"bert": ("f", ENTRY | change)}, {})


def make_inputs(**more):
    steps = {"bert-1": (0, 8), "bert-2": (0, 8), "bert-5": (0, 4, 8), "gpt": (0, 8)}
    rows = [
        r
        for name, model_steps in steps.items()
        for r in made.make_model_rows(name, steps=model_steps, estimators=("two_nn",))
    ]
    figure_inputs = made.make_inputs([*steps], "two_nn", rows=rows, **more)
    models = [
        replace(m, label=f"Bert, seed {m.name[-1]}", seeds_of="bert") if m.name != "gpt" else m
        for m in figure_inputs.models
    ]
    return replace(figure_inputs, models=models)


def test_a_curve_of_seeds_is_their_mean_with_students_interval():
    figure_inputs = make_inputs()
    joined_inputs = join_seeds(figure_inputs)
    assert [(m.name, m.label) for m in joined_inputs.models] == [("bert-1", "Bert"), ("gpt", "gpt")]
    estimates, joined_estimates = (
        figure_inputs.tables["estimates"],
        joined_inputs.tables["estimates"],
    )
    place = {"step": 8, "layer": 2, "estimator": "two_nn"}

    def select_rows(table, model):
        matches = table[table["model"].str.startswith(model)]
        for key, value in place.items():
            matches = matches[matches[key] == value]
        return matches

    seeds, (row,) = (
        select_rows(estimates, "bert"),
        [r for _, r in select_rows(joined_estimates, "bert").iterrows()],
    )
    low, high = stats.t.interval(0.95, 2, seeds["value"].mean(), stats.sem(seeds["value"]))
    assert (row["value"], row["low"], row["high"]) == pytest.approx(
        (seeds["value"].mean(), low, high)
    )
    # A step of only one seed is no point of the curve, and other models stay.
    assert set(joined_estimates.loc[joined_estimates["model"] == "bert-1", "step"]) == {0, 8}
    assert (
        select_rows(joined_estimates, "gpt")["value"].tolist()
        == select_rows(estimates, "gpt")["value"].tolist()
    )
    drawing = made.draw("curves:means_by_step", joined_inputs)
    assert set(drawing.table["label"]) == {"Bert", "gpt"}
    assert np.isfinite(drawing.table["value"]).all()


def test_a_bad_checkpoint_of_one_seed_marks_the_joined_curve():
    names = ("bert-1", "bert-2", "bert-5", "gpt")
    verdicts = [
        v
        for n in names
        for v in made.make_verdicts(n, (0, 8), {8: ("broken", "hollow")} if n == "bert-2" else None)
    ]
    joined_inputs = join_seeds(make_inputs(verdicts=verdicts))
    verdicts_by_step = joined_inputs.verdicts[
        joined_inputs.verdicts["model"] == "bert-1"
    ].set_index("step")["shown"]
    assert verdicts_by_step.to_dict() == {0: "yes", 8: "hollow"}


def test_figures_of_other_tables_do_not_join_seeds():
    figure_inputs = make_inputs()
    other = replace(
        figure_inputs, tables={**figure_inputs.tables, "weights": figure_inputs.tables["estimates"]}
    )
    assert join_seeds(other) is other
