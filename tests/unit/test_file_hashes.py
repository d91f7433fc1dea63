"""Files of a user are hashed once, and again when they have changed."""

import hashlib
import json
import os
import shutil
import struct
import time

import numpy as np
import pytest
import torch
import transformers as hf

import shape_of_learning.file_hashes as module
import tiny_models as tiny
from shape_of_learning.checkpoints.weight_files import list_checkpoint_files
from shape_of_learning.file_hashes import SMALL_BYTES, remember_sha256

SIZE = 4 * SMALL_BYTES


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache of the user."""

    def assets(library: str, namespace: str):
        (tmp_path / "cache").mkdir(exist_ok=True)
        return tmp_path / "cache"

    monkeypatch.setattr("huggingface_hub.cached_assets_path", assets)
    return tmp_path / "cache"


@pytest.fixture
def reads(monkeypatch):
    """A list of the files that are read for their hash."""
    files = []

    def compute_sha256(path):
        files.append(path)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(module, "compute_sha256", compute_sha256)
    return files


@pytest.fixture
def file(tmp_path):
    """A file that was last written a while ago."""
    path = tmp_path / "weights.bin"
    path.write_bytes(np.random.default_rng(0).bytes(SIZE))
    time.sleep(2 * module.TICK_SECONDS)
    return path


def hash_file(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_is_read_once(file, reads):
    for _ in range(3):
        assert remember_sha256(file) == hash_file(file)
    assert len(reads) == 1
    (file.parent / "link").symlink_to(file)
    assert remember_sha256(file.parent / "link") == hash_file(file)
    assert len(reads) == 1


def test_a_changed_file_of_equal_time_and_size_is_read_again(file):
    first, status = remember_sha256(file), file.stat()
    for place in (0, SIZE // 2 + 1, SIZE - 1):
        with file.open("r+b") as stream:
            stream.seek(place)
            byte = stream.read(1)
            stream.seek(place)
            stream.write(bytes([byte[0] ^ 1]))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert remember_sha256(file) == hash_file(file) != first
    first = remember_sha256(file)
    other = file.with_name("other")  # another file with its name, size and time
    other.write_bytes(bytes(SIZE))
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(file)
    assert remember_sha256(file) == hash_file(file) != first


def test_the_hash_of_a_file_that_has_just_changed_is_not_remembered(tmp_path, reads):
    path = tmp_path / "weights.bin"
    for number in range(20):
        path.write_bytes(bytes([number]) * SIZE)
        assert remember_sha256(path) == hash_file(path)


@pytest.mark.parametrize("content", ["", "nonsense", "1 2 3 4\n" + "0" * 63, "\0"])
def test_a_damaged_record_is_not_used(file, cache, content, reads):
    remember_sha256(file)
    (record,) = cache.iterdir()
    record.write_text(content)
    assert remember_sha256(file) == hash_file(file)
    assert len(reads) == 2


def test_without_a_writable_cache_files_are_read_each_time(file, monkeypatch, reads):
    def assets(library: str, namespace: str):
        raise PermissionError("read-only")

    monkeypatch.setattr("huggingface_hub.cached_assets_path", assets)
    for _ in range(2):
        assert remember_sha256(file) == hash_file(file)
    assert len(reads) == 2


def list_hashes(folder) -> list[str]:
    return [f"{file.name} {remember_sha256(file)}" for file in list_checkpoint_files(folder)]


def test_each_tensor_counts_and_a_copy_has_the_same_hashes(tmp_path):
    """The file is larger than the 64 KiB that are always read; one tensor after another is changed."""
    config = tiny.CONFIGURATIONS["gpt_neox"]()
    config.num_hidden_layers = 6
    folder = tmp_path / "model"
    hf.GPTNeoXForCausalLM(config).save_pretrained(folder)
    tiny.save_tokenizer(folder)
    weights = folder / "model.safetensors"
    assert weights.stat().st_size > SMALL_BYTES
    first, status = list_hashes(folder), weights.stat()
    shutil.copytree(folder, tmp_path / "copy")
    assert list_hashes(tmp_path / "copy") == first
    whole, identities = weights.read_bytes(), {tuple(first)}
    start = 8 + struct.unpack("<Q", whole[:8])[0]
    ends = {
        n: tensor["data_offsets"][1]
        for n, tensor in json.loads(whole[8:start]).items()
        if "dtype" in tensor
    }
    assert len(ends) == 76
    for end in ends.values():
        last = start + end - 1
        content = whole[:last] + bytes([whole[last] ^ 1]) + whole[last + 1 :]
        with weights.open("r+b") as stream:
            stream.write(content)
        os.utime(weights, ns=(status.st_atime_ns, status.st_mtime_ns))
        identities.add(tuple(list_hashes(folder)))
    assert weights.stat().st_mtime_ns == status.st_mtime_ns
    assert len(identities) == 1 + len(ends)
    weights.write_bytes(whole)
    assert list_hashes(folder) == first


def test_weights_in_either_format_and_adapters_count(tmp_path):
    folder = tiny.save_tiny_model(tmp_path / "model", "llama")
    pickle, adapter = folder / "pytorch_model.bin", folder / "adapter_model.safetensors"
    torch.save({"a": torch.zeros(3)}, pickle)
    names = {file.name for file in list_checkpoint_files(folder)}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    assert pickle.name not in names  # it is not loaded
    adapter.write_bytes((folder / "model.safetensors").read_bytes())
    (folder / "model.safetensors").unlink()
    names = {file.name for file in list_checkpoint_files(folder)}
    assert {pickle.name, adapter.name} <= names
