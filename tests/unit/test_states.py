"""Hidden states that are kept in memory are those of a dump, and damage to a dump is an error."""

import shutil

import h5py
import numpy as np
import pytest

from runs import WINDOWS, sample_of
from shape_of_learning.embeddings.states import StateFiles, StatesInMemory, state_writer
from shape_of_learning.errors import InputError
from tiny_models import WIDTHS, save_stirred_model, save_tiny_model


def dump(checkpoint, destination, widths, windows=WINDOWS, **options):
    """Dump them; the cross-entropy."""
    sample = sample_of(checkpoint, widths, windows, **options)
    of_sample = sample.rows, sample.widths, sample.layers
    with state_writer(destination, *of_sample, {"model": "tiny"}) as writer:
        return sample.into(writer)


def assert_as_dumped(folder, checkpoint, widths, windows=WINDOWS, **options):
    expected = dump(checkpoint, folder, widths, windows, **options)
    sample = sample_of(checkpoint, widths, windows, **options)
    states = StatesInMemory(sample.rows, sample.widths, sample.layers, sample.forward.device)
    loss = sample.into(states)
    files = StateFiles(folder, 3)
    assert (states.layers, len(widths)) == (3, 4)
    for state in range(len(sample.widths)):
        assert states[state].dtype == np.float32
        np.testing.assert_array_equal(states[state], files[state])
    for name, values in states.rows.items():
        np.testing.assert_array_equal(values, files.rows[name])
    np.testing.assert_equal(vars(loss), vars(expected))


@pytest.mark.parametrize("last_layer", ["after_final_norm", "both"])
@pytest.mark.parametrize("name", ["gpt_neox", "bloom", "opt_projected", "bert"])
def test_rows_and_loss_are_bit_for_bit_those_of_a_dump(name, last_layer, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    options = {"window_batch_size": 2, "threads": 2, "last_layer": last_layer}
    assert_as_dumped(tmp_path / "dump", checkpoint, WIDTHS[name], **options)


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
        assert set(file) == {"embeddings", "token_ids", "positions", "windows", "special"}
        assert (file.attrs["model"], file.attrs["layer"]) == ("tiny", 1)


def read_or_refused(folder, values, rows):
    """What is said of the file; None if it has the same numbers."""
    files = StateFiles(folder, 3)
    try:
        np.testing.assert_array_equal(files[1], values)
        for name in rows:
            np.testing.assert_array_equal(files.rows[name], rows[name])
    except InputError as error:
        return str(error)
    return None


def test_a_bit_that_flips_anywhere_is_an_error_or_nothing_that_is_read(whole, tmp_path):
    """Most bytes are numbers, and some are gaps between what the format stores."""
    files = StateFiles(whole, 3)
    values, rows = files[1], files.rows
    content = (whole / "layer_1.h5").read_bytes()
    numbers = np.random.default_rng(0)
    places = [*range(0, 4000, 37), *numbers.integers(len(content), size=150)]
    refused = 0
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(numbers.integers(8))
        (tmp_path / "layer_1.h5").write_bytes(damaged)
        said = read_or_refused(tmp_path, values, rows)
        refused += said is not None
        if said:
            assert "layer_1.h5 is damaged or missing" in said
            assert f"delete {tmp_path} and run again" in said
    assert refused > 150


@pytest.mark.parametrize("how", ["missing", "truncated", "no HDF5", "a folder"])
def test_a_file_that_cannot_be_read_is_one_sentence(whole, tmp_path, how):
    shutil.copytree(whole, tmp_path / "dump")
    file = tmp_path / "dump/layer_2.h5"
    content = file.read_bytes()
    file.unlink()
    if how == "truncated":
        file.write_bytes(content[: len(content) // 2])
    elif how == "no HDF5":
        file.write_text("some words\n")
    elif how == "a folder":
        file.mkdir()
    with pytest.raises(InputError, match=r"layer_2\.h5 is damaged or missing .*and run again") as e:
        StateFiles(tmp_path / "dump", 3)[2]
    assert "\n" not in str(e.value)


def test_a_run_that_fails_leaves_nothing(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    with pytest.raises(InputError):
        dump(checkpoint, tmp_path / "dump", [32] * 6)
    assert {path.name for path in tmp_path.iterdir()} == {"model"}
