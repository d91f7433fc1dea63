"""The section `block_editing`: what is refused, what jobs ask for, and which models its figures draw."""

import re

import pytest

from papers.linear.resources import estimate_editing
from plans import catch_refusal, make_run
from shape_of_learning.plan.jobs import make_figure_job

CONFIGURATIONS = {
    "a rate that is no number": (
        {"learning_rate": float("nan")},
        "input should be a finite number",
    ),
    "more windows than there are": ({"distillation_windows": 65}, "draws 65 windows for an update"),
    "an unknown key": ({"most_block": 3}, "did you mean `most_blocks`?"),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_bad_section_is_refused_in_one_sentence(name):
    section, sentence = CONFIGURATIONS[name]
    message = catch_refusal({"block_editing": section})
    assert "`block_editing" in message
    assert sentence in message


def test_keys_that_are_left_out_have_their_defaults():
    section = make_run({"block_editing": {"learning_rate": "2E-5"}}).settings["block_editing"]
    assert section["learning_rate"] == 2e-5
    assert section["orders"][-1] == "alone"


@pytest.mark.long
@pytest.mark.parametrize(
    ("section", "model", "sentence"),
    [
        ({}, "minilm-l6", "model `minilm-l6` is an encoder"),
        (
            {"most_blocks": 99},
            "demo-decoder",
            "`block_editing.most_blocks` is 99, but model `demo-decoder` has",
        ),
    ],
    ids=["an encoder", "too few blocks"],
)
def test_blocks_that_there_are_not_are_refused_before_any_job(checkout, section, model, sentence):
    checkout.write("case.yaml", {"block_editing": section})
    options = ("--configfile", "config/demo.yaml", "case.yaml")
    target = f"results/tables/edits/{model}.csv"
    output = checkout.snakemake("--dry-run", *options, "--", target, succeeds=False)
    assert output.count(sentence) == 1
    assert "Traceback" not in output


def test_needs_grow_with_the_width_and_with_the_blocks_that_are_changed():
    run = make_run({})
    model = run.models["demo-decoder"]
    needs = estimate_editing(model, run.settings, 8)
    wider = model.model_copy(update={"hidden_size": 2 * model.shape.hidden_size})
    wide = estimate_editing(wider, run.settings, 8)
    assert wide.memory > needs.memory > 0
    assert wide.minutes > 1.2 * needs.minutes > 0
    more = make_run({"block_editing": {"most_blocks": 6}}).settings
    assert estimate_editing(model, more, 8).minutes > needs.minutes


def test_figures_of_twins_and_of_fine_tunings_draw_no_others():
    figures = {"linear_figure_4": "all", "linear_figure_9": ["minilm-l6", "demo-decoder"]}
    run = make_run({"figures": figures})
    assert run.shown_models["linear_figure_9"] == ("demo-decoder",)
    notice = "linear_figure_9 is drawn without `minilm-l6`: it shows models that are decoders"
    assert notice in map(str, run.notices)
    assert run.shown_models["linear_figure_4"] == ("demo-decoder", "demo-twin")


def test_figures_of_changed_blocks_say_how_many_windows_these_read():
    run = make_run({})
    settings = run.settings
    for target, key in (
        ("linear_figure_6", "evaluation_windows"),
        ("linear_figure_9", "fitting_windows"),
    ):
        words = make_figure_job(run, target).sample
        assert re.findall(r"\d+", words) == [
            str(settings["block_editing"][key]),
            str(settings["sampling"]["window_characters"]),
        ]
        assert settings["corpus"]["source"] == "python_topics"
        assert "of Python's documentation" in words
