"""What a checkpoint was when it came, and whether it still is."""

import json
import os
import shutil
from pathlib import Path

import pytest

from shape_of_learning.checkpoints.checkpoint_record import (
    RECORD,
    changed_file,
    file_entry,
    read_record,
    refuse_changed,
    write_record,
)
from shape_of_learning.checkpoints.tensor_hashing import checked_tensors, tensor_digests
from shape_of_learning.errors import InputError
from tiny_models import save_tiny_model


@pytest.fixture(params=["copy", "digests"])
def kept(request, tmp_path) -> tuple[Path, Path]:
    """A checkpoint, and a receipt: a copy of the record, or digests of those of all steps."""
    folder = save_tiny_model(tmp_path / "step7", "gpt_neox")
    write_record(folder, {path.name: file_entry(path) for path in folder.iterdir()}, step=7)
    receipt = tmp_path / "receipt.json"
    if request.param == "copy":
        shutil.copy(folder / RECORD, receipt)
    else:
        digest = file_entry(folder / RECORD)["sha256"]
        receipt.write_text(json.dumps({"step0": "0" * 64, "step7": digest}))
    return folder, receipt


def changed(file: Path) -> None:
    """Turn a bit, and leave size and time."""
    before, content = file.stat(), bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def refusal(folder: Path, receipt: Path) -> str:
    with pytest.raises(InputError) as caught:
        checked_tensors(folder, receipt)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_as_it_came_is_used(kept):
    folder, receipt = kept
    for threads in (1, 3):
        refuse_changed(folder, receipt, threads)
    (folder / "a note").write_text("beside it")
    assert checked_tensors(folder, receipt) == tensor_digests(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_bit_a_cut_and_a_missing_file_are_named(kept, name):
    folder, receipt = kept
    good = (folder / name).read_bytes()
    expected = file_entry(folder / name)
    changed(folder / name)
    found = file_entry(folder / name)["sha256"]
    said = refusal(folder, receipt)
    assert f"{folder / name} is not what it was when it came" in said
    assert (
        f"expected {len(good)} bytes with sha256:{expected['sha256']}, found {len(good)} with"
        in said
    )
    assert f"sha256:{found})" in said
    assert changed_file(folder, read_record(folder), 3) == name
    (folder / name).write_bytes(good[:-1])
    assert f"found {len(good) - 1} with" in refusal(folder, receipt)
    (folder / name).unlink()
    assert "found no such file" in refusal(folder, receipt)


def test_another_record_is_not_the_receipts(kept):
    """A checkpoint that is whole, but not the one that this run has a receipt of."""
    folder, receipt = kept
    changed(folder / "model.safetensors")
    (folder / RECORD).unlink()
    write_record(folder, {path.name: file_entry(path) for path in folder.iterdir()}, step=7)
    assert f"{folder} holds another checkpoint than {receipt} says" in refusal(folder, receipt)


@pytest.mark.parametrize("record", [None, "", "[]", '{"files": []}', '{"files": {"../x": {}}}'])
def test_a_record_that_is_none_is_one_sentence(kept, record):
    folder, receipt = kept
    (folder / RECORD).unlink()
    if record is not None:
        (folder / RECORD).write_text(record)
    assert f"{folder} is gone, or its {RECORD} is damaged" in refusal(folder, receipt)


@pytest.mark.parametrize("content", [None, "", "[]", "7", "{}", '{"step8": "a"}', "\xff"])
def test_a_receipt_that_is_none_is_one_sentence(kept, content):
    folder, receipt = kept
    receipt.unlink()
    if content is not None:
        receipt.write_text(content, encoding="latin-1")
    assert f"{receipt} is missing or damaged; delete it and run again" in refusal(folder, receipt)
