"""Lock files, and what a plan makes of them, without asking anybody."""

from dataclasses import replace
from pathlib import Path

import pytest

from shape_of_learning.checkpoints.integrity_table import write_integrity_table
from shape_of_learning.checkpoints.judged_checkpoint import JudgedCheckpoint
from shape_of_learning.checkpoints.lock import Lock, LockedRevision, read_lock, write_lock
from shape_of_learning.checkpoints.model_entry import Shape
from shape_of_learning.checkpoints.weight_listing import WeightFile, WeightListing
from shape_of_learning.errors import InputError
from shape_of_learning.plan.curve import curve_of
from shape_of_learning.plan.models import read_entries, read_models
from shape_of_learning.plan.steps import OfferedSteps, RevisionTemplate, StepRule

OFFERED = OfferedSteps("org/model", "", RevisionTemplate("step{step}"), StepRule("log"), 100)
ENTRY = """
tiny:
  repository: org/model
  training: {revision: "step{step}", tokens_per_step: 100, steps: STEPS, known_bad: [KNOWN]}
"""
KNOWN = "{steps: [1], same_as: 0, source: there}"
TYPED = """
  role: decoder
  layers: 2
  hidden_size: 32
"""
SHAPE = Shape("decoder", 2, 32, 32)


def weights(content: str) -> WeightListing:
    return WeightListing(
        f"{content:0>40}", {"model.safetensors": WeightFile(7, f"sha256:{content:0>64}")}
    )


def locked(step: int, listed: WeightListing) -> LockedRevision:
    return LockedRevision("org/model", f"step{step}", listed=listed)


LOCK = Lock(
    chosen={str(OFFERED): ["step0", "step1", "step8"]},
    revisions={
        "step0": locked(0, weights("a")),
        "step1": locked(1, weights("a")),
        "step8": locked(8, WeightListing(problem="missing")),
    },
    mains={"org/model": weights("f")},
    shape=SHAPE,
)


def model(tmp_path: Path, steps: str, typed: str):
    (tmp_path / "models").mkdir(exist_ok=True)
    (tmp_path / "models" / "tiny.yaml").write_text(
        ENTRY.replace("STEPS", steps).replace("KNOWN", KNOWN) + typed
    )
    return read_models(read_entries(tmp_path / "models"), ["tiny"])["tiny"]


def planned(tmp_path: Path, steps: str, lock: Lock, typed: str = TYPED):
    """The curve that a plan makes where nobody can be asked."""
    write_lock(tmp_path / "tiny.yaml", lock)
    before = (tmp_path / "tiny.yaml").read_bytes()
    curve = curve_of(
        model(tmp_path, steps, typed), tmp_path / "tiny.yaml", unreachable="no network"
    )
    assert (tmp_path / "tiny.yaml").read_bytes() == before, "planning wrote a lock"
    return curve


def test_a_lock_that_is_written_is_read_again(tmp_path):
    words = LockedRevision("org/words", "main", listed=WeightListing("c" * 40))
    small = {"config.json": f"git:{'1':0>40}", "words/vocab.txt": f"sha256:{'2':0>64}"}
    revisions = {**LOCK.revisions, "step0": replace(LOCK.revisions["step0"], small_files=small)}
    lock = replace(LOCK, tokenizer=words, revisions=revisions)
    write_lock(tmp_path / "lock.yaml", lock)
    assert read_lock(tmp_path / "lock.yaml") == lock
    before = (tmp_path / "lock.yaml").read_bytes()
    write_lock(tmp_path / "lock.yaml", lock)
    assert (tmp_path / "lock.yaml").read_bytes() == before


def test_no_lock_is_none(tmp_path):
    assert read_lock(tmp_path / "lock.yaml") is None


