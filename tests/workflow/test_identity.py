"""A result belongs to what it was computed from, not to where it lies."""

import ast
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import tiny_runs
from checkouts import Checkout, check_out

TINY = ("--configfile", "tiny.yaml", "--cores", "2")
FORWARD_PASS, MEASURE = "dump_embeddings", "measure"


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


def edit(checkout: Checkout, change: Callable[[str], str], pattern: str) -> None:
    """Change source files of the workflow."""
    files = sorted((checkout.folder / "workflow").glob(pattern))
    assert files, pattern
    for file in files:
        after = change(file.read_text(encoding="utf-8"))
        ast.parse(after)
        file.write_text(after, encoding="utf-8")


def with_a_statement(source: str) -> str:
    return source + "\nADDED_BY_A_TEST = 1\n"


def with_comments(source: str) -> str:
    return source.replace('"""', '"""Indeed: ', 1) + "\n# A comment.\n"


def test_a_folder_that_is_copied_with_its_times_or_moved_has_nothing_to_do(copy, tmp_path):
    assert copy.planned(*TINY) == {}
    shutil.move(copy.folder, tmp_path / "elsewhere")
    assert Checkout(tmp_path / "elsewhere").planned(*TINY) == {}


def test_a_fresh_clone_beside_its_results_has_nothing_to_do(copy):
    """Scripts and modules have new times there."""
    for file in (copy.folder / "workflow").rglob("*.py"):
        file.touch()
    assert copy.planned(*TINY) == {}


def test_comments_and_docstrings_are_no_reason(copy):
    edit(copy, with_comments, "**/*.py")
    assert copy.planned(*TINY) == {}


def test_an_edited_formula_is_measured_again_and_nothing_is_run_again(copy):
    edit(copy, with_a_statement, "shape_of_learning/estimators/anisotropy.py")
    planned = copy.planned(*TINY)
    assert planned[MEASURE] > 0
    assert FORWARD_PASS not in planned
    assert "pretrain_model" not in planned


def test_what_changes_no_number_is_no_reason_and_what_does_is(copy):
    def planned(**changes: object) -> dict[str, int]:
        copy.write("changes.yaml", changes)
        return copy.planned("--configfile", "tiny.yaml", "changes.yaml", "--cores", "2")

    mirrors = {"urls": ["export.xml", "https://example.org/export.xml"]}
    harmless = {"corpus": {"sources": {"export": mirrors}}, "forward": {"batch_size": 2}}
    # But for the record of what was configured.
    assert {*planned(**harmless)} <= {"write_protocol", "provenance", "all", "total"}
    assert planned(sampling={"windows": 31})[FORWARD_PASS] == 2
    more = planned(measurement={"estimators": ["anisotropy", "two_nn", "mle"]})
    assert FORWARD_PASS not in more
    assert more[MEASURE] > 0


def test_other_weights_of_ones_own_with_an_old_time_are_a_reason(copy):
    saved = copy.folder / "results/pretrained/tiny/step1"
    shutil.copytree(saved, copy.folder / "mine")
    copy.write("config/models/own.yaml", {"own": {"path": "mine"}})
    copy.write("changes.yaml", {"models": ["own"]})
    own = ("--configfile", "tiny.yaml", "changes.yaml", "--cores", "2")
    target = ("results/losses/own/main.csv", *own)
    copy.snakemake(*target, "--quiet", "rules")
    assert copy.planned(*target) == {}
    shutil.move(copy.folder / "mine", copy.folder / "elsewhere")
    copy.write("config/models/own.yaml", {"own": {"path": "elsewhere"}})
    assert copy.planned(*target) == {}
    changed(copy.folder / "elsewhere/model.safetensors")
    assert copy.planned(*target)[FORWARD_PASS] == 1


def changed(file: Path) -> None:
    """Give a file another last byte and its old time."""
    before, content = file.stat(), bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
