"""Digests of tensors: the same for the same weights, whatever the files are like."""

import hashlib
import json
import pickle
import random
import struct

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from shape_of_learning.checkpoints.tensor_digests import (
    COLUMNS,
    read_tensor_digests,
    write_tensor_digests,
)
from shape_of_learning.checkpoints.tensor_hashing import TYPES, tensor_digests, weight_files
from shape_of_learning.errors import InputError
from tiny_models import save_tiny_model

WHOLE, PICKLE = "model.safetensors", "pytorch_model.bin"


def tensors(seed: int = 0) -> dict[str, torch.Tensor]:
    """One of each type that both formats can hold, empty, scalar, strided and longer than a block."""
    generator = torch.Generator().manual_seed(seed)
    base = torch.randn(7, 5, generator=generator)
    every = {name: (base * 20).to(getattr(torch, name)) for name in TYPES}
    return every | {
        'a,b "c"\n': base[:, 1:3].clone(),
        "empty": torch.zeros(0, 3),
        "long": torch.randn(700, 600, generator=generator),
        "scalar": torch.tensor(1.5, dtype=torch.bfloat16),
        "transposed": base.T,
    }


def contiguous(each: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.contiguous() for name, tensor in each.items()}


def save_shards(folder, each, suffix: str, count: int, seed: int = 0) -> None:
    """Spread tensors over shards at random."""
    order = sorted(each)
    random.Random(seed).shuffle(order)
    shards: dict[str, dict] = {}
    for number, name in enumerate(order):
        shard = f"part-{number % count}.{suffix}"
        shards.setdefault(shard, {})[name] = each[name]
    stem = {"safetensors": "model.safetensors", "bin": "pytorch_model.bin"}[suffix]
    folder.mkdir()
    for shard, held in shards.items():
        save = torch.save if suffix == "bin" else lambda h, p: save_file(contiguous(h), p)
        save(held, folder / shard)
    placed = {name: shard for shard, held in shards.items() for name in held}
    (folder / f"{stem}.index.json").write_text(json.dumps({"weight_map": placed}))


@pytest.fixture
def whole(tmp_path):
    folder = tmp_path / "whole"
    folder.mkdir()
    save_file(contiguous(tensors()), folder / WHOLE)
    return folder


def test_a_digest_is_that_of_the_bytes_in_c_order(whole):
    found = tensor_digests(whole)
    values = np.asarray(tensors()["transposed"], dtype="<f4", order="C")
    digest = hashlib.sha256(values.tobytes(order="C")).hexdigest()
    assert found["transposed"] == ("F32", "5x7", digest)
    assert found["scalar"] == ("BF16", "", hashlib.sha256(b"\xc0\x3f").hexdigest())
    assert found["empty"] == ("F32", "0x3", hashlib.sha256(b"").hexdigest())
    assert {found[name][0] for name in TYPES} == set(TYPES.values())


@pytest.mark.parametrize("threads", [1, 4])
def test_neither_format_nor_shards_nor_threads_nor_metadata_change_it(tmp_path, whole, threads):
    expected = tensor_digests(whole)
    save_file(dict(reversed(contiguous(tensors()).items())), whole / WHOLE, {"epoch": "7"})
    assert tensor_digests(whole, threads) == expected
    for suffix, count in [("safetensors", 3), ("bin", 1), ("bin", 4)]:
        folder = tmp_path / f"{suffix}{count}"
        save_shards(folder, tensors(), suffix, count)
        assert tensor_digests(folder, threads) == expected
    # torch cannot read all types in its old format, which checkpoints of that time are in.
    old = {name: tensors()[name] for name in ("float32", "float16", "bfloat16", "int64", "long")}
    torch.save(old, tmp_path / PICKLE, _use_new_zipfile_serialization=False)
    assert tensor_digests(tmp_path, threads) == {name: expected[name] for name in old}


@pytest.mark.parametrize("bit", [0, -1])
def test_a_single_bit_changes_the_digest_of_its_tensor_alone(whole, bit):
    before = tensor_digests(whole)
    content = bytearray((whole / WHOLE).read_bytes())
    start = 8 + struct.unpack("<Q", content[:8])[0]
    content[start if bit == 0 else -1] ^= 1
    (whole / WHOLE).write_bytes(content)
    after = tensor_digests(whole)
    assert sum(before[name] != after[name] for name in before) == 1


@pytest.mark.parametrize("name", ["gpt_neox", "bert", "llama"])
def test_what_the_library_writes_is_digested_as_torch_sees_it(tmp_path, name):
    save_tiny_model(tmp_path, name, head=True)
    found = tensor_digests(tmp_path)
    for key, tensor in load_file(tmp_path / WHOLE).items():
        digest = hashlib.sha256(tensor.numpy().tobytes()).hexdigest()
        assert found.pop(key) == ("F32", "x".join(map(str, tensor.shape)), digest)
    assert not found


