"""What only a GPU can show; `pytest -m gpu`."""

import logging

import accelerate
import h5py
import numpy as np
import pytest
import torch
import transformers
from shape_of_learning.embeddings.in_memory import HiddenStatesInMemory

from dumps import WINDOWS, cross_entropy, dump, hidden_states, sample_of
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.language_model_head import LanguageModelHead
from shape_of_learning.embeddings.tokenisation import load_tokenizer, tokenise
from shape_of_learning.embeddings.window_batches import window_batches_of_equal_work
from tiny_models import (
    CONFIGURATIONS,
    VOCABULARY,
    WIDTHS,
    save_stirred_model,
    save_tiny_model,
    with_head,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available(), reason="needs a GPU, and torch.cuda.is_available() is false"
    ),
]
GPU = torch.device("cuda", 0)
# Wide and long enough that matrix products of different sizes have different algorithms.
WIDE = {
    "gpt_neox": lambda: transformers.GPTNeoXConfig(
        vocab_size=VOCABULARY, hidden_size=1024, num_hidden_layers=4, num_attention_heads=16,
        intermediate_size=4096, max_position_embeddings=1024,
    ),
    "bloom": lambda: transformers.BloomConfig(
        vocab_size=VOCABULARY, hidden_size=1024, n_layer=4, n_head=16
    ),
    "llama": lambda: transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=1024, num_hidden_layers=4, num_attention_heads=16,
        intermediate_size=2752, max_position_embeddings=1024,
    ),
}  # fmt: skip
# All start with the same token, and no two have the same length.
OF_ALL_LENGTHS = [f"x{' , the shape' * n}" for n in range(1, 100)]


def active_bytes():
    """Memory of tensors, and of such as are gone but not copied yet."""
    torch.empty(1, device=GPU)  # PyTorch looks at copies only when it is asked for memory
    return torch.cuda.memory_stats(GPU)["active_bytes.all.current"]


