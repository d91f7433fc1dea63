"""The section `block_editing`: its errors, the resources of its jobs, and the models of its figures."""

import re

import pytest

from papers.linear.resources import estimate_editing
from papers.linear.settings import BlockEditing
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


def test_missing_keys_have_their_defaults():
    section = make_run({"block_editing": {"learning_rate": "2E-5"}}).settings.find_section(
        BlockEditing
    )
    assert section.learning_rate == 2e-5
    assert section.orders[-1] == "alone"


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
def test_impossible_blocks_are_refused_before_any_job(checkout, section, model, sentence):
    checkout.write("case.yaml", {"block_editing": section})
    options = ("--configfile", "config/demo.yaml", "case.yaml")
    target = f"results/tables/edits/{model}.csv"
    output = checkout.snakemake("--dry-run", *options, "--", target, succeeds=False)
    assert output.count(sentence) == 1
    assert "Traceback" not in output


def test_requested_resources_grow_with_width_and_changed_blocks():
    run = make_run({})
    model = run.models["demo-decoder"]
    needs = estimate_editing(model, run.settings, 8)
    wider = model.model_copy(update={"hidden_size": 2 * model.shape.hidden_size})
    wide = estimate_editing(wider, run.settings, 8)
    assert wide.memory > needs.memory > 0
    assert wide.minutes > 1.2 * needs.minutes > 0
    more = make_run({"block_editing": {"most_blocks": 6}}).settings
    assert estimate_editing(model, more, 8).minutes > needs.minutes


def test_figures_draw_only_the_models_that_they_can_show():
    figures = {"linear_figure_4": "all", "linear_figure_9": ["minilm-l6", "demo-decoder"]}
    run = make_run({"figures": figures})
    assert run.shown_models["linear_figure_9"] == ("demo-decoder",)
    notice = "linear_figure_9 is drawn without `minilm-l6`: it shows models that are decoders"
    assert notice in map(str, run.notices)
    assert run.shown_models["linear_figure_4"] == ("demo-decoder", "demo-twin")


def test_figures_of_changed_blocks_state_their_number_of_windows():
    run = make_run({})
    settings = run.settings
    for target, key in (
        ("linear_figure_6", "evaluation_windows"),
        ("linear_figure_9", "fitting_windows"),
    ):
        words = make_figure_job(run, target).sample
        assert re.findall(r"\d+", words) == [
            str(getattr(settings.find_section(BlockEditing), key)),
            str(settings.sampling.window_characters),
        ]
        assert settings.corpus.source == "python_topics"
        assert "of Python's documentation" in words
