import json

import h5py
import numpy as np
import pytest
import torch
import transformers

from dumps import WINDOWS, dump, hidden_states, sample_of
from shape_of_learning.embeddings.states import StateFiles, StatesInMemory
from shape_of_learning.errors import InputError
from tiny_models import CONFIGURATIONS, ENCODERS, WIDTHS, save_tiny_model

# Batches of fewer than 16 tokens are padded, and padding may change the last bits.
LONG_WINDOWS = [f"{window} ; ; ; ; ; ; ; ; a model" for window in WINDOWS]


def one_window_at_a_time(checkpoint, windows=WINDOWS):
    """The authors' loop: each window alone, no padding; hidden states concatenated per layer."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    model = transformers.AutoModel.from_pretrained(checkpoint, dtype=torch.float32).eval()
    layers = None
    with torch.no_grad():
        for window in windows:
            encoded = tokenizer(window, return_tensors="pt")
            ids, mask = encoded["input_ids"], encoded["attention_mask"]
            output = model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
            states = output.hidden_states
            rows = [state[0].numpy() for state in states]
            layers = (
                [[r] for r in rows]
                if layers is None
                else [[*kept, r] for kept, r in zip(layers, rows, strict=True)]
            )
    return [np.concatenate(kept) for kept in layers]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_batched_hidden_states_are_those_of_each_window_alone(name, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", name)
    dump(checkpoint, tmp_path / "one", WIDTHS[name], window_batch_size=1)
    dump(checkpoint, tmp_path / "sixteen", WIDTHS[name], window_batch_size=16)
    for layer, expected in enumerate(one_window_at_a_time(checkpoint)):
        one = hidden_states(tmp_path / "one", layer)
        sixteen = hidden_states(tmp_path / "sixteen", layer)
        scale = np.abs(expected).max()
        # float32 keeps 6e-8; a few hundred roundings in a row stay below 1e-5 of the largest entry.
        np.testing.assert_allclose(one, expected, rtol=0, atol=1e-5 * scale)
        np.testing.assert_allclose(sixteen, expected, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("head", [True, False], ids=["with_head", "base_model"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_hidden_states_are_bit_for_bit_those_of_the_base_model(name, head, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", name, head=head)
    dump(checkpoint, tmp_path / "dump", WIDTHS[name], LONG_WINDOWS, window_batch_size=1)
    for layer, expected in enumerate(one_window_at_a_time(checkpoint, LONG_WINDOWS)):
        np.testing.assert_array_equal(hidden_states(tmp_path / "dump", layer), expected)


def test_the_number_of_threads_does_not_change_a_bit(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    dump(checkpoint, tmp_path / "one", WIDTHS["gpt_neox"], window_batch_size=2, threads=1)
    dump(checkpoint, tmp_path / "two", WIDTHS["gpt_neox"], window_batch_size=2, threads=2)
    for layer in range(4):
        np.testing.assert_array_equal(
            hidden_states(tmp_path / "one", layer), hidden_states(tmp_path / "two", layer)
        )


@pytest.mark.parametrize("name", ["bert", "gpt_neox"])
def test_a_file_says_which_token_each_row_is(name, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", name)
    tokens, _ = dump(checkpoint, tmp_path / "dump", WIDTHS[name])
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    ids = [tokenizer(window)["input_ids"] for window in WINDOWS]
    flat = [token for row in ids for token in row]
    with h5py.File(tmp_path / "dump" / "layer_1.h5") as file:
        assert file["token_ids"][()].tolist() == flat
        assert file["positions"][()].tolist() == [p for row in ids for p in range(len(row))]
        assert file["windows"][()].tolist() == [n for n, row in enumerate(ids) for _ in row]
        assert file["special"][()].tolist() == [id in tokenizer.all_special_ids for id in flat]
        assert file["special"][()].any() == (name in ENCODERS)
        assert file["embeddings"].shape == (tokens, 32)
        assert file["embeddings"].dtype == np.float32
        assert file["embeddings"].chunks is not None
        assert file.attrs["model"] == "tiny"
        assert file.attrs["layer"] == 1


@pytest.mark.parametrize(
    "name", [n for n in CONFIGURATIONS if n not in (*ENCODERS, "opt_projected")]
)
def test_the_last_layer_before_the_final_norm_becomes_the_one_after_it(name, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", name)
    dump(checkpoint, tmp_path / "after", WIDTHS[name])
    dump(checkpoint, tmp_path / "before", WIDTHS[name], last_layer="before_final_norm")
    before = torch.from_numpy(hidden_states(tmp_path / "before", 3))
    after = hidden_states(tmp_path / "after", 3)
    model = transformers.AutoModel.from_pretrained(checkpoint, dtype=torch.float32)
    norms = ("final_layer_norm", "ln_f", "norm")
    final = next(m for n, m in model.named_modules() if n.split(".")[-1] in norms)
    assert not np.allclose(before.numpy(), after)
    np.testing.assert_allclose(final(before).detach().numpy(), after, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(
        hidden_states(tmp_path / "before", 2), hidden_states(tmp_path / "after", 2)
    )


@pytest.mark.parametrize("name", [*ENCODERS, "opt_projected"])
def test_without_a_final_norm_the_last_layer_is_the_same_either_way(name, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", name)
    dump(checkpoint, tmp_path / "after", WIDTHS[name])
    dump(checkpoint, tmp_path / "before", WIDTHS[name], last_layer="before_final_norm")
    np.testing.assert_array_equal(
        hidden_states(tmp_path / "before", 3), hidden_states(tmp_path / "after", 3)
    )


@pytest.mark.parametrize("name", ["gpt_neox", "llama", "bert", "opt_projected"])
def test_both_last_layers_are_those_of_a_dump_with_either(name, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", name)
    losses = {
        last_layer: dump(checkpoint, tmp_path / last_layer, WIDTHS[name], last_layer=last_layer)[1]
        for last_layer in ("after_final_norm", "before_final_norm", "both")
    }
    assert len({each.loss for each in losses.values()}) == 1
    for layer in range(4):
        after = hidden_states(tmp_path / "after_final_norm", layer)
        np.testing.assert_array_equal(hidden_states(tmp_path / "both", layer), after)
    before = StateFiles(tmp_path / "both", 3)[4]
    np.testing.assert_array_equal(before, hidden_states(tmp_path / "before_final_norm", 3))
    assert not list((tmp_path / "after_final_norm").glob("*before*"))


def refusal(tmp_path, checkpoint, **arguments):
    arguments = {"widths": WIDTHS["gpt_neox"], **arguments}
    with pytest.raises(InputError) as caught:
        dump(checkpoint, tmp_path / "dump", **arguments)
    assert not (tmp_path / "dump").exists()
    assert not list(tmp_path.glob(".*"))
    return str(caught.value)


def test_a_wrong_number_of_layers_is_refused(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    assert "for `layers` config.json of the checkpoint says 3 where the entry says 5" in refusal(
        tmp_path, checkpoint, widths=[32] * 6
    )


def test_a_wrong_width_is_refused(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    message = refusal(tmp_path, checkpoint, widths=[64] * 4)
    assert (
        "for `hidden_size` config.json of the checkpoint says 32 where the entry says 64" in message
    )


def test_a_model_whose_hidden_states_are_not_as_its_configuration_says_is_refused(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    sample = sample_of(checkpoint, WIDTHS["gpt_neox"])
    block = sample.forward.model.layers[2]
    block.register_forward_hook(lambda module, inputs, output: output[..., :16])
    sample.forward.model.final_layer_norm = torch.nn.Identity()
    with pytest.raises(InputError, match=r"have the widths \[32, 32, 32, 16\], but its entry says"):
        sample.into(StatesInMemory(sample))


def test_windows_longer_than_the_context_are_refused(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt2")
    message = refusal(tmp_path, checkpoint, windows=["x, y; " * 100])
    assert "was made for 128; lower `sampling.window_characters`" in message


def test_activations_that_are_not_finite_are_stored_and_named(tmp_path, caplog):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    model = transformers.AutoModel.from_pretrained(checkpoint)
    model.layers[1].mlp.dense_4h_to_h.bias.data[3] = float("nan")
    model.save_pretrained(checkpoint)
    dump(checkpoint, tmp_path / "dump", WIDTHS["gpt_neox"])
    assert "hidden state 2 of the model" in caplog.text
    assert np.isfinite(hidden_states(tmp_path / "dump", 1)).all()
    assert not np.isfinite(hidden_states(tmp_path / "dump", 2)).all()


@pytest.mark.parametrize("head", [True, False])
def test_a_checkpoint_that_lacks_weights_is_not_filled_with_random_ones(head, tmp_path):
    from safetensors.torch import load_file, save_file

    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox", head=head)
    weights = load_file(checkpoint / "model.safetensors")
    del weights[f"{'gpt_neox.' if head else ''}layers.1.attention.dense.weight"]
    save_file(weights, checkpoint / "model.safetensors", metadata={"format": "pt"})
    assert "`layers.1.attention.dense.weight`" in refusal(tmp_path, checkpoint)


def test_a_truncated_weight_file_is_one_sentence(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    weights = checkpoint / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    message = refusal(tmp_path, checkpoint)
    assert "cannot be loaded" in message
    assert "\n" not in message


def test_a_missing_checkpoint_or_tokenizer_is_one_sentence(tmp_path):
    assert "config.json is missing" in refusal(tmp_path, tmp_path / "nowhere")
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    for file in checkpoint.glob("tokenizer*"):
        file.unlink()
    message = refusal(tmp_path, checkpoint)
    assert "the tokenizer in" in message
    assert "\n" not in message


def test_code_that_comes_with_a_checkpoint_is_never_run(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    marker = tmp_path / "was_run"
    code = f"from pathlib import Path\nPath({str(marker)!r}).touch()\nModel = Config = object\n"
    (checkpoint / "evil.py").write_text(code)
    config = json.loads((checkpoint / "config.json").read_text())
    kinds = ("AutoModel", "AutoModelForCausalLM")
    config["auto_map"] = {"AutoConfig": "evil.Config"} | dict.fromkeys(kinds, "evil.Model")
    (checkpoint / "config.json").write_text(json.dumps(config))
    dump(checkpoint, tmp_path / "dump", WIDTHS["gpt_neox"])
    assert not marker.exists()


@pytest.mark.parametrize("name", ["gpt_neox", "bloom", "llama", "gpt2"])
@pytest.mark.parametrize("window_batch_size", [1, 3, 16])
def test_the_first_token_of_all_windows_is_one_vector_bit_for_bit(
    name, window_batch_size, tmp_path
):
    """Duplicates are recognised only if batches that are padded differently agree in every bit."""
    checkpoint = save_tiny_model(tmp_path / "model", name)
    windows = [f"x{' , a' * n}" for n in range(1, 40)]  # which start with the same token
    dump(checkpoint, tmp_path / "dump", WIDTHS[name], windows, window_batch_size=window_batch_size)
    with h5py.File(tmp_path / "dump" / "layer_0.h5") as file:
        first = file["positions"][()] == 0
    assert first.sum() == len(windows)
    for layer in range(4):
        assert len(np.unique(hidden_states(tmp_path / "dump", layer)[first], axis=0)) == 1