def layers_of(folder, count=4):
    return [hidden_states(folder, layer) for layer in range(count)]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_dump_and_memory_are_those_of_the_cpu(name, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", name)
    dump(checkpoint, tmp_path / "cpu", WIDTHS[name])
    options = {"device": "cuda:0", "window_batch_size": 2}
    _, dumped = dump(checkpoint, tmp_path / "gpu", WIDTHS[name], **options)
    sample = sample_of(checkpoint, WIDTHS[name], **options)
    states = HiddenStatesInMemory(sample)
    np.testing.assert_equal(vars(sample.into(states)), vars(dumped))
    layers = list(states.measured(lambda layer, rows: rows, 1))
    assert {rows.device for rows in layers} == {states.device} == {GPU}
    for kept, cpu, gpu in zip(
        layers, layers_of(tmp_path / "cpu"), layers_of(tmp_path / "gpu"), strict=True
    ):
        np.testing.assert_array_equal(kept.cpu().numpy(), gpu)
        # As in test_embedding_dump: a few hundred roundings of 6e-8 in a row. TF32 would give 5e-4.
        np.testing.assert_allclose(gpu, cpu, rtol=0, atol=1e-5 * np.abs(cpu).max())


@pytest.mark.parametrize("name", ["gpt_neox", "llama", "bloom"])
def test_the_loss_is_that_of_the_cpu(name, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    cpu, gpu = (
        cross_entropy(checkpoint, tmp_path / device, name, device=device)
        for device in ("cpu", "cuda:0")
    )
    # As in test_cross_entropy, where the batch size does what the device does here.
    head = with_head(name).from_pretrained(checkpoint).get_output_embeddings().weight
    largest = np.abs(hidden_states(tmp_path / "cpu", 3)).max().item()
    tolerance = 2 * 1e-5 * largest * head.detach().abs().sum(dim=1).max().item()
    assert tolerance < 0.01
    assert gpu.loss == pytest.approx(cpu.loss, abs=tolerance)
    assert gpu.predicted_tokens == cpu.predicted_tokens


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("window_batch_size", [None, 3, 16])
@pytest.mark.parametrize("name", WIDE)
def test_the_first_token_of_all_windows_is_one_vector_bit_for_bit(
    name, window_batch_size, precision, tmp_path
):
    """Duplicates are recognised only if batches that are padded differently agree in every bit."""
    checkpoint = save_stirred_model(tmp_path / "model", name, WIDE[name]())
    dump(
        checkpoint,
        tmp_path / "dump",
        [1024] * 5,
        OF_ALL_LENGTHS,
        device="cuda:0",
        window_batch_size=window_batch_size,
        precision=precision,
    )
    with h5py.File(tmp_path / "dump" / "layer_0.h5") as file:
        first = file["positions"][()] == 0
    assert first.sum() == len(OF_ALL_LENGTHS)
    distinct = [len(np.unique(rows[first], axis=0)) for rows in layers_of(tmp_path / "dump", 5)]
    assert distinct == [1] * 5


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", WIDE)
def test_overlapping_copies_give_the_bytes_of_copies_that_are_waited_for(name, precision, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name, WIDE[name]())
    dump(
        checkpoint,
        tmp_path / "dump",
        [1024] * 5,
        OF_ALL_LENGTHS,
        device="cuda:0",
        window_batch_size=8,
        precision=precision,
    )
    windows = tokenise(load_tokenizer(checkpoint), OF_ALL_LENGTHS)
    model = transformers.AutoModel.from_pretrained(checkpoint, dtype=getattr(torch, precision))
    model = model.to(GPU).eval()
    starts = np.concatenate([[0], np.cumsum([len(window.ids) for window in windows])])
    dumped = layers_of(tmp_path / "dump", 5)
    context = getattr(model.config, "max_position_embeddings", None)
    for batch in window_batches_of_equal_work(windows, 8, context):
        ids = torch.zeros(batch.shape, dtype=torch.int64)
        mask = torch.zeros(batch.shape, dtype=torch.int64)
        for row in range(batch.shape[0]):
            text = windows[batch.windows[min(row, len(batch.windows) - 1)]].ids
            ids[row, : len(text)], mask[row, : len(text)] = torch.from_numpy(text), 1
        with torch.inference_mode():
            states = model(
                input_ids=ids.to(GPU),
                attention_mask=mask.to(GPU),
                output_hidden_states=True,
                use_cache=False,
            ).hidden_states
        for layer, state in enumerate(states):
            values = state.float().cpu().numpy()  # waits
            for row, number in enumerate(batch.windows):
                expected = values[row, : len(windows[number].ids)]
                found = dumped[layer][starts[number] : starts[number + 1]]
                np.testing.assert_array_equal(found, expected)


def test_exhausted_memory_halves_the_batch_until_it_fits(tmp_path, caplog):
    checkpoint = save_tiny_model(tmp_path / "model", "bloom", head=True)
    # Scores of one window of 1,200 tokens take 12 MB, several times; those of sixteen 184 MB.
    windows = ["; " * 600] * 16
    total = torch.cuda.get_device_properties(GPU).total_memory
    torch.cuda.empty_cache()
    allowed = torch.cuda.memory_reserved(GPU) + 256 * 2**20
    torch.cuda.set_per_process_memory_fraction(allowed / total, GPU)
    try:
        with caplog.at_level(logging.INFO, "shape_of_learning"):
            dump(
                checkpoint,
                tmp_path / "dump",
                WIDTHS["bloom"],
                windows,
                window_batch_size=16,
                device="cuda:0",
            )
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, GPU)
    assert "memory is exhausted by 16 windows at a time" in caplog.text
    dump(checkpoint, tmp_path / "cpu", WIDTHS["bloom"], windows, window_batch_size=1)
    for cpu, gpu in zip(layers_of(tmp_path / "cpu"), layers_of(tmp_path / "dump"), strict=True):
        np.testing.assert_allclose(gpu, cpu, rtol=0, atol=1e-5 * np.abs(cpu).max())
    with h5py.File(tmp_path / "dump" / "layer_0.h5") as file:
        assert 1 <= file.attrs["window_batch_size"] < 16


def test_the_states_of_a_batch_have_left_the_gpu_once_they_are_read(tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", "llama", WIDE["llama"]())
    forward = ForwardPass.load(
        checkpoint, role="decoder", precision="float32", last_layer="after_final_norm", device=GPU
    )
    windows = tokenise(load_tokenizer(checkpoint), OF_ALL_LENGTHS)
    forward.hidden_states(windows[:1], 0).states[-1].values()  # makes the libraries' own buffers
    before = active_bytes()
    computed = forward.hidden_states(windows, 0)
    states = sum(computed.states[layer].values().nbytes for layer in range(5))
    assert active_bytes() - before < states / 20


@pytest.mark.parametrize("name", ["gpt_neox", "bloom", "bert"])
def test_a_model_partly_in_host_memory_computes_what_it_does_on_the_gpu(name, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    windows = tokenise(load_tokenizer(checkpoint), WINDOWS)
    results = []
    for spread in (False, True):
        model = with_head(name).from_pretrained(checkpoint).eval()
        model = accelerate.cpu_offload(model, GPU) if spread else model.to(GPU)
        forward = ForwardPass(
            model.base_model, LanguageModelHead(model), device=GPU, last_layer="after_final_norm"
        )
        computed = forward.hidden_states(windows, 0)
        results.append([list(computed.rows(layer)) for layer in range(4)])
    for expected, found in zip(*results, strict=True):
        for rows, rows_spread in zip(expected, found, strict=True):
            np.testing.assert_array_equal(rows_spread, rows)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_a_model_on_two_gpus_computes_what_it_does_on_one(tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", "llama", WIDE["llama"]())
    places = {"model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": 0}
    places |= {"model.layers.2": 1, "model.layers.3": 1, "model.norm": 1}
    places |= {"model.rotary_emb": 0, "lm_head": 1}
    windows = tokenise(load_tokenizer(checkpoint), WINDOWS)
    results = []
    for options in ({}, {"device_map": places}):
        model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, **options).eval()
        model = model if options else model.to(GPU)
        forward = ForwardPass(
            model.base_model, LanguageModelHead(model), device=GPU, last_layer="before_final_norm"
        )
        computed = forward.hidden_states(windows, 0)
        results.append([list(computed.rows(layer)) for layer in range(5)])
    for expected, found in zip(*results, strict=True):
        for rows, rows_spread in zip(expected, found, strict=True):
            np.testing.assert_array_equal(rows_spread, rows)