GOOD = """
shape: {layers: 2}
chosen: {"a rule": [step0]}
revisions:
  step0:
    repository: org/model
    revision: step0
    subfolder: a/b
    commit: COMMIT
    files:
      model.safetensors: {bytes: 7, hash: "sha256:DIGEST"}
    small_files: {config.json: "git:COMMIT"}
mains:
  org/model: {commit: COMMIT}
""".replace("COMMIT", "a" * 40).replace("DIGEST", "b" * 64)
DAMAGED = [
    *(
        "[",
        "- 1",
        "revisions: 3",
        "revisions: {a: {}}",
        "",
        "a: &a [*a]",
        "\0",
        "revisions: {}\n" * 2,
    ),
    GOOD.replace("a" * 40, "../../../home"),
    GOOD.replace("a" * 40, "a" * 39),
    GOOD.replace("a" * 40, "A" * 40),
    GOOD.replace("a" * 40, "4" * 40),  # a number, for YAML
    GOOD.replace(f"    commit: {'a' * 40}\n", ""),
    GOOD.replace("b" * 64, "b" * 40),
    GOOD.replace(f"sha256:{'b' * 64}", "git:"),
    GOOD.replace(f"sha256:{'b' * 64}", ""),
    GOOD.replace(f"sha256:{'b' * 64}", f"md5:{'b' * 32}"),
    GOOD.replace(f'"sha256:{"b" * 64}"', "7"),
    GOOD.replace(f', hash: "sha256:{"b" * 64}"', ""),
    GOOD.replace(f"git:{'a' * 40}", "git:"),
    GOOD.replace("bytes: 7", "bytes: -7"),
    GOOD.replace("bytes: 7", "bytes: seven"),
    GOOD.replace("bytes: 7", "bytes: true"),
    GOOD.replace("bytes: 7, ", ""),
    GOOD.replace("  model.safetensors:", "  ../model.safetensors:"),
    GOOD.replace("  model.safetensors:", "  1:"),
    GOOD.replace("config.json:", "/etc/passwd:"),
    GOOD.replace("config.json:", "../config.json:"),
    GOOD.replace("a/b", "a/../../b"),
    GOOD.replace("a/b", "/a/b"),
    GOOD.replace("a/b", "C:/a"),
    GOOD.replace("a/b", "[a]"),
    GOOD.replace("org/model", "../../org"),
    GOOD.replace("org/model", "7"),
    GOOD.replace("revision: step0", "revision: ../step0"),
    GOOD.replace("revision: step0", "revision: 0"),
    GOOD.replace("  step0:", "  ..:"),
    GOOD.replace("  step0:", "  a/b:"),
    GOOD.replace("  step0:", "  0:"),
    GOOD.replace("[step0]", "step0"),
    GOOD.replace("layers: 2", "layers: two"),
    GOOD.replace("layers: 2", "depth: 2"),
    GOOD.replace("    revision: step0", "    revision: step0\n    revision: step1"),
    GOOD + "mains: {}\n",
]


def test_a_lock_by_hand_is_read(tmp_path):
    (tmp_path / "lock.yaml").write_text(GOOD)
    assert read_lock(tmp_path / "lock.yaml").revisions["step0"].subfolder == "a/b"


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_lock_is_one_sentence(tmp_path, content):
    assert content != GOOD
    (tmp_path / "lock.yaml").write_text(content)
    with pytest.raises(InputError, match=r"lock\.yaml is no lock file .*delete it") as caught:
        read_lock(tmp_path / "lock.yaml")
    assert "\n" not in str(caught.value)


def test_a_lock_that_is_no_text_is_one_sentence(tmp_path):
    (tmp_path / "lock.yaml").write_bytes(GOOD.encode("utf-16"))
    with pytest.raises(InputError, match=r"lock\.yaml is no lock file .*delete it"):
        read_lock(tmp_path / "lock.yaml")


def test_a_lock_of_the_first_version_is_read(tmp_path):
    """It also held the verdicts, steps and tokens of the last plan, and no shape."""
    first = """
curve: {step0: ok}
revisions:
  step0: {repository: org/model, revision: step0, step: 0, tokens: 0, commit: COMMIT}
""".replace("COMMIT", "a" * 40)
    (tmp_path / "lock.yaml").write_text(first)
    listed = WeightListing("a" * 40)
    assert read_lock(tmp_path / "lock.yaml") == Lock(revisions={"step0": locked(0, listed)})


