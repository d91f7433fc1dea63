import json
import logging
import math

import h5py
import numpy as np
import pytest
import torch
import transformers

from dumps import cross_entropy, hidden_states
from tiny_models import save_stirred_model, save_tiny_model, save_tokenizer


@pytest.mark.parametrize("name", ["gpt_neox", "llama", "gptj", "bert", "roberta", "albert"])
def test_without_a_head_the_loss_is_undefined_and_the_log_says_so(name, tmp_path, caplog):
    checkpoint = save_tiny_model(tmp_path / "model", name)
    with caplog.at_level(logging.INFO, "shape_of_learning"):
        measured = cross_entropy(checkpoint, tmp_path / "dump", name)
    assert math.isnan(measured.loss)
    assert (measured.predicted_tokens, measured.vocabulary) == (0, None)
    assert "of its language-model head" in caplog.text
    with h5py.File(tmp_path / "dump" / "layer_1.h5") as file:
        assert math.isnan(file.attrs["loss"])


@pytest.mark.parametrize("name", ["gpt2", "bloom", "falcon", "opt", "opt_projected"])
def test_the_head_of_a_base_model_is_there_if_it_is_tied_to_the_embeddings(name, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    expected = cross_entropy(checkpoint, tmp_path / "a", name)
    transformers.AutoModel.from_pretrained(checkpoint).save_pretrained(checkpoint)
    assert cross_entropy(checkpoint, tmp_path / "b", name) == expected


def test_an_architecture_without_such_a_head_has_hidden_states_but_no_loss(tmp_path, caplog):
    configuration = transformers.SqueezeBertConfig(
        vocab_size=300, hidden_size=32, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=128, embedding_size=32,
    )  # fmt: skip
    checkpoint = tmp_path / "model"
    transformers.SqueezeBertModel(configuration).save_pretrained(checkpoint)
    save_tokenizer(checkpoint, special=True)
    with caplog.at_level(logging.INFO, "shape_of_learning"):
        measured = cross_entropy(checkpoint, tmp_path / "decoder", "gpt2", role="decoder")
    assert measured.predicted_tokens == 0
    assert "no head for the role `decoder` is known for the type `squeezebert`" in caplog.text
    assert np.isfinite(hidden_states(tmp_path / "decoder", 3)).all()


def test_weights_in_a_bin_file_without_a_prefix_are_the_same_checkpoint(tmp_path):
    """As the exports of BLOOM's training revisions are."""
    checkpoint = save_stirred_model(tmp_path / "model", "bloom")
    expected = cross_entropy(checkpoint, tmp_path / "a", "bloom")
    weights = transformers.AutoModel.from_pretrained(checkpoint).state_dict()
    assert "h.0.mlp.dense_h_to_4h.weight" in weights
    (checkpoint / "model.safetensors").unlink()
    torch.save(weights, checkpoint / "pytorch_model.bin")
    assert cross_entropy(checkpoint, tmp_path / "b", "bloom") == expected
    for layer in range(4):
        np.testing.assert_array_equal(
            hidden_states(tmp_path / "a", layer), hidden_states(tmp_path / "b", layer)
        )


def test_the_head_of_pythia_is_found_under_its_old_name(tmp_path):
    from safetensors.torch import load_file, save_file

    checkpoint = save_stirred_model(tmp_path / "model", "gpt_neox")
    expected = cross_entropy(checkpoint, tmp_path / "a", "gpt_neox")
    weights = load_file(checkpoint / "model.safetensors")
    renamed = {name.replace("lm_head.", "embed_out."): w for name, w in weights.items()}
    assert "embed_out.weight" in renamed
    save_file(renamed, checkpoint / "model.safetensors", metadata={"format": "pt"})
    assert cross_entropy(checkpoint, tmp_path / "b", "gpt_neox") == expected


@pytest.mark.parametrize("mask", [None, "[A MASK THAT THE VOCABULARY DOES NOT HAVE]"])
def test_an_encoder_without_a_mask_token_has_no_loss(mask, tmp_path, caplog):
    checkpoint = save_tiny_model(tmp_path / "model", "bert", head=True)
    configuration = json.loads((checkpoint / "tokenizer_config.json").read_text())
    configuration["mask_token"] = mask
    (checkpoint / "tokenizer_config.json").write_text(json.dumps(configuration))
    with caplog.at_level(logging.INFO, "shape_of_learning"):
        measured = cross_entropy(checkpoint, tmp_path / "dump", "bert")
    assert measured.predicted_tokens == 0
    assert "has no mask token that the model knows" in caplog.text


def test_windows_of_one_token_have_no_next_one(tmp_path, caplog):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox", head=True)
    with caplog.at_level(logging.INFO, "shape_of_learning"):
        measured = cross_entropy(checkpoint, tmp_path / "dump", "gpt_neox", ["x"])
    assert math.isnan(measured.loss)
    assert "no window has a token to predict" in caplog.text
