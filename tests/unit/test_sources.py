"""Models that are trained here: which of their steps are measured, and what may rest on what."""

from pathlib import Path

import pytest
import yaml

from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.errors import InputError
from shape_of_learning.plan.curve import curve_of
from shape_of_learning.plan.model_list import Model, origins_of, read_entries, read_models

RECIPE = {
    "architecture": "gpt_neox",
    "attention_heads": 2,
    "vocabulary": 300,
    "context": 16,
    "batch_size": 8,
    "learning_rate": 0.01,
    "warmup_steps": 2,
    "last_step": 10,
    "threads": 1,
}
SIZE = {"role": "decoder", "layers": 2, "hidden_size": 32}
PLAIN = {**SIZE, "pretraining": RECIPE}
REGULARISED = {**RECIPE, "regulariser": "mse", "strength": 1}
TUNING = {
    "task": "topic",
    "learning_rate": 0.1,
    "batch_size": 4,
    "epochs": 3,
    "seed": 0,
    "threads": 1,
}
TASKS = {"topic": {"builtin": "topic"}, "pairs": {"builtin": "same_article"}}


def twin(**changes: object) -> dict:
    given = {"twin_of": "plain", "regulariser": "mse", "strength": 1, **changes}
    return {**SIZE, "pretraining": {**RECIPE, **given}}


def tuned(of: str, **changes: object) -> dict:
    return {"finetuning": {"of": of, **TUNING, **changes}}


def read(tmp_path: Path, name: str, **entries: dict) -> Model:
    (tmp_path / "models.yaml").write_text(yaml.safe_dump({"plain": PLAIN, **entries}))
    return read_models(read_entries(tmp_path), [name])[name]


@pytest.mark.parametrize(
    ("steps", "chosen"),
    [
        ("all", [0, 1, 2, 4, 8, 10]),
        ({"linear": 2}, [0, 10]),
        ([8, 2], [2, 8]),
        ({"log": 3}, [0, 1, 10]),
    ],
)
def test_steps_of_a_pretraining_are_chosen_among_those_that_are_saved(tmp_path, steps, chosen):
    found = read(tmp_path, "mine", mine={**PLAIN, "training": {"steps": steps}})
    assert [each.step for each in found.checkpoints] == chosen
    assert [each.tokens for each in found.checkpoints] == [128 * step for step in chosen]
    # Where training ended is known, whether it is measured or not.
    assert found.last_step == 10
    assert [each.step for each in curve_of(found, tmp_path / "lock").checkpoints] == chosen


@pytest.mark.parametrize(
    ("training", "said"),
    [
        ({"steps": [0, 3]}, "asks for 3, but the recipe saves only the steps 0, 1, 2, 4, 8, 10"),
        ({"steps": "all", "last_step": 4}, "`training.last_step` needs `repository` or `path`"),
        ({"steps": "all", "revision": "step{step}"}, "`training.revision` needs `repository`"),
    ],
)
def test_what_a_pretraining_does_not_have_is_refused(tmp_path, training, said):
    with pytest.raises(InputError, match=said):
        read(tmp_path, "mine", mine={**PLAIN, "training": training})


def test_a_fine_tuning_is_like_its_origin_and_saved_at_log_spaced_parts_of_epochs(tmp_path):
    found = read(tmp_path, "mine", mine=tuned("plain"))
    assert [each.name for each in found.checkpoints] == [
        f"step{n}" for n in (0, 1, 2, 4, 8, 16, 32, 48)
    ]
    assert found.shape == Shape("decoder", 2, 32, 32)
    assert found.source.revision == "step10"
    assert "16ths of an epoch" in found.note
    ends = read(tmp_path, "mine", mine={**tuned("plain"), "training": {"steps": {"linear": 2}}})
    assert [each.step for each in ends.checkpoints] == [0, 48]


def test_a_revision_of_the_origin_need_not_be_measured(tmp_path):
    plain = {**PLAIN, "training": {"steps": [0]}}
    found = read(tmp_path, "mine", plain=plain, mine=tuned("plain@step4"))
    assert found.source.revision == "step4"
    assert read(tmp_path, "mine", plain=plain, mine=tuned("plain")).source.revision == "step10"


def test_one_fine_tuning_may_follow_another(tmp_path):
    found = read(tmp_path, "b", a=tuned("plain@step1"), b=tuned("a", seed=1))
    assert list(origins_of([found])) == ["plain", "a"]
    assert found.source.revision == "step48"


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"a": tuned("plane")}, "`finetuning.of`: unknown model `plane`; did you mean `plain`"),
        (
            {"a": tuned("plain@step9")},
            "unknown revision of model `plain` `step9`; did you mean `step",
        ),
        ({"a": tuned("a")}, "circle, `a` -> `a`"),
        ({"a": tuned("b"), "b": tuned("a")}, "circle, `a` -> `b` -> `a`"),
        ({"a": {**tuned("plain"), "layers": 3}}, "for `layers`"),
        (
            {"a": twin(twin_of="plane")},
            "`pretraining.twin_of`: unknown model `plane`; did you mean",
        ),
        ({"a": twin(batch_size=4)}, "`batch_size` is 4 here and 8 there"),
        ({"a": {**twin(), "layers": 3}}, "`layers` is 3 here and 2 there"),
        ({"a": twin(device="cuda")}, "`device` is cuda here and cpu there"),
        (
            {"a": twin(twin_of="b"), "b": twin()},
            "is `b`, which is no pretraining with random numbers",
        ),
        ({"a": twin(twin_of="a")}, "circle"),
        (
            {"a": twin(twin_of="b"), "b": {**SIZE, "pretraining": REGULARISED}},
            "is `b`, which is no pretraining .* without a regulariser",
        ),
        (
            {"a": {**SIZE, "pretraining": {**RECIPE, "twin_of": "plain"}}},
            "without `pretraining.regulariser` this would be the same model",
        ),
    ],
)
def test_what_rests_on_nothing_or_on_itself_is_refused(tmp_path, entries, said):
    with pytest.raises(InputError, match=said):
        read(tmp_path, "a", **entries)


def test_a_twin_tells_its_job_whose_random_numbers_it_has(tmp_path):
    found = read(tmp_path, "a", a=twin(regulariser="cosine", strength=0.5))
    told = {"twin_of": "plain", "regulariser": "cosine", "strength": 0.5}
    assert found.source.arguments == read(tmp_path, "plain").source.arguments | told


def test_a_device_is_told_where_it_is_not_the_cpu(tmp_path):
    plain, on_cpu, on_gpu = (
        read(tmp_path, "a", a={**SIZE, "pretraining": {**RECIPE, **device}}).source.arguments
        for device in ({}, {"device": "cpu"}, {"device": "cuda"})
    )
    assert on_cpu == plain
    assert on_gpu == plain | {"device": "cuda"}


def test_a_task_is_known_and_a_decoder_without_a_separator_has_none_of_pairs(tmp_path):
    with pytest.raises(InputError, match="unknown task `topics`; did you mean `topic`"):
        read(tmp_path, "a", a=tuned("plain", task="topics")).source.check_task(TASKS)
    decoder = read(tmp_path, "b", a=tuned("plain"), b=tuned("a", task="pairs"))
    with pytest.raises(InputError, match="decoder `a` has no separator"):
        decoder.source.check_task(TASKS)
    encoder = {**PLAIN, "role": "encoder", "pretraining": {**RECIPE, "architecture": "bert"}}
    read(tmp_path, "a", plain=encoder, a=tuned("plain", task="pairs")).source.check_task(TASKS)
