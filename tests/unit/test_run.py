"""What a run measures, and which tables are made of it."""

import json
from pathlib import Path

import pytest

from plans import CONFIG, PLAIN, run_of, tuned
from shape_of_learning.errors import InputError
from shape_of_learning.files import read_yaml
from shape_of_learning.plan import figures as shown
from shape_of_learning.plan.choice_settings import RunChoices
from shape_of_learning.plan.run import Run

DEMO = {
    "demo-decoder": ["step0", "step4", "step16", "step64", "step128"],
    "demo-encoder": ["step0", "step16", "step128"],
}


@pytest.fixture(scope="module")
def demo() -> Run:
    return run_of({})


def test_estimators_are_measured_at_every_checkpoint_and_others_where_a_figure_asks(demo):
    wanted = read_yaml(CONFIG / "config.yaml")["measurement"]["estimators"]
    for model, revisions in DEMO.items():
        assert list(demo.estimators_at(model)) == revisions
        for revision in revisions:
            assert set(wanted) <= set(demo.estimators_at(model)[revision])
    # dimension_by_scale is of each model's last checkpoint.
    assert "gride_64" not in demo.estimators_at("demo-decoder")["step64"]
    assert "gride_64" in demo.estimators_at("demo-decoder")["step128"]


def test_tables_of_a_figure_are_those_of_its_models(demo):
    assert shown.tables_of(demo, "figure_2") == {
        key: ["demo-decoder"] for key in ("estimates", "verdicts", "changes")
    }
    drawn = shown.figure_as_drawn(demo, "figure_1")
    assert {(each["name"], each["revision"]) for each in drawn["models"]} == {
        (model, "step128") for model in DEMO
    }
    assert "64 windows of 768 characters of python_topics" in drawn["caption"]


def test_a_target_that_is_left_out_is_refused_with_the_reason():
    run = run_of({"papers": ["linear"]})
    shown.require_shown(run, "linear_figure_1")
    with pytest.raises(InputError, match="finetuning_figure_1 belongs to the paper `finetuning`"):
        shown.require_shown(run, "finetuning_figure_1")
    with pytest.raises(InputError, match=r"linear_published_values belongs .* and shows opt-125m"):
        shown.require_shown(run, "linear_published_values")


def test_choices_are_measured_at_some_checkpoints_of_the_models_of_claims(demo):
    choices = RunChoices(demo)
    assert set(choices.models) == set(DEMO)
    assert list(choices.wanted_of("demo-encoder")) == ["step128"]  # no claim is on its training
    assert list(choices.wanted_of("demo-decoder")) == DEMO["demo-decoder"]
    measures = {each.name for each in choices.measures_at("demo-decoder", "step128")}
    assert {"two_nn", "two_nn(kept=0.2)", "mada"} <= measures


def test_a_fine_tuning_begins_with_the_last_checkpoint_or_with_the_one_that_is_named(tmp_path):
    entries = {"plain": PLAIN, "mine": tuned("plain"), "early": tuned("plain@step1")}
    run = run_of({"models": ["mine", "early"], "papers": []}, tmp_path, entries)
    assert [run.origin(name)["revision"] for name in ("mine", "early")] == ["step10", "step1"]
    assert list(run.models) == ["plain", "mine", "early"]


def test_what_is_not_pinned_is_planned_as_written_and_said_once(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    place = {"role": "decoder", "layers": 2, "hidden_size": 16}
    entries = {name: {"repository": f"a/{name}", **place} for name in ("one", "two")}
    said: list[str] = []
    options = {"locks": tmp_path / "locks", "say": said.append}
    run = run_of({"models": ["one", "two"], "papers": []}, tmp_path, entries, **options)
    assert [run.last_checkpoint(name).name for name in entries] == ["main", "main"]
    assert sum("unchecked" in line for line in said) == 1
    with pytest.raises(InputError):
        run.resolve()
    run.write_locks()
    assert not (tmp_path / "locks").exists()


def test_local_weights_are_told_apart_by_their_content(tmp_path):
    saved = tmp_path / "weights"
    saved.mkdir()
    config = {"model_type": "gpt_neox", "num_hidden_layers": 2, "hidden_size": 16}
    (saved / "model.safetensors").write_bytes(b"weights")
    (saved / "config.json").write_text(json.dumps(config))

    def decided(folder: Path) -> str:
        run = run_of({"models": ["mine"], "papers": []}, tmp_path, {"mine": {"path": str(folder)}})
        return run.weights("mine", "main")

    before = decided(saved)
    assert before
    moved = saved.rename(tmp_path / "elsewhere")
    assert decided(moved) == before
    (moved / "model.safetensors").write_bytes(b"Weights")
    assert decided(moved) != before
