"""The loss of a checkpoint is that of transformers, for every head; without a head there is no loss."""

import json
import logging
import math

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import tiny_models as tiny
from runs import WINDOWS, compute_loss, load_sample, run
from shape_of_learning.embeddings import tokenised_windows
from shape_of_learning.embeddings.model import LanguageModelHead
from shape_of_learning.embeddings.tokenizers import load_tokenizer
from shape_of_learning.random_streams import random_stream

UNIT_ROUNDOFF = 2.0**-24  # of float32
SIZES = {**tiny.USUAL, "num_attention_heads": 4, "num_key_value_heads": 2}
# Decoders whose logits are scaled or capped, or whose base model returns more than hidden states.
MORE_THAN_LINEAR = {
    "cohere": lambda: transformers.CohereConfig(**SIZES, logit_scale=0.3),
    "gemma2": lambda: transformers.Gemma2Config(**SIZES, head_dim=8, final_logit_softcapping=2.0),
    "mixtral": lambda: transformers.MixtralConfig(**SIZES, num_local_experts=2),
}


def predict_tokens(checkpoint, name):
    """Return the predicted tokens of each window, over which the loss is the mean."""
    tokenizer = load_tokenizer(checkpoint)
    windows = tokenised_windows.tokenise(tokenizer, WINDOWS)
    if name not in tiny.ENCODERS:
        return [tokenised_windows.predict_next_tokens(window) for window in windows]
    random = random_stream(0, "masked tokens")
    return [
        tokenised_windows.mask_tokens(window, tokenizer.mask_token_id, random) for window in windows
    ]


def compute_library_loss(checkpoint, name):
    """Compute the loss by transformers, one window at a time."""
    model = (
        tiny.choose_class_with_head(name).from_pretrained(checkpoint, dtype=torch.float32).eval()
    )
    total, count = 0.0, 0
    for window in predict_tokens(checkpoint, name):
        if len(window.targets) == 0:
            continue
        ids = torch.from_numpy(window.input_ids)[None]
        labels = ids.clone()  # a decoder shifts them itself
        if name in tiny.ENCODERS:
            labels[:] = -100
            labels[0, window.positions] = torch.from_numpy(window.targets)
        with torch.no_grad():
            mean = model(input_ids=ids, labels=labels).loss.item()
        total, count = total + mean * len(window.targets), count + len(window.targets)
    return total / count, count


@pytest.mark.parametrize("name", [*tiny.CONFIGURATIONS, *MORE_THAN_LINEAR])
def test_the_loss_is_that_of_the_library(name, tmp_path, windows_at_once):
    configuration = MORE_THAN_LINEAR[name]() if name in MORE_THAN_LINEAR else None
    checkpoint = tiny.save_stirred_model(tmp_path, name, configuration)
    windows_at_once(1)
    cross_entropy = compute_loss(checkpoint, name)
    expected, count = compute_library_loss(checkpoint, name)
    # A sum of n terms errs by about sqrt(n) roundings (Higham & Mary 2019). Up to four are formed in
    # a row (dense layer, logits, partition function, mean), of at most 300 terms below 10.
    tolerance = 4 * math.sqrt(300) * UNIT_ROUNDOFF * 10
    assert cross_entropy.loss == pytest.approx(expected, abs=tolerance)
    assert (cross_entropy.predicted_tokens, cross_entropy.vocabulary) == (count, tiny.VOCABULARY)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_loss_of_many_copies_of_a_window_is_that_of_one(precision, tmp_path, windows_at_once):
    checkpoint = tiny.save_stirred_model(tmp_path, "gpt_neox")
    windows_at_once(1)
    once, often = (
        compute_loss(checkpoint, "gpt_neox", WINDOWS[:1] * copies, precision=precision)
        for copies in (1, 1000)
    )
    # In float64 a thousand additions stay below 1e-12; in bfloat16 the sum would stop growing.
    assert often.loss == pytest.approx(once.loss, rel=1e-12)


def test_all_checkpoints_of_a_model_predict_the_same_masked_tokens(tmp_path):
    folders = (
        tiny.save_tiny_model(tmp_path / "a", "bert", head=True),
        tiny.save_stirred_model(tmp_path / "b", "bert"),
    )
    first, second = (
        load_sample(folder, tiny.WIDTHS["bert"]).predicted_tokens for folder in folders
    )
    for window, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(window.positions, other.positions)
        np.testing.assert_array_equal(window.input_ids, other.input_ids)


def test_logits_are_computed_in_blocks_that_fit(tmp_path, monkeypatch):
    checkpoint, rows = tiny.save_stirred_model(tmp_path, "gpt_neox"), []
    expected = compute_loss(checkpoint, "gpt_neox")
    compute_logits = LanguageModelHead.compute_logits

    def count_rows(head, block, kind):
        rows.append(len(block))
        return compute_logits(head, block, kind)

    monkeypatch.setattr(LanguageModelHead, "compute_logits", count_rows)
    monkeypatch.setattr("shape_of_learning.embeddings.model.LOGITS_BYTES", 3 * 4 * tiny.VOCABULARY)
    assert compute_loss(checkpoint, "gpt_neox").loss == pytest.approx(expected.loss, rel=1e-6)
    assert max(rows) == 3


def test_special_tokens_are_context_and_no_targets():
    ids = np.array([1, 40, 41, 2, 42, 2])
    window = tokenised_windows.predict_next_tokens(
        tokenised_windows.TokenisedWindow(ids, np.isin(ids, [1, 2]))
    )
    assert window.positions.tolist() == [0, 1, 3]
    assert window.targets.tolist() == [40, 41, 42]


