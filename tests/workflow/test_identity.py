"""A finished run: a result belongs to what it was computed from, and damage to it is refused."""

import ast
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import tiny_runs
from checkouts import Checkout, check_out
from shape_of_learning import anisotropy
from shape_of_learning.random_streams import random_stream

TINY = ("--configfile", "tiny.yaml", "--cores", "2")
CHANGED = ("--configfile", "tiny.yaml", "changes.yaml", "--cores", "2")
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
        return copy.planned(*CHANGED)

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


# Other tokens are measured without another forward pass.

MEASURED = ("results/tables/measurements.csv", *CHANGED)


def select(checkout: Checkout, batch_vectors: int = 80, **selection: str) -> None:
    """Of a vocabulary of 300, about 110 token types occur."""
    measurement = {"batch_vectors": batch_vectors, "neighbours": 20, **selection}
    checkout.write("changes.yaml", {"measurement": measurement})


@pytest.mark.parametrize(
    "selection",
    [
        {"first_token": "drop"},
        {"token_types": "one", "first_token": "drop", "special_tokens": "drop"},
    ],
)
def test_another_selection_is_no_forward_pass(copy, selection):
    select(copy, **selection)
    planned = copy.planned(*MEASURED)
    assert FORWARD_PASS not in planned
    assert planned[MEASURE] == 8  # two checkpoints, two layers, two families


def test_one_vector_of_each_token_type_is_measured(copy):
    select(copy, token_types="one")
    copy.snakemake(*MEASURED)
    rows = copy.rows(MEASURED[0])
    values = {(r["revision"], r["layer"]): r for r in rows if r["estimator"] == "anisotropy"}
    assert len(values) == 4
    chosen = set()
    for (revision, layer), row in values.items():
        with h5py.File(
            copy.folder / f"results/embeddings/tiny/{revision}/layer_{layer}.h5"
        ) as file:
            token_ids, vectors = file["token_ids"][()], file["embeddings"][()]
        types = np.unique(token_ids)
        assert int(row["n"]) == len(types)
        # Of each type the one that a shuffle of all tokens puts first.
        order = random_stream(0, "token types").permutation(len(token_ids))
        picked = sorted(order[np.flatnonzero(token_ids[order] == t)[0]] for t in types)
        chosen.add(tuple(picked))
        assert float(row["value"]) == pytest.approx(anisotropy(vectors[picked]), rel=1e-9)
    assert len(chosen) == 1


def test_too_few_token_types_are_refused_with_what_to_do(copy):
    select(copy, batch_vectors=1000, token_types="one")
    said = copy.snakemake(*MEASURED, succeeds=False)
    assert "fewer than one batch of 1000; raise `sampling.windows` or lower" in said
