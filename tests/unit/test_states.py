"""Files of hidden states have the documented content, and damage to them is an error."""

import os
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

from runs import WINDOWS, load_sample
from shape_of_learning.embeddings.states import StateFiles, write_states
from shape_of_learning.errors import InputError
from tiny_models import WIDTHS, save_tiny_model


def dump_states(checkpoint, destination, widths, windows=WINDOWS, **options):
    """Dump hidden states; return the cross-entropy."""
    sample = load_sample(checkpoint, widths, windows, **options)
    with write_states(destination, sample, {"model": "tiny"}) as writer:
        return sample.store_states(writer)


@pytest.fixture(scope="module")
def dump_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dump_folder")
    checkpoint = save_tiny_model(folder / "model", "gpt2")
    dump_states(checkpoint, folder / "dump", WIDTHS["gpt2"], WINDOWS * 200)
    return folder / "dump"


def test_files_have_the_documented_datasets(dump_folder):
    with h5py.File(dump_folder / "layer_1.h5") as file:
        embeddings = file["embeddings"]
        assert (embeddings.dtype, embeddings.shape[1]) == (np.float32, 32)
        assert embeddings.fletcher32
        assert embeddings.compression is None
        assert set(file) == {
            "embeddings",
            "token_ids",
            "positions",
            "windows",
            "special",
            "massive",
        }
        assert (file.attrs["model"], file.attrs["layer"]) == ("tiny", 1)


def test_a_flipped_bit_is_an_error_or_changes_no_value(dump_folder, tmp_path):
    """Most bytes are numbers, and some are gaps that are never read."""
    values, rows = StateFiles(dump_folder, 3)[1], StateFiles(dump_folder, 3).rows
    content, numbers = (dump_folder / "layer_1.h5").read_bytes(), np.random.default_rng(0)
    refusals = 0
    for place in [*range(0, 4000, 37), *numbers.integers(len(content), size=150)]:
        damaged_content = bytearray(content)
        damaged_content[place] ^= 1 << int(numbers.integers(8))
        (tmp_path / "layer_1.h5").write_bytes(damaged_content)
        states = StateFiles(tmp_path, 3)
        try:
            np.testing.assert_array_equal(states[1], values)
            np.testing.assert_equal(states.rows, rows)
        except InputError as error:
            refusals += f"delete {tmp_path} and run again" in str(error)
    assert refusals > 150


@pytest.mark.parametrize("damage", ["missing", "truncated", "no HDF5"])
def test_a_file_that_cannot_be_read_is_one_sentence(dump_folder, tmp_path, damage):
    content = (dump_folder / "layer_2.h5").read_bytes()
    if damage != "missing":
        damaged_content = content[: len(content) // 2] if damage == "truncated" else b"some words"
        (tmp_path / "layer_2.h5").write_bytes(damaged_content)
    with pytest.raises(
        InputError, match=r"layer_2\.h5 is damaged or missing .*and run again"
    ) as error:
        StateFiles(tmp_path, 3)[2]
    assert "\n" not in str(error.value)


def test_files_without_massive_tokens_are_refused_in_one_sentence(dump_folder, tmp_path):
    folder = shutil.copytree(dump_folder, tmp_path / "dump")
    with h5py.File(folder / "layer_2.h5", "a", libver="latest") as file:
        del file["massive"]
    with pytest.raises(
        InputError, match=r"layer_2\.h5 .* massive .* delete .* and run again$"
    ) as error:
        StateFiles(folder, 3)[2]
    assert "\n" not in str(error.value)


def test_a_run_that_fails_leaves_nothing(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    with pytest.raises(InputError):
        dump_states(checkpoint, tmp_path / "dump", [32] * 6)
    assert {path.name for path in tmp_path.iterdir()} == {"model"}


NO_LOCKS = """
#include <errno.h>
int flock(int file, int operation) { (void)file; (void)operation; errno = ENOLCK; return -1; }
"""
READ_AND_WRITE = """
import sys
from pathlib import Path
from shape_of_learning.embeddings.states import StateFiles, open_states
from shape_of_learning.errors import InputError
folder = Path(sys.argv[1])
try:
    print(len(StateFiles(folder, 3)[1]))
    open_states(folder / "new.h5", "w").close()
except InputError as error:
    print(error)
"""


@pytest.mark.skipif(shutil.which("cc") is None or sys.platform != "linux", reason="preloads C")
@pytest.mark.parametrize("locking", ["", "TRUE"])
def test_a_file_system_without_locks_is_not_reported_as_damage(dump_folder, tmp_path, locking):
    library = tmp_path / "no_locks.so"
    compile_it = ["cc", "-shared", "-fPIC", "-xc", "-", "-o", library]
    subprocess.run(compile_it, input=NO_LOCKS, text=True, check=True)
    folder = shutil.copytree(dump_folder, tmp_path / "dump")
    options = {"HDF5_USE_FILE_LOCKING": locking} if locking else {}
    process = subprocess.run(
        [sys.executable, "-c", READ_AND_WRITE, folder],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), "LD_PRELOAD": str(library), **options},
        capture_output=True,
        text=True,
        check=True,
    )
    output = process.stdout.strip()
    if locking:
        assert "HDF5_USE_FILE_LOCKING" in output
        assert "delete" not in output
    else:
        assert output == str(len(StateFiles(dump_folder, 3)[1]))
        assert (folder / "new.h5").exists()
