"""Hidden states that are kept in memory are those of a dump, and damage to a dump is an error."""

import h5py
import numpy as np
import pytest

from runs import WINDOWS, sample_of
from shape_of_learning.embeddings.run import StatesInMemory
from shape_of_learning.embeddings.states import StateFiles, state_writer
from shape_of_learning.errors import InputError
from tiny_models import WIDTHS, save_stirred_model, save_tiny_model


def dump(checkpoint, destination, widths, windows=WINDOWS, **options):
    """Dump them; the cross-entropy."""
    sample = sample_of(checkpoint, widths, windows, **options)
    with state_writer(destination, sample, {"model": "tiny"}) as writer:
        return sample.into(writer)


@pytest.mark.parametrize("last_layer", ["after_final_norm", "both"])
@pytest.mark.parametrize("name", ["gpt_neox", "opt_projected", "bert"])
def test_rows_and_loss_are_bit_for_bit_those_of_a_dump(name, last_layer, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    options = {"window_batch_size": 2, "threads": 2, "last_layer": last_layer}
    expected = dump(checkpoint, tmp_path / "dump", WIDTHS[name], **options)
    sample = sample_of(checkpoint, WIDTHS[name], **options)
    some = np.arange(sample.tokens) % 3 == 0
    numbers = np.arange(10, 10 + len(WINDOWS))
    states = StatesInMemory(sample, numbers, kept={1: some})
    loss, files = sample.into(states), StateFiles(tmp_path / "dump", 3)
    for state in range(len(sample.widths)):
        assert states[state].dtype == np.float32
        kept = some if state == 1 else slice(None)
        np.testing.assert_array_equal(states[state], files[state][kept])
    for key, values in {**files.rows, "windows": numbers[files.rows["windows"]]}.items():
        np.testing.assert_array_equal(states.rows[key], values)
    assert states.bytes == sum(4 * states[state].size for state in range(len(sample.widths)))
    np.testing.assert_equal(vars(loss), vars(expected))


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


def test_a_bit_that_flips_anywhere_is_an_error_or_nothing_that_is_read(whole, tmp_path):
    """Most bytes are numbers, and some are gaps between what the format stores."""
    files = StateFiles(whole, 3)
    values, rows = files[1], files.rows
    content = (whole / "layer_1.h5").read_bytes()
    numbers = np.random.default_rng(0)
    places = [*range(0, 4000, 37), *numbers.integers(len(content), size=150)]
    said = []
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(numbers.integers(8))
        (tmp_path / "layer_1.h5").write_bytes(damaged)
        found = StateFiles(tmp_path, 3)
        try:
            np.testing.assert_array_equal(found[1], values)
            np.testing.assert_equal(found.rows, rows)
        except InputError as error:
            said.append(str(error))
    assert len(said) > 150
    assert all("layer_1.h5 is damaged or missing" in each for each in said)
    assert all(f"delete {tmp_path} and run again" in each for each in said)


@pytest.mark.parametrize("how", ["missing", "truncated", "no HDF5"])
def test_a_file_that_cannot_be_read_is_one_sentence(whole, tmp_path, how):
    content = (whole / "layer_2.h5").read_bytes()
    if how != "missing":
        damaged = content[: len(content) // 2] if how == "truncated" else b"some words"
        (tmp_path / "layer_2.h5").write_bytes(damaged)
    with pytest.raises(InputError, match=r"layer_2\.h5 is damaged or missing .*and run again") as e:
        StateFiles(tmp_path, 3)[2]
    assert "\n" not in str(e.value)


def test_a_run_that_fails_leaves_nothing(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    with pytest.raises(InputError):
        dump(checkpoint, tmp_path / "dump", [32] * 6)
    assert {path.name for path in tmp_path.iterdir()} == {"model"}
