"""A file is what was written under its name, to the last bit, or it is refused by name."""

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest
from shape_of_learning.embeddings.hidden_state_files import HiddenStateWriter, layer_file
from shape_of_learning.embeddings.selected_rows import read_selected
from shape_of_learning.metrics.batch_files import read_batches, write_batches
from shape_of_learning.metrics.measurements import (
    LAYER_COLUMNS,
    BatchValue,
    Estimate,
    Measured,
    write_measurements,
)
from shape_of_learning.metrics.neighbour_lists import NeighbourLists

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.batches import Batch
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.storage.csv_table import read_rows
from shape_of_learning.storage.digests import (
    add_digest,
    digest_file,
    require_unchanged,
    write_with_digest,
)

TOKENS, WIDTH = 500, 16
UNUSED = Estimate(0, 0, 0, 0, 0, 0, ())


def dump(folder: Path) -> Path:
    """Two layers as the forward pass writes them; returns the first one's file."""
    folder.mkdir(parents=True)
    numbers = np.arange(TOKENS)
    rows = {name: numbers for name in ("token_ids", "positions", "windows")}
    rows["special"] = numbers % 50 == 0
    writer = HiddenStateWriter(folder, [WIDTH, WIDTH], rows, {"model": "m", "revision": "r"})
    for layer in range(2):
        values = np.random.default_rng(layer).normal(size=(TOKENS, WIDTH)).astype(np.float32)
        writer.write(layer, slice(0, TOKENS), values)
    writer.close()
    for layer in range(2):
        add_digest(layer_file(folder, layer))
    return layer_file(folder, 0)


def neighbours(folder: Path) -> Path:
    distances = np.sort(np.random.default_rng(0).random((40, 5)))
    every = np.arange(40)
    for layer in range(2):
        lists = NeighbourLists(distances + layer, np.tile(every[:5], (40, 1)), every)
        write_batches(folder / f"layer_{layer}.h5", [Batch(40, every, lists)])
    return folder / "layer_0.h5"


def table(folder: Path) -> Path:
    for name in ("mom", "mle"):
        values = [BatchValue(batch, 4, 4, 3.0625 + batch) for batch in range(3)]
        write_measurements(
            folder / f"{name}.csv", dict.fromkeys(range(2), Measured(values, UNUSED))
        )
    return folder / "mom.csv"


def read_dump(path: Path) -> object:
    return read_selected(path, Selection())


def read_table(path: Path) -> object:
    return read_rows(path, LAYER_COLUMNS)


KINDS = {
    "hidden states": (dump, read_dump),
    "neighbours": (neighbours, read_batches),
    "measurements": (table, read_table),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def file(kind, tmp_path):
    """One of the files, of a model's revision."""
    return kind[0](tmp_path / "model" / "step1")


def change(path: Path, content: bytes) -> None:
    """Without a trace in its time."""
    times = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def refusal(read, path: Path) -> str:
    with pytest.raises(InputError) as refused:
        read(path)
    said = str(refused.value)
    assert said.startswith(str(path))
    assert said.count("\n") == 0
    assert "delete" in said
    assert "run again" in said
    return said


def test_what_was_written_is_read(kind, file):
    kind[1](file)


def test_a_bit_that_is_flipped_anywhere_is_noticed(kind, file):
    """In data, and in what HDF5 writes about them."""
    content = file.read_bytes()
    for place in [*range(0, len(content), 1 + len(content) // 150), len(content) - 1]:
        bit = 1 << (place % 8)
        change(file, content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
        assert "is not what was written" in refusal(kind[1], file)
    change(file, content)
    kind[1](file)


@pytest.mark.parametrize("left", [0, 1, -1, -2, -20])
def test_a_file_that_is_cut_is_noticed(kind, file, left):
    change(file, file.read_bytes()[:left])
    assert "is not what was written" in refusal(kind[1], file)


def test_another_file_under_its_name_is_noticed(kind, file):
    """Of another layer, estimator or revision, alone or with its digest; renamed or copied."""
    revision = kind[0](file.parents[1] / "step2")
    other = next(
        path
        for path in sorted(file.parent.iterdir())
        if path.suffix == file.suffix and path != file
    )
    if kind[0] is dump:
        with h5py.File(other) as layer:
            assert layer.attrs["layer"] == 1
    for source, owner in ((revision, "model/step2"), (other, f"model/step1/{other.name}")):
        if source.read_bytes() != file.read_bytes():
            shutil.copy2(source, file)
            assert "is not what was written" in refusal(kind[1], file)
        shutil.copy2(source, file)
        shutil.copy2(digest_file(source), digest_file(file))
        assert f"is a copy of {owner}" in refusal(kind[1], file)


def test_an_attribute_that_was_swapped_is_noticed(tmp_path):
    file = dump(tmp_path / "model" / "step1")
    for path, layer in ((file, 1), (file.with_name("layer_1.h5"), 0)):
        with h5py.File(path, "r+") as written:
            written.attrs["layer"] = layer
        assert "is not what was written" in refusal(read_dump, path)


@pytest.mark.parametrize("missing", ["file", "digest"])
def test_what_is_missing_is_noticed(kind, file, missing):
    (file if missing == "file" else digest_file(file)).unlink()
    said = "is missing" if missing == "file" else "has no .sha256 beside it"
    assert said in refusal(kind[1], file)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"0\n", b"0" * 64])
def test_a_digest_that_is_damaged_is_noticed(kind, file, content):
    digest_file(file).write_bytes(content)
    refusal(kind[1], file)


def test_a_folder_that_was_moved_is_as_it_was(kind, file, tmp_path):
    shutil.copytree(tmp_path / "model", tmp_path / "elsewhere" / "deep" / "model")
    kind[1](tmp_path / "elsewhere" / "deep" / "model" / "step1" / file.name)


def test_sha256sum_checks_it(file, tmp_path):
    check = ["sha256sum", "--check", "--quiet", digest_file(file)]
    subprocess.run(check, cwd=tmp_path, check=True)
    file.write_bytes(b"")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode != 0


def test_a_failure_leaves_neither_file_nor_digest(tmp_path):
    with suppress(RuntimeError), write_with_digest(tmp_path / "file") as partial:
        partial.write_text("half of it")
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_a_remedy_is_said_as_given(tmp_path):
    with pytest.raises(InputError, match=r"file is missing; do this$"):
        require_unchanged(tmp_path / "file", "do this")
