"""Digests of tensors are equal for equal weights in any files."""

import hashlib
import json
import os
import pickle
import random
import struct
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from shape_of_learning.checkpoints.record import RECORD, refuse_changed, write_record
from shape_of_learning.checkpoints.tensors import SAMPLED, TYPES, check_tensors, digest_tensors
from shape_of_learning.checkpoints.verdict import distance
from shape_of_learning.checkpoints.weight_evidence import read_tensor_digests, write_tensor_digests
from shape_of_learning.checkpoints.weight_files import list_weight_files
from shape_of_learning.errors import InputError
from tiny_models import save_tiny_model

WHOLE, PICKLE, INDEX = "model.safetensors", "pytorch_model.bin", "model.safetensors.index.json"
UNREADABLE = "holds no weights that can be read"


def tensors(seed: int = 0) -> dict[str, torch.Tensor]:
    """Draw a tensor of each type that both formats can hold; some are empty, scalar, strided or long."""
    generator = torch.Generator().manual_seed(seed)
    base = torch.randn(7, 5, generator=generator)
    every = {str(kind)[6:]: (base.abs() * 20 + 1).to(kind) for kind in TYPES}
    return every | {
        'a,b "c"\n': base[:, 1:3].clone(),
        "empty": torch.zeros(0, 3),
        "long": torch.randn(700, 600, generator=generator),
        "scalar": torch.tensor(1.5, dtype=torch.bfloat16),
        "transposed": base.T,
    }


def make_contiguous(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def save_shards(folder, tensors, suffix: str, count: int) -> None:
    """Spread tensors over shards at random."""
    order = sorted(tensors)
    random.Random(0).shuffle(order)
    shards: dict[str, dict] = {}
    for number, name in enumerate(order):
        shards.setdefault(f"part-{number % count}.{suffix}", {})[name] = tensors[name]
    stem = {"safetensors": "model.safetensors", "bin": PICKLE}[suffix]
    folder.mkdir()
    for shard, shard_tensors in shards.items():
        save = torch.save if suffix == "bin" else lambda h, p: save_file(make_contiguous(h), p)
        save(shard_tensors, folder / shard)
    weight_map = {name: shard for shard, shard_tensors in shards.items() for name in shard_tensors}
    (folder / f"{stem}.index.json").write_text(json.dumps({"weight_map": weight_map}))


@pytest.fixture
def whole(tmp_path):
    folder = tmp_path / "whole"
    folder.mkdir()
    save_file(make_contiguous(tensors()), folder / WHOLE)
    return folder


def test_a_digest_hashes_the_bytes_in_c_order(whole):
    digests = digest_tensors(whole).digests
    values = np.asarray(tensors()["transposed"], dtype="<f4", order="C")
    digest = hashlib.sha256(values.tobytes(order="C")).hexdigest()
    assert digests["transposed"] == ("F32", "5x7", digest)
    assert digests["scalar"] == ("BF16", "", hashlib.sha256(b"\xc0\x3f").hexdigest())
    assert digests["empty"] == ("F32", "0x3", hashlib.sha256(b"").hexdigest())
    assert {digests[str(kind)[6:]][0] for kind in TYPES} == set(TYPES.values())


def test_digests_do_not_depend_on_format_shards_threads_or_metadata(tmp_path, whole):
    digests = digest_tensors(whole)
    save_file(dict(reversed(make_contiguous(tensors()).items())), whole / WHOLE, {"epoch": "7"})
    assert digest_tensors(whole, threads=4) == digests
    for suffix, count in [("safetensors", 3), ("bin", 1), ("bin", 4)]:
        folder = tmp_path / f"{suffix}{count}"
        save_shards(folder, tensors(), suffix, count)
        assert digest_tensors(folder, threads=4) == digests
    # Old checkpoints have the old format of torch, in which it cannot read all types.
    old = {name: tensors()[name] for name in ("float32", "bfloat16", "int64", "long")}
    torch.save(old, tmp_path / PICKLE, _use_new_zipfile_serialization=False)
    assert digest_tensors(tmp_path).digests == {name: digests.digests[name] for name in old}


SIGNED = {str(kind)[6:] for kind in TYPES if kind.is_floating_point or kind.is_complex}
SIGNED -= {"float8_e8m0fnu"}


@pytest.mark.parametrize("name", sorted(SIGNED))
def test_minus_zero_equals_zero_and_other_signs_count(tmp_path, name):
    """Tensors in EleutherAI/pythia#203 differ only in signs of zero."""
    digests = []
    for values in ([0.0, 1.0, -1.0, 0.0], [-0.0, 1.0, -1.0, 0.0], [0.0, 1.0, 1.0, 0.0]):
        tensor = torch.tensor(values).to(getattr(torch, name))
        save_file({"a": tensor}, tmp_path / WHOLE)
        digests.append(digest_tensors(tmp_path).digests["a"])
        torch.save({"a": tensor}, tmp_path / PICKLE)
        (tmp_path / WHOLE).unlink()
        assert digest_tensors(tmp_path).digests["a"] == digests[-1]
        (tmp_path / PICKLE).unlink()
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_values_of_the_largest_matrix_are_kept_for_distances(tmp_path, dtype):
    matrix = torch.randn(40, 30, generator=torch.Generator().manual_seed(0))
    small = {"a": torch.ones(3, 3), "b": torch.ones(5000), "i": torch.ones(90, 90).long()}
    samples = []
    for values in (matrix, matrix * 1.01, torch.flip(matrix, [0, 1])):
        save_file({**small, "m": values.to(getattr(torch, dtype))}, tmp_path / WHOLE)
        digests = digest_tensors(tmp_path)
        write_tensor_digests(tmp_path / "t.csv", digests)
        assert read_tensor_digests(tmp_path / "t.csv") == digests
        assert digests.sampled_name == "m"
        samples.append(digests.sample)
    assert len(samples[0]) == SAMPLED
    places = np.linspace(0, matrix.numel() - 1, SAMPLED).astype(int)
    np.testing.assert_allclose(samples[0], matrix.flatten()[places], rtol=0.01)
    assert distance(samples[0], samples[1]) < 0.02
    assert 0.8 < distance(samples[0], samples[2]) < 1.2


def test_a_single_file_goes_before_shards_and_safetensors_before_pickles(tmp_path, whole):
    folder = tmp_path / "shards"
    save_shards(folder, tensors(1), "safetensors", 2)
    torch.save(tensors(2), folder / PICKLE)
    assert {path.suffix for path in list_weight_files(folder)} == {".safetensors"}
    (whole / WHOLE).rename(folder / WHOLE)
    assert list_weight_files(folder) == [folder / WHOLE]


class Harmful:
    def __reduce__(self):
        return print, ("this code ran",)


def header(**entry) -> bytes:
    text = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | entry})
    return struct.pack("<Q", len(text)) + text.encode()


