"""Lock files, and what a plan makes of them, without asking anybody."""

from dataclasses import replace
from pathlib import Path

import pytest

from shape_of_learning.checkpoints.integrity_table import integrity_table_is, write_integrity_table
from shape_of_learning.checkpoints.lock import Lock, LockedRevision, read_lock, write_lock
from shape_of_learning.checkpoints.weight_listing import WeightFile, WeightListing
from shape_of_learning.errors import InputError
from shape_of_learning.plan.checkpoint_list import OfferedSteps
from shape_of_learning.plan.curve import curve_of
from shape_of_learning.plan.model_list import read_entries, read_models
from shape_of_learning.plan.revision_template import RevisionTemplate
from shape_of_learning.plan.step_rules import StepRule

OFFERED = OfferedSteps("org/model", "", RevisionTemplate("step{step}"), StepRule("log"), 100)
ENTRY = """
tiny:
  role: decoder
  layers: 2
  hidden_size: 32
  repository: org/model
  training: {revision: "step{step}", tokens_per_step: 100, steps: STEPS}
"""


def weights(content: str) -> WeightListing:
    return WeightListing(
        f"{content:0>40}", {"model.safetensors": WeightFile(7, f"sha256:{content}")}
    )


def locked(step: int, listed: WeightListing) -> LockedRevision:
    return LockedRevision("org/model", f"step{step}", step=step, tokens=100 * step, listed=listed)


LOCK = Lock(
    curve={"step0": "ok", "step1": "same weights as step 0", "step8": "missing"},
    chosen={str(OFFERED): ["step0", "step1", "step8"]},
    revisions={
        "step0": locked(0, weights("a")),
        "step1": locked(1, weights("a")),
        "step8": locked(8, WeightListing(problem="missing")),
    },
    mains={"org/model": weights("z")},
    tokenizer=LockedRevision("org/words", "main", listed=WeightListing("c" * 40)),
)


def model(tmp_path: Path, steps: str):
    (tmp_path / "models").mkdir(exist_ok=True)
    (tmp_path / "models" / "tiny.yaml").write_text(ENTRY.replace("STEPS", steps))
    return read_models(read_entries(tmp_path / "models"), ["tiny"])["tiny"]


def planned(tmp_path: Path, steps: str, lock: Lock):
    """The curve that a plan makes where nobody can be asked."""
    write_lock(tmp_path / "tiny.yaml", lock)
    entry = model(tmp_path, steps)
    return curve_of(entry, tmp_path / "tiny.yaml", tmp_path / "t.csv", unreachable="no network")


def without_tokenizer(lock: Lock) -> Lock:
    return replace(lock, tokenizer=None)


def test_a_lock_that_is_written_is_read_again(tmp_path):
    write_lock(tmp_path / "lock.yaml", LOCK)
    assert read_lock(tmp_path / "lock.yaml") == LOCK
    before = (tmp_path / "lock.yaml").read_bytes()
    write_lock(tmp_path / "lock.yaml", LOCK)
    assert (tmp_path / "lock.yaml").read_bytes() == before


def test_no_lock_is_none(tmp_path):
    assert read_lock(tmp_path / "lock.yaml") is None


@pytest.mark.parametrize("content", ["[", "- 1", "revisions: 3", "curve: {}\nrevisions: {a: {}}"])
def test_a_damaged_lock_is_one_sentence(tmp_path, content):
    (tmp_path / "lock.yaml").write_text(content)
    with pytest.raises(InputError, match=r"lock\.yaml is no lock file .*delete it") as caught:
        read_lock(tmp_path / "lock.yaml")
    assert "\n" not in str(caught.value)


def test_a_table_is_that_of_a_lock_or_not(tmp_path):
    write_integrity_table(tmp_path / "t.csv", LOCK)
    assert integrity_table_is(tmp_path / "t.csv", LOCK)
    assert not integrity_table_is(tmp_path / "t.csv", replace(LOCK, curve={"step0": "ok"}))
    (tmp_path / "t.csv").write_text("")
    assert not integrity_table_is(tmp_path / "t.csv", LOCK)


def test_a_lock_is_enough_to_plan_and_to_judge(tmp_path):
    curve = planned(tmp_path, "[0, 1, 8]", without_tokenizer(LOCK))
    assert curve.unresolved == ""
    assert curve.verdicts == LOCK.curve
    assert [each.name for each in curve.measured(flagged=False)] == ["step0"]
    assert [each.name for each in curve.measured(flagged=True)] == ["step0", "step1"]
    assert curve.checkpoints[0].commit == LOCK.revisions["step0"].listed.commit


def test_steps_by_rule_stay_those_that_were_chosen(tmp_path):
    curve = planned(tmp_path, "log", without_tokenizer(LOCK))
    assert [each.step for each in curve.checkpoints] == [0, 1, 8]
    assert [each.tokens for each in curve.checkpoints] == [0, 100, 800]


def test_another_rule_has_to_ask_and_says_what_to_do_if_it_cannot(tmp_path):
    with pytest.raises(InputError, match=r"no network; restore .*tiny\.yaml, or list the steps"):
        planned(tmp_path, "{linear: 3}", without_tokenizer(LOCK))


def test_fewer_steps_need_nobody_and_forget_no_pin(tmp_path):
    curve = planned(tmp_path, "[1, 8]", without_tokenizer(LOCK))
    assert curve.verdicts == {"step1": "ok", "step8": "missing"}
    lock = read_lock(tmp_path / "tiny.yaml")
    assert list(lock.curve) == ["step1", "step8"]
    assert set(lock.revisions) == set(LOCK.revisions)


def test_a_step_that_no_lock_knows_is_planned_unchecked_where_nobody_can_be_asked(tmp_path):
    curve = planned(tmp_path, "[0, 99]", without_tokenizer(LOCK))
    assert curve.unresolved == "no network"
    assert set(curve.verdicts.values()) == {"ok"}


def test_a_table_that_is_there_follows_the_curve(tmp_path):
    write_integrity_table(tmp_path / "t.csv", LOCK)
    planned(tmp_path, "[0, 8]", without_tokenizer(LOCK))
    assert integrity_table_is(tmp_path / "t.csv", read_lock(tmp_path / "tiny.yaml"))


def test_offered_steps_that_are_listed_are_found_by_their_pattern():
    branches = ["step-5k-token-10B", "step-10k-token-21B", "main", "step-15k-token-32B"]
    pattern = RevisionTemplate("step-{kilosteps}k-token-{gigatokens}B")
    offered = OfferedSteps("org/model", "", pattern, (5000, 15000, 99000), None)
    assert offered.choose(branches) == ["step-5k-token-10B", "step-15k-token-32B"]
    described = offered.checkpoint("step-15k-token-32B")
    assert (described.step, described.tokens) == (15000, 32 * 10**9)
