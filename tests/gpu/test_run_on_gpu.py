"""Tests of a run that need a GPU: `pytest -m gpu`."""

import logging

import numpy as np
import pytest
import torch
import transformers

from runs import StoredStates, load_sample, run
from shape_of_learning.embeddings import run as module
from shape_of_learning.embeddings.run import StatesInMemory
from tiny_models import CONFIGURATIONS, VOCABULARY, WIDTHS, save_stirred_model, save_tiny_model

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available(), reason="needs a GPU, and torch.cuda.is_available() is false"
    ),
]
GPU = torch.device("cuda", 0)
# Wide and long enough that matrix products of different sizes have different algorithms.
WIDE_CONFIGURATIONS = {
    "gpt_neox": lambda: transformers.GPTNeoXConfig(
        vocab_size=VOCABULARY, hidden_size=1024, num_hidden_layers=3, num_attention_heads=16,
        intermediate_size=4096, max_position_embeddings=1024,
    ),
    "bloom": lambda: transformers.BloomConfig(
        vocab_size=VOCABULARY, hidden_size=1024, n_layer=3, n_head=16
    ),
}  # fmt: skip
# All texts start with the same token, and all lengths differ.
TEXTS_OF_ALL_LENGTHS = [f"x{' , the shape' * n}" for n in range(1, 100)]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_hidden_states_and_loss_are_those_of_the_cpu(name, tmp_path, monkeypatch):
    checkpoint = save_tiny_model(tmp_path, name, head=True)
    monkeypatch.setattr(module, "WINDOWS_ON_A_CPU", 2)
    monkeypatch.setattr(module, "TOKENS_ON_A_GPU", 256)
    cpu, gpu = (
        run(checkpoint, name, device=device, last_layer="both") for device in ("cpu", "cuda:0")
    )
    for cpu_state, gpu_state in zip(cpu.states, gpu.states, strict=True):
        # As in test_forward_pass: a few hundred roundings of 6e-8 in a row. TF32 would give 5e-4.
        np.testing.assert_allclose(
            gpu_state, cpu_state, rtol=0, atol=1e-5 * np.abs(cpu_state).max()
        )
    assert gpu.loss.loss == pytest.approx(cpu.loss.loss, abs=1e-4)
    assert gpu.loss.predicted_tokens == cpu.loss.predicted_tokens


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("tokens", [module.TOKENS_ON_A_GPU, 1200, 8192])
@pytest.mark.parametrize("name", WIDE_CONFIGURATIONS)
def test_the_first_token_of_all_windows_has_the_same_vector_bit_for_bit(
    name, tokens, precision, tmp_path, monkeypatch
):
    """Duplicates are recognised only if batches that are padded differently agree in every bit."""
    checkpoint = save_stirred_model(tmp_path, name, WIDE_CONFIGURATIONS[name]())
    monkeypatch.setattr(module, "TOKENS_ON_A_GPU", tokens)
    options = {"device": "cuda:0", "precision": precision}
    kept_states = StoredStates(load_sample(checkpoint, [1024] * 4, TEXTS_OF_ALL_LENGTHS, **options))
    kept_states.sample.store_states(kept_states)
    first = kept_states.sample.rows["positions"] == 0
    assert first.sum() == len(TEXTS_OF_ALL_LENGTHS)
    assert [len(np.unique(rows[first], axis=0)) for rows in kept_states.states] == [1] * 4


def test_exhausted_memory_halves_the_batch_until_it_fits(tmp_path, caplog, monkeypatch):
    checkpoint = save_tiny_model(tmp_path, "bloom", head=True)
    # Attention scores of one window of 1,200 tokens take 12 MB several times; of sixteen windows 184 MB.
    windows = ["; " * 600] * 16
    monkeypatch.setattr(module, "TOKENS_ON_A_GPU", 10**6)
    monkeypatch.setattr(module, "WINDOWS_ON_A_CPU", 1)
    total = torch.cuda.get_device_properties(GPU).total_memory
    torch.cuda.empty_cache()
    limit = torch.cuda.memory_reserved(GPU) + 256 * 2**20
    torch.cuda.set_per_process_memory_fraction(limit / total, GPU)
    try:
        with caplog.at_level(logging.INFO, "shape_of_learning"):
            gpu = run(checkpoint, "bloom", windows, device="cuda:0")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, GPU)
    assert "memory is exhausted by 16 windows at a time" in caplog.text
    cpu = run(checkpoint, "bloom", windows)
    for cpu_state, gpu_state in zip(cpu.states, gpu.states, strict=True):
        np.testing.assert_allclose(
            gpu_state, cpu_state, rtol=0, atol=1e-5 * np.abs(cpu_state).max()
        )


def test_states_in_memory_stay_on_the_gpu_and_equal_those_of_the_cpu(tmp_path):
    checkpoint = save_tiny_model(tmp_path, "gpt_neox", head=True)
    sample = load_sample(checkpoint, WIDTHS["gpt_neox"], device="cuda:0")
    assert {weight.device for weight in sample.forward.model.parameters()} == {GPU}
    states = StatesInMemory(sample)
    sample.store_states(states)
    for layer, cpu_state in enumerate(run(checkpoint, "gpt_neox").states):
        assert states[layer].device == GPU
        gpu_state = states[layer].cpu().numpy()
        np.testing.assert_allclose(
            gpu_state, cpu_state, rtol=0, atol=1e-5 * np.abs(cpu_state).max()
        )