@pytest.mark.parametrize(
    ("ordinary_count", "masked_count"), [(1, 1), (3, 1), (20, 3), (200, 30), (0, 0)]
)
def test_fifteen_percent_of_the_ordinary_tokens_are_masked(ordinary_count, masked_count):
    assert tokenised_windows.MASKED_SHARE == 0.15
    ids = np.array([1, *range(10, 10 + ordinary_count), 2])
    window = tokenised_windows.TokenisedWindow(ids, ids < 10)
    prediction = tokenised_windows.mask_tokens(window, 3, np.random.default_rng(0))
    assert len(set(prediction.positions.tolist())) == masked_count
    assert (prediction.targets >= 10).all()
    np.testing.assert_array_equal(ids[prediction.positions], prediction.targets)
    assert (prediction.input_ids == 3).sum() == masked_count
    hidden = np.isin(np.arange(len(ids)), prediction.positions)
    np.testing.assert_array_equal(prediction.input_ids[~hidden], ids[~hidden])


@pytest.mark.parametrize("name", ["gpt_neox", "llama", "bert", "albert"])
def test_without_a_head_the_loss_is_undefined_and_the_log_says_so(name, tmp_path, caplog):
    checkpoint = tiny.save_tiny_model(tmp_path, name)
    with caplog.at_level(logging.INFO, "shape_of_learning"):
        store = run(checkpoint, name)
    assert math.isnan(store.loss.loss)
    assert (store.loss.predicted_tokens, store.loss.vocabulary) == (0, None)
    assert "of its language-model head" in caplog.text


@pytest.mark.parametrize("name", ["gpt2", "bloom", "falcon", "opt", "opt_projected"])
def test_a_base_model_has_a_head_if_it_is_tied_to_the_embeddings(name, tmp_path):
    checkpoint = tiny.save_stirred_model(tmp_path, name)
    expected = compute_loss(checkpoint, name)
    transformers.AutoModel.from_pretrained(checkpoint).save_pretrained(checkpoint)
    assert compute_loss(checkpoint, name) == expected


def test_an_architecture_without_a_language_model_head_has_no_loss(tmp_path):
    configuration = transformers.SqueezeBertConfig(**tiny.USUAL, embedding_size=32)
    transformers.SqueezeBertModel(configuration).save_pretrained(tmp_path)
    tiny.save_tokenizer(tmp_path, special=True)
    store = run(tmp_path, "gpt2", role="decoder")
    assert store.loss.predicted_tokens == 0
    assert np.isfinite(store.states[3]).all()


def test_weights_in_a_bin_file_without_a_prefix_are_the_same_checkpoint(tmp_path):
    """The training revisions of BLOOM are exported like this."""
    checkpoint = tiny.save_stirred_model(tmp_path, "bloom")
    expected = run(checkpoint, "bloom")
    weights = transformers.AutoModel.from_pretrained(checkpoint).state_dict()
    assert "h.0.mlp.dense_h_to_4h.weight" in weights
    (checkpoint / "model.safetensors").unlink()
    torch.save(weights, checkpoint / "pytorch_model.bin")
    store = run(checkpoint, "bloom")
    assert store.loss == expected.loss
    np.testing.assert_array_equal(store.states, expected.states)


def test_the_head_of_pythia_is_found_under_its_old_name(tmp_path):
    checkpoint = tiny.save_stirred_model(tmp_path, "gpt_neox")
    expected = compute_loss(checkpoint, "gpt_neox")
    weights = load_file(checkpoint / "model.safetensors")
    old_weights = {name.replace("lm_head.", "embed_out."): w for name, w in weights.items()}
    assert "embed_out.weight" in old_weights
    save_file(old_weights, checkpoint / "model.safetensors", metadata={"format": "pt"})
    assert compute_loss(checkpoint, "gpt_neox") == expected


@pytest.mark.parametrize("mask", [None, "[A MASK THAT THE VOCABULARY DOES NOT HAVE]"])
def test_an_encoder_without_a_mask_token_has_no_loss(mask, tmp_path, caplog):
    checkpoint = tiny.save_tiny_model(tmp_path, "bert", head=True)
    configuration = json.loads((checkpoint / "tokenizer_config.json").read_text())
    configuration["mask_token"] = mask
    (checkpoint / "tokenizer_config.json").write_text(json.dumps(configuration))
    with caplog.at_level(logging.INFO, "shape_of_learning"):
        assert compute_loss(checkpoint, "bert").predicted_tokens == 0
    assert "has no mask token that the model knows" in caplog.text


def test_a_head_may_read_a_number_of_its_base_model():
    """The head of Falcon-H1 scales logits by a number of its base model."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 300, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    mamba = {"mamba_d_ssm": 64, "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8}
    config = transformers.FalconH1Config(
        **sizes, **heads, **mamba, mamba_n_groups=1, lm_head_multiplier=0.5
    )
    model = transformers.FalconH1ForCausalLM(config).eval()
    ids = torch.arange(5, 15)[None]
    with torch.no_grad():
        output = model.base_model(input_ids=ids, use_cache=False)
        expected = model(input_ids=ids, use_cache=False).logits[0]
        logits = LanguageModelHead(model).compute_logits(output.last_hidden_state[0], type(output))
    torch.testing.assert_close(logits, expected)
