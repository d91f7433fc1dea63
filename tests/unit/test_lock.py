"""Lock files, and plans that are made from them."""

from dataclasses import replace
from pathlib import Path

import pytest

import check_checkpoints
from plans import make_run
from shape_of_learning.checkpoints import hub
from shape_of_learning.checkpoints.lock import (
    Listing,
    Lock,
    LockedRevision,
    WeightFile,
    read_lock,
    write_lock,
)
from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.checkpoints.verdict import format_verdict
from shape_of_learning.errors import InputError
from shape_of_learning.files import read_rows
from shape_of_learning.plan.entries import read_entries, read_models
from shape_of_learning.plan.series import resolve_checkpoints
from shape_of_learning.plan.steps import OfferedSteps, RevisionTemplate

OFFERED = OfferedSteps("org/model", "", RevisionTemplate("step{step}"), "log", 100)
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


def make_weights(content: str) -> dict:
    file = WeightFile(bytes=7, hash=f"sha256:{content:0>64}")
    return {"commit": f"{content:0>40}", "files": {"model.safetensors": file}}


def make_revision(step: int, **listing) -> LockedRevision:
    return LockedRevision(repository="org/model", revision=f"step{step}", **listing)


LOCK = Lock(
    chosen={str(OFFERED): ["step0", "step1", "step8"]},
    revisions={
        "step0": make_revision(0, **make_weights("a")),
        "step1": make_revision(1, **make_weights("a")),
        "step8": make_revision(8, problem="missing"),
    },
    mains={"org/model": Listing(**make_weights("f"))},
    shape=SHAPE,
)


def change(lock: Lock, **changes) -> Lock:
    return lock.model_copy(update=changes)


def read_model(tmp_path: Path, steps: str, sizes: str):
    (tmp_path / "models").mkdir(exist_ok=True)
    (tmp_path / "models" / "tiny.yaml").write_text(
        ENTRY.replace("STEPS", steps).replace("KNOWN", KNOWN) + sizes
    )
    return read_models(read_entries(tmp_path / "models"), ["tiny"])["tiny"]


def plan_series(tmp_path: Path, steps: str, lock: Lock, sizes: str = TYPED):
    """Return the series that a plan makes without the Hub."""
    write_lock(tmp_path / "tiny.yaml", lock)
    content = (tmp_path / "tiny.yaml").read_bytes()
    lock = tmp_path / "tiny.yaml"
    series = resolve_checkpoints(
        read_model(tmp_path, steps, sizes), lock, known_failure="no network"
    )
    assert (tmp_path / "tiny.yaml").read_bytes() == content, "planning wrote a lock"
    return series


def test_a_written_lock_is_read_back(tmp_path):
    words = LockedRevision(repository="org/words", revision="main", commit="c" * 40)
    words.small_files["config.json"] = f"git:{'1':0>40}"
    lock = change(LOCK, tokenizer=words)
    write_lock(tmp_path / "lock.yaml", lock)
    assert read_lock(tmp_path / "lock.yaml") == lock
    assert read_lock(tmp_path / "none.yaml") is None


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
    "[",
    "- 1",
    "revisions: 3",
    "",
    "\0",
    "revisions: {}\n" * 2,
    GOOD.replace("a" * 40, "../../../home"),
    GOOD.replace("a" * 40, "4" * 40),  # a number, for YAML
    GOOD.replace(f"    commit: {'a' * 40}\n", ""),
    GOOD.replace(f"sha256:{'b' * 64}", f"md5:{'b' * 32}"),
    GOOD.replace("bytes: 7", "bytes: true"),
    GOOD.replace("  model.safetensors:", "  ../model.safetensors:"),
    GOOD.replace("config.json:", "/etc/passwd:"),
    GOOD.replace("a/b", "a/../../b"),
    GOOD.replace("org/model", "../../org"),
    GOOD.replace("  step0:", "  ..:"),
    GOOD.replace("layers: 2", "depth: 2"),
]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_lock_is_one_sentence(tmp_path, content):
    (tmp_path / "lock.yaml").write_text(GOOD)
    assert read_lock(tmp_path / "lock.yaml").revisions["step0"].subfolder == "a/b"
    assert content != GOOD
    (tmp_path / "lock.yaml").write_text(content)
    with pytest.raises(InputError, match=r"lock\.yaml") as caught:
        read_lock(tmp_path / "lock.yaml")
    assert "\n" not in str(caught.value)


def list_verdicts(series):
    return {
        name: format_verdict(checkpoint.verdict) for name, checkpoint in series.judgements.items()
    }


def test_the_table_of_checkpoints_lists_files_of_the_lock_and_verdicts(tmp_path):
    def write_listing(lock):
        check_checkpoints.main(
            plan_series(tmp_path, "[0, 8]", lock).make_listing_job(), tmp_path / "table.csv"
        )
        return read_rows(tmp_path / "table.csv", check_checkpoints.COLUMNS)

    assert write_listing(LOCK) == [
        ["0", "0", "step0", f"{'a':0>40}", "model.safetensors", "7", f"sha256:{'a':0>64}", "ok"],
        ["8", "800", "step8", "", "", "", "", "missing"],
    ]
    shards = {"2": make_weights("b")["files"], "1": make_weights("a")["files"]}
    files = {name: weight_files["model.safetensors"] for name, weight_files in shards.items()}
    revisions = LOCK.revisions | {"step0": make_revision(0, commit=f"{'a':0>40}", files=files)}
    first, _ = write_listing(change(LOCK, revisions=revisions))
    assert first[4:7] == ["1 2", "14", f"sha256:{'a':0>64} sha256:{'b':0>64}"]