DAMAGED = {
    WHOLE: [
        b"",
        header() + b"1234567",
        header(shape=[3]) + b"12345678",
        header(dtype="F4", shape=[16]) + b"12345678",
    ],
    PICKLE: [b"", pickle.dumps(Harmful()), pickle.dumps([1])],
}


@pytest.mark.parametrize(
    ("name", "content"), [(name, content) for name in DAMAGED for content in DAMAGED[name]]
)
def test_damaged_files_are_refused_in_one_sentence_and_run_no_code(tmp_path, capsys, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=UNREADABLE):
        digest_tensors(tmp_path)
    assert "this code ran" not in capsys.readouterr().out


def test_pickles_that_expand_or_are_compressed_are_refused(tmp_path):
    torch.save({"a": torch.zeros(1).expand(1 << 20, 1 << 15)}, tmp_path / PICKLE)
    with pytest.raises(InputError, match="`a` is larger"):
        digest_tensors(tmp_path)
    torch.save({"a": torch.zeros(1000)}, tmp_path / "stored")
    with (
        zipfile.ZipFile(tmp_path / "stored") as archive,
        zipfile.ZipFile(tmp_path / PICKLE, "w", zipfile.ZIP_DEFLATED) as compressed_archive,
    ):
        for entry in archive.namelist():
            compressed_archive.writestr(entry, archive.read(entry))
    with pytest.raises(InputError, match="it is compressed"):
        digest_tensors(tmp_path)


@pytest.mark.parametrize("shard", ["../a.safetensors", "/a", "", "C:a", "b\\a", 7])
def test_an_index_that_leads_out_of_its_folder_is_refused(tmp_path, shard):
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": shard}}))
    with pytest.raises(InputError, match=r"is no index of shards .*not beside it"):
        digest_tensors(tmp_path)


def test_shards_that_contradict_each_other_or_are_missing_are_refused(tmp_path):
    with pytest.raises(InputError, match="holds no weights: none of"):
        digest_tensors(tmp_path)
    save_shards(tmp_path / "m", tensors(), "safetensors", 2)
    weights = make_contiguous(tensors())
    save_file({"long": weights["long"]}, tmp_path / "m" / "part-0.safetensors")
    save_file({"long": weights["long"] + 1}, tmp_path / "m" / "part-1.safetensors")
    with pytest.raises(InputError, match="different tensors called `long`"):
        digest_tensors(tmp_path / "m")
    (tmp_path / "m" / "part-1.safetensors").unlink()
    with pytest.raises(InputError, match=rf"part-1\.safetensors {UNREADABLE}"):
        digest_tensors(tmp_path / "m")


# Records of checkpoints --------------------------------------------------------------------------


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint with a record of its files."""
    folder = save_tiny_model(tmp_path / "step7", "gpt_neox")
    write_record(folder, step=7)
    return folder


def test_a_checkpoint_that_changed_since_its_record_is_refused(checkpoint):
    (checkpoint / ".snakemake_timestamp").touch()
    assert check_tensors(checkpoint, True, 3) == digest_tensors(checkpoint)
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        status, content = (checkpoint / name).stat(), (checkpoint / name).read_bytes()
        (checkpoint / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        os.utime(checkpoint / name, ns=(status.st_atime_ns, status.st_mtime_ns))
        with pytest.raises(InputError, match=f"{name} has changed since it was made"):
            check_tensors(checkpoint, True)
        (checkpoint / name).write_bytes(content)
    (checkpoint / "added_tokens.json").write_text('{"new": 5}')
    with pytest.raises(InputError, match=r"added_tokens\.json has changed"):
        refuse_changed(checkpoint)


@pytest.mark.parametrize("content", ["", "{}", "[]"])
def test_a_damaged_record_is_refused(checkpoint, content):
    (checkpoint / RECORD).write_text(content)
    with pytest.raises(InputError, match="is missing or damaged; delete"):
        refuse_changed(checkpoint)
