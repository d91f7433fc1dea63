"""Hidden states that are kept in memory are those of a dump, and damage to a dump is an error."""

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


def dump(checkpoint, destination, widths, windows=WINDOWS, **options):
    """Dump them; the cross-entropy."""
    sample = load_sample(checkpoint, widths, windows, **options)
    with write_states(destination, sample, {"model": "tiny"}) as writer:
        return sample.store_states(writer)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    checkpoint = save_tiny_model(folder / "model", "gpt2")
    dump(checkpoint, folder / "dump", WIDTHS["gpt2"], WINDOWS * 200)
    return folder / "dump"


def test_the_files_are_as_others_read_them(whole):
    with h5py.File(whole / "layer_1.h5") as file:
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


def test_a_bit_that_flips_anywhere_is_an_error_or_nothing_that_is_read(whole, tmp_path):
    """Most bytes are numbers, and some are gaps between what the format stores."""
    values, rows = StateFiles(whole, 3)[1], StateFiles(whole, 3).rows
    content, numbers = (whole / "layer_1.h5").read_bytes(), np.random.default_rng(0)
    refused = 0
    for place in [*range(0, 4000, 37), *numbers.integers(len(content), size=150)]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(numbers.integers(8))
        (tmp_path / "layer_1.h5").write_bytes(damaged)
        found = StateFiles(tmp_path, 3)
        try:
            np.testing.assert_array_equal(found[1], values)
            np.testing.assert_equal(found.rows, rows)
        except InputError as error:
            refused += f"delete {tmp_path} and run again" in str(error)
    assert refused > 150


@pytest.mark.parametrize("how", ["missing", "truncated", "no HDF5"])
def test_a_file_that_cannot_be_read_is_one_sentence(whole, tmp_path, how):
    content = (whole / "layer_2.h5").read_bytes()
    if how != "missing":
        damaged = content[: len(content) // 2] if how == "truncated" else b"some words"
        (tmp_path / "layer_2.h5").write_bytes(damaged)
    with pytest.raises(InputError, match=r"layer_2\.h5 is damaged or missing .*and run again") as e:
        StateFiles(tmp_path, 3)[2]
    assert "\n" not in str(e.value)


def test_files_that_do_not_say_which_tokens_are_massive_are_refused_in_one_sentence(
    whole, tmp_path
):
    folder = shutil.copytree(whole, tmp_path / "dump")
    with h5py.File(folder / "layer_2.h5", "a", libver="latest") as file:
        del file["massive"]
    with pytest.raises(
        InputError, match=r"layer_2\.h5 .* massive .* delete .* and run again$"
    ) as e:
        StateFiles(folder, 3)[2]
    assert "\n" not in str(e.value)


def test_a_run_that_fails_leaves_nothing(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    with pytest.raises(InputError):
        dump(checkpoint, tmp_path / "dump", [32] * 6)
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
def test_a_file_system_without_locks_is_no_damage(whole, tmp_path, locking):
    library = tmp_path / "no_locks.so"
    compile_it = ["cc", "-shared", "-fPIC", "-xc", "-", "-o", library]
    subprocess.run(compile_it, input=NO_LOCKS, text=True, check=True)
    folder = shutil.copytree(whole, tmp_path / "dump")
    options = {"HDF5_USE_FILE_LOCKING": locking} if locking else {}
    ran = subprocess.run(
        [sys.executable, "-c", READ_AND_WRITE, folder],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), "LD_PRELOAD": str(library), **options},
        capture_output=True,
        text=True,
        check=True,
    )
    said = ran.stdout.strip()
    if locking:
        assert "HDF5_USE_FILE_LOCKING" in said
        assert "delete" not in said
    else:
        assert said == str(len(StateFiles(whole, 3)[1]))
        assert (folder / "new.h5").exists()