def test_a_lock_is_enough_to_plan_and_to_judge(tmp_path):
    series = plan_series(tmp_path, "[0, 1, 8]", LOCK)
    assert (series.hub_failure, series.is_new) == ("", False)
    assert list_verdicts(series) == {"step0": "ok", "step1": "not yet moved", "step8": "missing"}
    for has_flagged in (False, True):
        assert [
            checkpoint.name
            for checkpoint in series.list_measured_checkpoints(include_flagged=has_flagged)
        ] == ["step0", "step1"]
    # Fewer steps need no answer of the Hub and keep all pins.
    fewer = plan_series(tmp_path, "[1, 8]", LOCK)
    verdicts = {"step1": "known bad: same weights as step 0 (there)", "step8": "missing"}
    assert list_verdicts(fewer) == verdicts
    assert set(fewer.lock.revisions) == set(LOCK.revisions)


@pytest.mark.parametrize("policy", ["skip", "flag"])
def test_a_plan_needs_one_good_checkpoint(tmp_path, policy):
    write_lock(tmp_path / "tiny.yaml", LOCK)
    steps = "[1, 8]" if policy == "skip" else "[8]"  # a missing revision cannot be drawn
    entry = ENTRY.replace("STEPS", steps).replace("KNOWN", KNOWN) + TYPED
    settings = {"models": ["tiny"], "bad_checkpoints": policy}
    run = make_run(settings, tmp_path, entry, locks=tmp_path)
    with pytest.raises(InputError, match=r"model `tiny`: .*\d of its revisions") as error:
        run.list_checkpoints("tiny")
    assert "(missing); correct the entry, or remove it from key `models`" in str(error.value)
    assert ("`bad_checkpoints` to `flag`" in str(error.value)) == (policy == "skip")


def test_a_lock_completes_the_entry_and_must_agree_with_it(tmp_path):
    assert plan_series(tmp_path, "[0, 1]", LOCK, sizes="").model.shape == SHAPE
    unknown = change(LOCK, shape=replace(SHAPE, role=""))
    assert plan_series(tmp_path, "[0]", unknown, "  role: encoder\n").model.shape.role == "encoder"
    for lock, sizes, sentence in (
        (LOCK, "  layers: 3\n", r"`layers` config\.json .* says 2 where the entry says 3"),
        (unknown, "", "add `role: encoder` or `role: decoder`"),
    ):
        with pytest.raises(InputError, match=sentence):
            plan_series(tmp_path, "[0, 1]", lock, sizes)


def test_steps_chosen_by_a_rule_stay_and_another_rule_needs_the_hub(tmp_path):
    series = plan_series(tmp_path, "log", LOCK)
    assert [(checkpoint.step, checkpoint.tokens) for checkpoint in series.checkpoints] == [
        (0, 0),
        (1, 100),
        (8, 800),
    ]
    with pytest.raises(InputError, match="no network; without the Hub its entry must"):
        plan_series(tmp_path, "{linear: 3}", LOCK)


def test_a_main_branch_missing_from_the_lock_is_asked_for_later(tmp_path, monkeypatch):
    """Otherwise a copy of main would stay ok if its lock was written without main."""
    revisions = {
        "step0": make_revision(0, **make_weights("f")),
        "step8": make_revision(8, **make_weights("b")),
    }
    copy = change(LOCK, mains={}, revisions=revisions)
    series = plan_series(tmp_path, "[0, 8]", copy)
    assert set(list_verdicts(series).values()) == {"ok"}

    def answer(places, mains, *, where):
        assert (places, set(mains), where) == ({}, {"org/model"}, "model `tiny`")
        return {}, LOCK.mains

    monkeypatch.setattr(hub, "resolve", answer)
    series = resolve_checkpoints(
        read_model(tmp_path, "[0, 8]", TYPED), tmp_path / "tiny.yaml", say=str
    )
    assert list_verdicts(series) == {"step0": "same weights as main", "step8": "ok"}
    assert series.is_new


def test_a_listed_step_that_the_hub_lacks_is_refused_whatever_the_pattern():
    template = RevisionTemplate("step{step}-tokens{gigatokens}B")
    names = ["main", "step0-tokens0B", "step1000-tokens4B"]
    steps = OfferedSteps("org/model", "", template, [1000, 0], None)
    assert steps.choose_branches(names, "model `m`") == names[1:]
    with pytest.raises(InputError, match=r"model `m`: .*asks for 999, but `org/model` has"):
        replace(steps, step_choice=[0, 999]).choose_branches(names, "model `m`")


def test_a_listed_step_is_found_with_any_number_of_leading_zeros(tmp_path):
    steps = replace(OFFERED, step_choice=[0, 8])
    entry = read_model(tmp_path, "[0, 8]", TYPED)
    assert entry.hub_steps == steps
    names = ["main", "step00", "step000", "step08", "step8", "step80"]
    matches = [revision.revision for revision in steps.name_steps(entry.checkpoints, names)]
    assert matches == ["step00", "step8"], "the written name goes first"
    # The lock is enough to find the names.
    revisions = {f"step00{n}": make_revision(n, **make_weights("a")) for n in (0, 8)}
    revisions = {
        name: revision.model_copy(update={"revision": name}) for name, revision in revisions.items()
    }
    series = plan_series(tmp_path, "[0, 8]", change(LOCK, revisions=revisions))
    assert [(checkpoint.name, checkpoint.step) for checkpoint in series.checkpoints] == [
        ("step000", 0),
        ("step008", 8),
    ]
    assert not series.hub_failure
