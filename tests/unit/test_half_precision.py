import h5py
import numpy as np
import pytest
import transformers

from dumps import WINDOWS, dump
from shape_of_learning.embeddings.half_precision import LARGEST, SAMPLE_ROWS, HalfPrecision
from shape_of_learning.embeddings.hidden_state_files import read_hidden_states
from shape_of_learning.errors import InputError
from tiny_models import WIDTHS, save_tiny_model


def cloud(rows=1000, width=16):
    return np.random.default_rng(0).standard_normal((rows, width)).astype(np.float32)


def rounded(values, layers=1):
    half = HalfPrecision([values.shape[1]] * layers, len(values), "a/model")
    for start in range(0, len(values), 100):
        part = slice(start, start + 100)
        for layer in range(layers):
            yield half.rounded(layer, part, values[part])
    for layer in range(layers):
        half.check(layer)


def refusal(values, **options):
    with pytest.raises(InputError) as caught:
        list(rounded(values, **options))
    assert "of the model in a/model" in str(caught.value)
    assert "set `embeddings.dtype` to float32" in str(caught.value)
    return str(caught.value)


def test_a_gaussian_cloud_survives_half_precision():
    values = cloud()
    stored = np.concatenate(list(rounded(values)))
    assert stored.dtype == np.float16
    # Half a unit in the last of 11 bits.
    assert (np.abs(stored - values) <= 2.0**-11 * np.abs(values) + 2.0**-25).all()


def test_a_massive_coordinate_is_refused():
    values = cloud()
    values[::7, 3] = 1e5
    message = refusal(values)
    assert "hidden state 0" in message
    assert "reaches 1e+05, but float16 ends at 65504" in message


def test_the_largest_number_of_float16_is_stored():
    values = cloud()
    values[5, 3] = -LARGEST
    assert np.concatenate(list(rounded(values))).min() == -LARGEST


def test_an_offset_that_swallows_the_signal_is_refused():
    # At 1000, float16 has steps of a half: all rows become the same one.
    message = refusal(1000 + 1e-2 * cloud())
    assert "TwoNN of hidden state 0" in message
    assert "rounding to float16 leaves it undefined" in message


def test_an_offset_that_coarsens_the_signal_is_refused_with_the_change():
    # Steps of a half beside distances of about 4.
    message = refusal(1000 + cloud())
    assert "on 1000 vectors, and rounding to float16 changes it to" in message
    assert float(message.split("by ")[1].split("%")[0]) > 1


def test_rows_beyond_the_sample_are_rounded_too():
    values = cloud(SAMPLE_ROWS + 300, 4)
    values[-1, 0] = 1e6
    assert "reaches 1e+06" in refusal(values)
    assert len(np.concatenate(list(rounded(values[:-1])))) == SAMPLE_ROWS + 299


@pytest.mark.parametrize("rows", [1, 2, 50])
def test_where_two_nn_is_undefined_nothing_can_be_lost(rows):
    assert len(list(rounded(np.ones((rows, 4), np.float32)))) == 1


def test_a_random_model_in_half_precision_is_read_as_float32_in_half_the_space(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    dump(checkpoint, tmp_path / "full", WIDTHS["gpt_neox"], WINDOWS * 2)
    dump(checkpoint, tmp_path / "half", WIDTHS["gpt_neox"], WINDOWS * 2, dtype="float16")
    for layer in range(4):
        full, half = (read_hidden_states(tmp_path / f, layer) for f in ("full", "half"))
        assert half.dtype == full.dtype == np.float32
        np.testing.assert_array_equal(half, full.astype(np.float16).astype(np.float32))
        with h5py.File(tmp_path / "half" / f"layer_{layer}.h5") as file:
            assert file["embeddings"].dtype == np.float16


@pytest.mark.parametrize(
    ("bias", "reason"),
    [(1e5, "reaches 1e+05"), (1000, "rounding to float16 leaves it undefined")],
    ids=["massive", "offset"],
)
def test_a_model_that_half_precision_would_spoil_is_refused(bias, reason, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    model = transformers.AutoModel.from_pretrained(checkpoint)
    model.layers[1].mlp.dense_4h_to_h.bias.data[:] = bias
    model.save_pretrained(checkpoint)
    with pytest.raises(InputError, match="hidden state 2 of the model") as caught:
        dump(checkpoint, tmp_path / "dump", WIDTHS["gpt_neox"], WINDOWS * 2, dtype="float16")
    assert reason in str(caught.value)
    assert not (tmp_path / "dump").exists()
    dump(checkpoint, tmp_path / "dump", WIDTHS["gpt_neox"], WINDOWS * 2)
