"""Steps of one's own training, found on the disk."""

import json
from pathlib import Path

import pytest
import yaml

from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.checkpoints.verdicts import Evidence, judged_by_measurements
from shape_of_learning.errors import InputError
from shape_of_learning.plan.curve import curve_of
from shape_of_learning.plan.model_list import Model, read_entries, read_models

CONFIG = {"model_type": "gpt_neox", "num_hidden_layers": 3, "hidden_size": 32}
STEPS = (100, 200, 300, 500, 1000, 2000)
HARD = "a \"b\" {c} {{d}} 'e' $(touch F) [0-9]* ü"


def saved(folder: Path, **changes: object) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | changes))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A folder as a Trainer leaves it, seen from the working directory."""
    for step in STEPS:
        saved(tmp_path / "run" / f"checkpoint-{step}")
    (tmp_path / "run" / "checkpoint-3000").mkdir()  # a save that was cut off
    (tmp_path / "run" / "checkpoint-best").mkdir()
    saved(tmp_path / "run" / "xcheckpoint-7")
    saved(tmp_path / "run" / "checkpoint-7x")
    (tmp_path / "run" / "checkpoint-8").write_text("a file")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "run"


def model(path: str = "run/checkpoint-{step}", steps: object = "all", **entry: object) -> Model:
    training = {"steps": steps, **entry.pop("training", {})}
    written = {"mine": {"path": path, "training": training, **entry}}
    folder = Path("models")
    folder.mkdir(exist_ok=True)
    (folder / "mine.yaml").write_text(yaml.safe_dump(written))
    return read_models(read_entries(folder), ["mine"])["mine"]


def steps_of(found: Model) -> list[int]:
    return [each.step for each in found.checkpoints]


@pytest.mark.parametrize(
    ("steps", "chosen"),
    [
        ("all", list(STEPS)),
        ([2000, 100], [100, 2000]),
        ({"linear": 3}, [100, 1000, 2000]),
        ({"log": 3}, [100, 500, 2000]),
        ("log", [100, 200, 500, 1000, 2000]),
    ],
)
def test_steps_are_chosen_among_the_folders_that_hold_a_checkpoint(run, steps, chosen):
    found = model(steps=steps)
    assert steps_of(found) == chosen
    assert [each.path for each in found.checkpoints] == [f"run/checkpoint-{n}" for n in chosen]
    assert [each.name for each in found.checkpoints] == [f"step{n}" for n in chosen]
    assert found.shape == Shape("decoder", 3, 32, 32)
    assert found.has_training_steps


def test_tokens_follow_from_the_steps(run):
    found = model(training={"tokens_per_step": 7})
    assert [each.tokens for each in found.checkpoints] == [7 * step for step in STEPS]
    assert {each.tokens for each in model().checkpoints} == {None}


@pytest.mark.parametrize(
    "pattern", ["{step}", "checkpoint-{step}/model", "s-{step}-of-9/a/b", f"{HARD}{{step}}{HARD}/x"]
)
def test_the_step_may_be_anywhere_and_all_else_stands_for_itself(tmp_path, monkeypatch, pattern):
    monkeypatch.chdir(tmp_path)
    for step in (0, 5, 10):
        saved(Path("hard " + HARD, pattern.replace("{step}", str(step))))
    expected = [0, 5, 10]
    assert steps_of(model(f"hard {HARD}/{pattern}")) == expected
    assert steps_of(model(f"./hard {HARD}//{pattern}/")) == expected
    absolute = model(f"{tmp_path}/hard {HARD}/{pattern}")
    assert steps_of(absolute) == expected
    assert all(Path(each.path, "config.json").exists() for each in absolute.checkpoints)


def test_a_pattern_in_the_working_directory_is_found(run, monkeypatch):
    monkeypatch.chdir(run)
    assert steps_of(model("checkpoint-{step}")) == list(STEPS)


def test_leading_zeros_are_those_of_the_folder(run):
    saved(run / "z" / "step_000500")
    assert [each.path for each in model("run/z/step_{step}").checkpoints] == ["run/z/step_000500"]


def refusal(*arguments: object, **entry: object) -> str:
    with pytest.raises(InputError) as caught:
        model(*arguments, **entry)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("model `mine` in ")
    return str(caught.value)


def test_a_step_that_is_not_there_is_one_sentence_with_those_that_are(run):
    said = refusal(steps=[100, 350, 700])
    assert "asks for 350, 700, but" in said
    assert "only the steps 100, 200, 300, 500, 1000, 2000;" in said


@pytest.mark.parametrize("steps", ["all", "log", {"linear": 2}, {"log": 2}, [1]])
@pytest.mark.parametrize("path", ["run/step-{step}", "nowhere/{step}", "run/checkpoint-{step}/x"])
def test_no_folder_at_all_is_one_sentence(run, path, steps):
    assert f"no folder like {path} holds a config.json" in refusal(path, steps)


def test_two_folders_of_one_step_are_one_sentence(run):
    saved(run / "checkpoint-0500")
    said = refusal()
    assert "run/checkpoint-0500 and run/checkpoint-500 are both step 500" in said


def test_a_pattern_that_does_not_reach_the_folder_is_refused(run):
    assert "same folder at every step; write `{step}` into it" in refusal("run/checkpoint-500")
    assert "occurs twice" in refusal("run-{step}/checkpoint-{step}")
    pattern = {"revision": "checkpoint-{step}"}
    said = refusal("run", training=pattern)
    assert "`training.revision` needs `repository`; for folders write `{step}` into `path`" in said


def test_a_pattern_without_training_says_what_to_add(run):
    Path("models").mkdir()
    Path("models/mine.yaml").write_text("mine: {path: 'run/checkpoint-{step}'}")
    with pytest.raises(InputError, match=r"add `training: \{steps: all\}`"):
        read_models(read_entries(Path("models")), ["mine"])


def test_what_a_repository_alone_has_is_refused(run):
    mistake = {"steps": [1], "because": "x", "source": "y"}
    assert "`training.known_bad` needs `repository`" in refusal(training={"known_bad": [mistake]})
    extra = {"checkpoints": [{"step": 1, "revision": "a"}]}
    assert "`training.checkpoints` needs `repository`" in refusal(training=extra)


def test_a_path_that_has_its_step_is_not_told_to_have_it(run):
    mistake = {"steps": [1], "because": "x", "source": "y"}
    for training in ({"known_bad": [mistake]}, {"revision": "checkpoint-{step}"}):
        said = refusal(training=training)
        assert said.endswith("for folders leave it out and choose `training.steps`")


def test_a_path_without_steps_is_told_of_steps_alone(run):
    Path("models").mkdir()
    entry = "mine: {path: 'run/checkpoint-{step}', training: {tokens_per_step: 3}}"
    Path("models/mine.yaml").write_text(entry)
    with pytest.raises(InputError, match=r"key `training\.steps` is missing; add it$"):
        read_models(read_entries(Path("models")), ["mine"])


def test_checkpoints_of_other_shapes_are_no_curve(run):
    saved(run / "checkpoint-50", hidden_size=64)
    assert "checkpoint-50 says" in refusal()
    assert steps_of(model(steps=[100, 200])) == [100, 200]


def test_what_the_entry_says_is_compared_with_the_checkpoints(run):
    assert "says 3 where the entry says 4" in refusal(layers=4)


def test_no_path_holds_a_nul(run):
    assert "`path` must be a folder" in refusal("run/\0{step}")


def test_training_ends_with_the_last_step_on_the_disk_and_not_with_the_last_that_is_listed(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for step in (1, 2, 3, 4, 8):
        saved(Path(f"run/{step}"))

    def verdicts(**training: object) -> dict[int, str]:
        found = curve_of(model("run/{step}", **training), Path("no lock"))
        digests = {
            name: Evidence({"w": ("F32", "4x4", "2" if name == "step3" else name[4:])})
            for name in found.judged
        }
        judged = judged_by_measurements(list(found.judged.values()), digests)
        return {each.step: each.verdict for each in judged}

    untold = "same weights in steps 2 and 3; nothing tells whose they are"
    for steps in ([1, 2, 3], "all"):
        found = verdicts(steps=steps)
        assert [found[step] for step in (1, 2, 3)] == ["ok", untold, untold]
    stated = verdicts(steps=[1, 2, 3], training={"last_step": 3, "note": "Ours."})
    assert stated == {1: "ok", 2: "same weights as step 3", 3: "ok"}


@pytest.mark.parametrize(
    ("adds", "separates"),
    [(None, False), ({"type": "ByteLevel"}, False), ({"type": "Sequence"}, True)],
)
def test_a_tokenizer_that_adds_no_token_separates_no_texts(run, adds, separates):
    assert model().source.separates_texts  # nothing tells
    tokenizer = run / "checkpoint-2000" / "tokenizer.json"
    tokenizer.write_text(json.dumps({"post_processor": adds}))
    assert model().source.separates_texts == separates