def test_a_table_says_what_a_lock_lists_and_the_verdict(tmp_path):
    curve = [JudgedCheckpoint("step0", 0, 7, "ok"), JudgedCheckpoint("step8", 8, None, "missing")]
    write_integrity_table(tmp_path / "t.csv", curve, LOCK)
    assert (tmp_path / "t.csv").read_text().splitlines()[1:] == [
        f"0,7,step0,{'a':0>40},model.safetensors,7,sha256:{'a':0>64},ok",
        "8,,step8,,,,,missing",
    ]


def test_a_lock_is_enough_to_plan_and_to_judge(tmp_path):
    curve = planned(tmp_path, "[0, 1, 8]", LOCK)
    assert curve.unresolved == ""
    assert not curve.is_new
    verdicts = {"step0": "ok", "step1": "same weights as step 0", "step8": "missing"}
    assert curve.verdicts == verdicts
    assert [each.name for each in curve.measured(flagged=False)] == ["step0"]
    assert [each.name for each in curve.measured(flagged=True)] == ["step0", "step1"]


def test_a_lock_says_what_the_entry_does_not(tmp_path):
    curve = planned(tmp_path, "[0, 1]", LOCK, typed="")
    assert curve.model.shape == SHAPE


def test_what_the_entry_says_is_checked_against_the_lock(tmp_path):
    with pytest.raises(InputError, match=r"`layers` config\.json .* says 2 where the entry says 3"):
        planned(tmp_path, "[0, 1]", LOCK, typed="  layers: 3\n")


def test_a_role_that_nobody_tells_is_asked_for(tmp_path):
    lock = replace(LOCK, shape=replace(SHAPE, role=""))
    assert planned(tmp_path, "[0]", lock, typed="  role: encoder\n").model.shape.role == "encoder"
    with pytest.raises(InputError, match="add `role: encoder` or `role: decoder`"):
        planned(tmp_path, "[0]", lock, typed="")


def test_a_lock_without_a_shape_does_for_a_typed_entry_and_no_other(tmp_path):
    lock = replace(LOCK, shape=Shape())
    assert planned(tmp_path, "[0]", lock).model.shape == SHAPE
    with pytest.raises(InputError, match=r"no network; restore .*tiny\.yaml, or state `role`"):
        planned(tmp_path, "[0]", lock, typed="")


def test_steps_by_rule_stay_those_that_were_chosen(tmp_path):
    curve = planned(tmp_path, "log", LOCK)
    assert [each.step for each in curve.checkpoints] == [0, 1, 8]
    assert [each.tokens for each in curve.checkpoints] == [0, 100, 800]


def test_another_rule_has_to_ask_and_says_what_to_do_if_it_cannot(tmp_path):
    with pytest.raises(InputError, match=r"no network; restore .*tiny\.yaml, or list the steps"):
        planned(tmp_path, "{linear: 3}", LOCK)


def test_fewer_steps_need_nobody_and_forget_no_pin(tmp_path):
    curve = planned(tmp_path, "[1, 8]", LOCK)
    assert curve.verdicts == {
        "step1": "known bad: same weights as step 0 (there)",
        "step8": "missing",
    }
    assert set(curve.lock.revisions) == set(LOCK.revisions)


def test_a_step_that_no_lock_knows_is_planned_unchecked_where_nobody_can_be_asked(tmp_path):
    curve = planned(tmp_path, "[0, 99]", LOCK)
    assert curve.unresolved == "no network"
    assert set(curve.verdicts.values()) == {"ok"}


def test_offered_steps_that_are_listed_are_found_by_their_pattern():
    branches = ["step-5k-token-10B", "step-10k-token-21B", "main", "step-15k-token-32B"]
    pattern = RevisionTemplate("step-{kilosteps}k-token-{gigatokens}B")
    offered = OfferedSteps("org/model", "", pattern, (5000, 15000, 99000), None)
    assert offered.choose(branches) == ["step-5k-token-10B", "step-15k-token-32B"]
    described = offered.checkpoint("step-15k-token-32B")
    assert (described.step, described.tokens) == (15000, 32 * 10**9)