def test_a_whole_file_goes_before_shards_and_safetensors_before_pickles(tmp_path, whole):
    save_shards(tmp_path / "shards", tensors(1), "safetensors", 2)
    torch.save(tensors(2), tmp_path / "shards" / PICKLE)
    assert tensor_digests(tmp_path / "shards")["long"] != tensor_digests(whole)["long"]
    first = weight_files(tmp_path / "shards")
    assert [path.name for path in first] == ["part-0.safetensors", "part-1.safetensors"]
    (whole / WHOLE).rename(tmp_path / "shards" / WHOLE)
    assert weight_files(tmp_path / "shards") == [tmp_path / "shards" / WHOLE]


def test_a_table_that_is_written_is_read_again(tmp_path, whole):
    found = tensor_digests(whole)
    write_tensor_digests(tmp_path / "t.csv", found)
    assert read_tensor_digests(tmp_path / "t.csv") == found
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[0] == "tensor,dtype,shape,sha256"
    assert any(line.startswith("long,F32,700x600,") for line in lines)
    assert any(line.startswith("scalar,BF16,,") for line in lines)
    assert list(read_tensor_digests(tmp_path / "t.csv")) == sorted(found)


ROW = f"a,F32,2x3,{'0' * 64}\n"


@pytest.mark.parametrize(
    "rows",
    [
        "",
        ROW + ROW,
        ROW.replace("2x3", "2x"),
        ROW.replace("2x3", "-2x3"),
        ROW.replace("F32", ""),
        ROW.replace("F32", "f32"),
        ROW.replace("0\n", "\n"),
        ROW.replace("0\n", "g\n"),
        ROW[:-10],
        "a,F32\n",
    ],
)
def test_a_damaged_table_is_one_sentence(tmp_path, rows):
    (tmp_path / "t.csv").write_text(",".join(COLUMNS) + "\n" + rows)
    with pytest.raises(InputError, match=r"t\.csv .*; delete it and run again"):
        read_tensor_digests(tmp_path / "t.csv")


class Harmful:
    def __reduce__(self):
        return print, ("this code ran",)


def header(**entry) -> bytes:
    text = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | entry})
    return struct.pack("<Q", len(text)) + text.encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 16,
        struct.pack("<Q", 1 << 60) + b"{}",
        header() + b"1234567",
        header() + b"123456789",
        header(shape=[3]) + b"12345678",
        header(data_offsets=[-8, 0]) + b"12345678",
        header(data_offsets=[0, 1 << 40]) + b"12345678",
        header(dtype="F31") + b"12345678",
        struct.pack("<Q", 2) + b"[]",
    ],
)
def test_damaged_safetensors_are_one_sentence(tmp_path, content):
    (tmp_path / WHOLE).write_bytes(content)
    with pytest.raises(InputError, match=r"model\.safetensors holds no weights that can be read"):
        tensor_digests(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04 cut", pickle.dumps(Harmful()), pickle.dumps({"a": 1}), pickle.dumps([1])],
)
def test_damaged_pickles_are_one_sentence_and_run_nothing(tmp_path, capsys, content):
    (tmp_path / PICKLE).write_bytes(content)
    with pytest.raises(
        InputError, match=r"hold no tensor|holds no weights that can be read"
    ) as caught:
        tensor_digests(tmp_path)
    assert "\n" not in str(caught.value)
    assert "this code ran" not in capsys.readouterr().out


OUTSIDE = [
    "../a.safetensors",
    "/a.safetensors",
    "b/a.safetensors",
    "",
    "..",
    "a\0",
    "C:a",
    "b\\a",
    7,
]


@pytest.mark.parametrize("shard", OUTSIDE)
def test_an_index_that_leads_out_of_its_folder_is_refused(tmp_path, shard):
    index = {"weight_map": {"a": shard}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match=r"is no index of shards .*no file beside it"):
        tensor_digests(tmp_path)


@pytest.mark.parametrize("content", ["[", "[]", "{}", '{"weight_map": {}}', '{"weight_map": [1]}'])
def test_a_damaged_index_is_one_sentence(tmp_path, content):
    (tmp_path / "model.safetensors.index.json").write_text(content)
    with pytest.raises(InputError, match="is no index of shards"):
        tensor_digests(tmp_path)


def test_shards_that_contradict_each_other_are_refused(tmp_path):
    save_shards(tmp_path / "m", tensors(), "safetensors", 2)
    held = contiguous(tensors())
    save_file({"long": held["long"]}, tmp_path / "m" / "part-0.safetensors")
    save_file({"long": held["long"] + 1}, tmp_path / "m" / "part-1.safetensors")
    with pytest.raises(InputError, match="different tensors called `long`"):
        tensor_digests(tmp_path / "m")


def test_missing_weights_are_one_sentence(tmp_path):
    with pytest.raises(InputError, match="holds no weights: none of"):
        tensor_digests(tmp_path)
    save_shards(tmp_path / "m", tensors(), "safetensors", 2)
    (tmp_path / "m" / "part-1.safetensors").unlink()
    with pytest.raises(InputError, match=r"part-1\.safetensors holds no weights that can be read"):
        tensor_digests(tmp_path / "m")
