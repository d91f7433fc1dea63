"""Manifests of saved checkpoints let an audit of their folders find copies and changes."""

import json
import shutil

import pytest
import safetensors.torch
import torch
from typer.testing import CliRunner

from hub_fetching import save_model
from shape_of_learning.checkpoints.manifest import (
    MANIFEST,
    compare_with_manifest,
    read_manifest,
    write_manifest,
)
from shape_of_learning.command_line import app
from shape_of_learning.errors import InputError

STEPS = (1, 2, 3)


@pytest.fixture
def run(tmp_path):
    """Three steps of a training, each with a manifest."""
    for step in STEPS:
        write_manifest(
            save_model(tmp_path / f"checkpoint-{step}", seed=step, form="safetensors"), step
        )
    return tmp_path


def audit(folder):
    """Return the rows of an audit by step, and its exit code."""
    result = CliRunner().invoke(app, ["audit", str(folder), "--json", str(folder / "audit.json")])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    rows = json.loads((folder / "audit.json").read_text())
    return {row["step"]: row for row in rows}, result.exit_code


def edit_weights(folder, change):
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    change(tensors)
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def test_equal_weights_in_another_file_are_as_saved(run):
    rows, code = audit(run)
    assert code == 0
    assert all("as saved" in rows[step]["reason"] for step in STEPS)
    # The file has other bytes, but the same tensors.
    (run / "checkpoint-1/model.safetensors").unlink()
    save_model(run / "checkpoint-1", seed=1, form="shards")
    manifest = read_manifest(run / "checkpoint-1")
    assert manifest.step == 1
    assert compare_with_manifest(run / "checkpoint-1", manifest).changed_names == []


def test_a_changed_tensor_is_named(run):
    names = []

    def change(tensors):
        names.extend(list(tensors)[:2])
        tensors[names[0]].view(-1)[0] += 1e-6 + tensors[names[0]].view(-1)[0].abs()
        del tensors[names[1]]
        tensors["new"] = torch.zeros(2)

    edit_weights(run / "checkpoint-2", change)
    rows, code = audit(run)
    assert code == 1
    assert rows[2]["verdict"] == "changed"
    assert all(name in rows[2]["reason"] for name in (*names, "new"))
    assert [rows[step]["verdict"] for step in (1, 3)] == ["ok", "ok"]


def test_negative_zero_is_no_change(run):
    def negate(tensors):
        first = next(iter(tensors.values())).view(-1)
        first[:3] = 0

    edit_weights(run / "checkpoint-2", negate)
    write_manifest(run / "checkpoint-2", 2)
    edit_weights(
        run / "checkpoint-2", lambda tensors: next(iter(tensors.values())).view(-1)[:3].neg_()
    )
    rows, _ = audit(run)
    assert "as saved" in rows[2]["reason"]


def test_manifests_tell_a_copy_from_its_original(run):
    """Hashes alone cannot tell which of two equal steps is right; manifests do."""
    shutil.copy(run / "checkpoint-1/model.safetensors", run / "checkpoint-3")
    rows, code = audit(run)
    assert code == 1
    assert [rows[step]["verdict"] for step in STEPS] == ["ok", "ok", "same as step 1"]
    # A whole folder, with its manifest.
    shutil.rmtree(run / "checkpoint-3")
    shutil.copytree(run / "checkpoint-2", run / "checkpoint-3")
    rows, code = audit(run)
    assert code == 1
    assert [rows[step]["verdict"] for step in STEPS] == ["ok", "ok", "same as step 2"]


def test_folders_without_a_manifest_or_with_a_damaged_one(run):
    (run / "checkpoint-1" / MANIFEST).unlink()
    (run / "checkpoint-2" / MANIFEST).write_text("{}")
    rows, code = audit(run)
    assert code == 0
    assert "as saved" not in rows[1]["reason"]
    assert MANIFEST in rows[2]["reason"]
    (run / "empty").mkdir()
    with pytest.raises(InputError, match="no weights"):
        write_manifest(run / "empty", 1)
    assert not (run / "empty" / MANIFEST).exists()
