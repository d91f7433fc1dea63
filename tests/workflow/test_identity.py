"""A finished run: a result belongs to what it was computed from, and damage to it is refused."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import tiny_runs
from checkouts import Checkout, check_out

TINY = ("--configfile", "tiny.yaml", "--cores", "2")
CHANGED = ("--configfile", "tiny.yaml", "changes.yaml", "--cores", "2")
FORWARD_PASS, MEASURE = "dump_embeddings", "measure"
EDITS = "results/tables/edits/tiny.csv"
EDITING = {
    "fitting_windows": 8,
    "evaluation_windows": 8,
    "most_blocks": 1,
    "kinds": ["dropped"],
    "distillation_steps": 1,
    "distillation_windows": 2,
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Checkout:
    """A run that has ended well and keeps its hidden states. Tests work on copies with their times."""
    checkout = check_out(tmp_path_factory.mktemp("finished") / "checkout")
    settings = tiny_runs.set_up(checkout)
    checkout.write("tiny.yaml", {**settings, "embeddings": {"keep": True}})
    checkout.snakemake(*TINY, "--quiet", "rules")
    assert checkout.planned(*TINY) == {}
    return checkout


@pytest.fixture
def copy(finished, tmp_path) -> Checkout:
    subprocess.run(["cp", "-a", finished.folder, tmp_path / "copy"], check=True)
    return Checkout(tmp_path / "copy")


def test_a_folder_that_is_copied_with_its_times_or_moved_has_nothing_to_do(copy, tmp_path):
    assert copy.planned(*TINY) == {}
    shutil.move(copy.folder, tmp_path / "elsewhere")
    assert Checkout(tmp_path / "elsewhere").planned(*TINY) == {}


def test_comments_and_docstrings_are_no_reason(copy):
    for file in (copy.folder / "workflow").rglob("*.py"):
        source = file.read_text().replace('"""', '"""Indeed: ', 1)
        file.write_text(f"{source}\n# A comment.\n")
    assert copy.planned(*TINY) == {}


def test_an_edited_formula_is_measured_again_and_nothing_is_run_again(copy):
    file = copy.folder / "workflow/shape_of_learning/estimators/anisotropy.py"
    file.write_text(f"{file.read_text()}\nADDED_BY_A_TEST = 1\n")
    planned = copy.planned(*TINY)
    assert planned[MEASURE] > 0
    assert FORWARD_PASS not in planned
    assert "pretrain_model" not in planned


def test_what_changes_no_number_is_no_reason_and_what_does_is(copy):
    def planned(**changes: object) -> dict[str, int]:
        copy.write("changes.yaml", changes)
        return copy.planned(*CHANGED)

    mirrors = {"urls": ["export.xml", "https://example.org/export.xml"]}
    harmless = {"corpus": {"sources": {"export": mirrors}}, "forward": {"threads": 2}}
    # But for the record of what was configured.
    assert {*planned(**harmless)} <= {"provenance", "all", "total"}
    assert planned(sampling={"windows": 31})[FORWARD_PASS] == 2
    # Another estimator, or other tokens.
    for changes in ({"estimators": ["anisotropy", "two_nn", "mle"]}, {"first_token": "drop"}):
        more = planned(measurement=changes)
        assert FORWARD_PASS not in more
        assert more[MEASURE] > 0


def test_one_changed_field_of_a_job_is_a_reason(copy):
    """Snakemake compares a job that is a named tuple; it would silently ignore a dataclass."""
    folder = copy.folder / "workflow/papers/shape_of_learning"
    for name, old, new in (
        ("claims.yaml", "above: 0.01}", "above: 0.011}"),
        ("paper.yaml", "{measures} by relative depth", "{measures} beside relative depth"),
    ):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))
    copy.write("changes.yaml", {"bad_checkpoints": "flag"})
    assert {"judge_claims", "draw_figure", "judge_checkpoints"} <= rules_with_changed_params(copy)
    copy.write("changes.yaml", {"measurement": {"neighbours": 130}})
    assert {MEASURE, "measure_controls"} <= rules_with_changed_params(copy)
    # A job shows a change of its own only while those before it have none.
    recipe = {**tiny_runs.RECIPE, "learning_rate": 0.004}
    for rule, settings, model in (
        ("clean_corpus", {"corpus": {"first_bytes": 10**6}}, {}),
        ("pretrain_model", {}, {"pretraining": recipe}),
        ("write_findings", {}, {"label": "Small"}),
    ):
        copy.write("config/models/tiny.yaml", {"tiny": {**tiny_runs.MODEL, **model}})
        copy.write("changes.yaml", settings)
        assert rule in rules_with_changed_params(copy)


def test_one_changed_field_of_the_explorer_or_of_the_editing_of_blocks_is_a_reason(copy):
    def rules(target: str, *only: str) -> set[str]:
        return rules_with_changed_params(copy, *only, "--", target)

    copy.write("config/models/tiny.yaml", {"tiny": {**tiny_runs.MODEL, "label": "Small"}})
    copy.write("changes.yaml", {})
    only = "--allowed-rules", "draw_explorer"  # findings name models by their labels, too
    assert rules("results/explorer.html", *only) == {"draw_explorer"}
    copy.write("changes.yaml", {"block_editing": EDITING})
    copy.snakemake(EDITS, *CHANGED, "--quiet", "rules")
    assert copy.planned(EDITS, *CHANGED) == {}
    for changed in ({"evaluation_windows": 9}, {"distillation_steps": 2}):
        copy.write("changes.yaml", {"block_editing": {**EDITING, **changed}})
        assert rules(EDITS) == {"edit_blocks"}


def rules_with_changed_params(copy: Checkout, *options: str) -> set[str]:
    """The rules of jobs that run again because what they are told has changed."""
    said = copy.snakemake(*CHANGED, "--dry-run", *options)
    jobs = re.split(r"^(?:local)?rule ", said, flags=re.MULTILINE)
    return {job.partition(":")[0] for job in jobs if "Params have changed" in job}


def test_other_weights_of_ones_own_with_an_old_time_are_a_reason(copy):
    saved = copy.folder / "results/pretrained/tiny/step1"
    shutil.copytree(saved, copy.folder / "mine")
    copy.write("config/models/own.yaml", {"own": {"path": "mine"}})
    copy.write("changes.yaml", {"models": ["own"]})
    target = ("results/losses/own/main.csv", *CHANGED)
    copy.snakemake(*target, "--quiet", "rules")
    assert copy.planned(*target) == {}
    shutil.move(copy.folder / "mine", copy.folder / "elsewhere")
    copy.write("config/models/own.yaml", {"own": {"path": "elsewhere"}})
    assert copy.planned(*target) == {}
    weights = copy.folder / "elsewhere/model.safetensors"
    replaced(weights, flipped(weights.read_bytes()))
    assert copy.planned(*target)[FORWARD_PASS] == 1


def replaced(file: Path, content: bytes) -> None:
    """Give a file another content and its old time."""
    before = file.stat()
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


# What was damaged since it was written is refused where it is used.


@pytest.mark.parametrize(
    ("file", "damage", "target"),
    [
        ("layer_1.h5", flipped, "isotropy/layer_1.csv"),
        ("layer_0.h5", lambda content: content[: len(content) // 2], "dimension/layer_0.csv"),
    ],
)
def test_a_damaged_file_is_refused_by_name(copy, file, damage, target):
    target = f"results/measurements/tiny/step1/{target}"
    (copy.folder / target).unlink()
    states = copy.folder / "results/embeddings/tiny/step1" / file
    replaced(states, damage(states.read_bytes()))
    # Times of what lies between are no reason: nothing else shall be made anew.
    said = copy.snakemake(*TINY, "--rerun-triggers", "params", "--", target, succeeds=False)
    (sentence,) = {line for line in said.splitlines() if line.startswith("ERROR: ")}
    assert file in sentence
    assert re.search(r"delete .* run again|run again .*delete", sentence)
    assert "Traceback" not in said
    assert not (copy.folder / target).exists()
