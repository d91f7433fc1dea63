"""Dumps and hidden states in memory on a GPU, on a device that pretends to be one."""

import logging

import numpy as np
import pytest
import torch
from shape_of_learning.embeddings.in_memory import HiddenStatesInMemory

from dumps import WINDOWS, cross_entropy, dump, hidden_states, sample_of
from pretended_cuda import pretended_cuda
from shape_of_learning.embeddings.tokenisation import load_tokenizer, tokenise
from shape_of_learning.errors import InputError
from shape_of_learning.estimators.arrays import is_on_gpu
from tiny_models import CONFIGURATIONS, WIDTHS, save_stirred_model

GPU = torch.device("cuda", 0)


def assert_close(found, expected):
    # As in test_embedding_dump: a few hundred roundings of 6e-8 in a row.
    atol = 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def layers_in_memory(sample):
    """Where the hidden states are kept, the rows of all layers as they are given out, and the loss."""
    states = HiddenStatesInMemory(sample)
    loss = sample.into(states)
    rows = list(states.measured(lambda layer, rows: rows, 1))
    assert all(is_on_gpu(each) for each in rows)
    return states.device, [each.cpu().numpy() for each in rows], loss


@pytest.mark.parametrize("last_layer", ["after_final_norm", "before_final_norm"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_dump_and_memory_are_those_of_the_cpu(name, last_layer, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    options = {"last_layer": last_layer, "window_batch_size": 2}
    _, expected = dump(checkpoint, tmp_path / "cpu", WIDTHS[name], **options)
    with pretended_cuda():
        options |= {"device": GPU}
        _, dumped = dump(checkpoint, tmp_path / "gpu", WIDTHS[name], **options)
        device, rows, kept = layers_in_memory(sample_of(checkpoint, WIDTHS[name], **options))
    assert device == GPU
    for layer in range(4):
        on_gpu = hidden_states(tmp_path / "gpu", layer)
        assert_close(on_gpu, hidden_states(tmp_path / "cpu", layer))
        np.testing.assert_array_equal(rows[layer], on_gpu)
    assert kept == dumped
    # As in test_cross_entropy: terms below 20, each changed by its logit.
    assert dumped.loss == pytest.approx(expected.loss, abs=1e-3)
    assert dumped.predicted_tokens == expected.predicted_tokens


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["gpt_neox", "bert"])
def test_in_half_precision_too(name, precision, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    options = {"window_batch_size": 2, "precision": precision, "device": GPU}
    with pretended_cuda():
        _, dumped = dump(checkpoint, tmp_path / "gpu", WIDTHS[name], **options)
        _, rows, kept = layers_in_memory(sample_of(checkpoint, WIDTHS[name], **options))
    for layer in range(4):
        np.testing.assert_array_equal(rows[layer], hidden_states(tmp_path / "gpu", layer))
    assert kept == dumped


def test_hidden_states_that_the_gpu_cannot_keep_are_kept_by_the_host(tmp_path):
    checkpoint, windows = save_stirred_model(tmp_path / "model", "gpt_neox"), WINDOWS * 40
    options = {"device": GPU, "window_batch_size": 1}
    with pretended_cuda() as gpu:
        dump(checkpoint, tmp_path / "dump", [32] * 4, windows, **options)
        sample = sample_of(checkpoint, [32] * 4, windows, **options)
        gpu.total = gpu.limit = gpu.allocated + 4 * sample.tokens * 32 * 4
        device, rows, _ = layers_in_memory(sample)
    assert device == torch.device("cpu")
    for layer in range(4):
        np.testing.assert_array_equal(rows[layer], hidden_states(tmp_path / "dump", layer))


@pytest.mark.parametrize("in_memory", [False, True])
def test_exhausted_memory_halves_the_window_batch_until_it_fits(in_memory, tmp_path, caplog):
    checkpoint, windows = save_stirred_model(tmp_path / "model", "bloom"), ["; " * 100] * 16
    dump(checkpoint, tmp_path / "cpu", [32] * 4, windows, window_batch_size=1)
    with pretended_cuda() as gpu, caplog.at_level(logging.INFO, "shape_of_learning"):
        sample = sample_of(checkpoint, [32] * 4, windows, window_batch_size=16, device=GPU)
        # Attention scores of one window and head take 160 kB, in several copies.
        gpu.limit = gpu.allocated + 2 * 4 * sample.tokens * 32 * 4 + 2 * 2**20
        if in_memory:
            _, rows, _ = layers_in_memory(sample)
        else:
            gpu.limit = gpu.allocated + 4 * 2**20
            dump(
                checkpoint,
                tmp_path / "gpu",
                [32] * 4,
                windows,
                window_batch_size=16,
                device=GPU,
            )
            rows = [hidden_states(tmp_path / "gpu", layer) for layer in range(4)]
    assert "memory is exhausted by 16 windows at a time" in caplog.text
    for layer in range(4):
        assert_close(rows[layer], hidden_states(tmp_path / "cpu", layer))


def test_memory_too_small_for_one_window_is_one_sentence(tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", "bloom")
    with pretended_cuda() as gpu:
        sample = sample_of(checkpoint, [32] * 4, ["; " * 100] * 2, device=GPU)
        states = HiddenStatesInMemory(sample)
        gpu.limit = gpu.allocated + 10_000
        with pytest.raises(InputError, match="memory of the CUDA is exhausted by one window of"):
            sample.into(states)


def test_a_model_for_which_others_have_left_no_memory_is_told_apart_from_a_broken_one(tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", "llama")
    with pretended_cuda() as gpu:
        gpu.limit = 0  # the GPU says that memory is free, but this process may not have it
        with pytest.raises(InputError, match="--resources gpu=1"):
            sample_of(checkpoint, [32] * 4, device=GPU)


def test_a_model_without_room_on_the_gpu_computes_where_there_is(tmp_path, caplog):
    checkpoint = save_stirred_model(tmp_path / "model", "llama")
    _, expected = dump(checkpoint, tmp_path / "cpu", [32] * 4)
    with pretended_cuda() as gpu, caplog.at_level(logging.INFO, "shape_of_learning"):
        gpu.total = gpu.limit = 1000
        _, loss = dump(checkpoint, tmp_path / "elsewhere", [32] * 4, device=GPU)
    assert "found room on cpu alone" in caplog.text
    for layer in range(4):
        rows = hidden_states(tmp_path / "elsewhere", layer)
        np.testing.assert_array_equal(rows, hidden_states(tmp_path / "cpu", layer))
    assert loss == expected


def test_the_states_of_a_window_batch_have_left_the_gpu_once_they_are_read(tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", "llama")
    windows = tokenise(load_tokenizer(checkpoint), WINDOWS)
    with pretended_cuda() as gpu:
        forward = sample_of(checkpoint, [32] * 4, device=GPU).forward
        forward.hidden_states(windows[:1], 0)  # makes what the library keeps
        before = gpu.allocated
        computed = forward.hidden_states(windows, 0)
        states = sum(computed.states[layer].values().nbytes for layer in range(4))
        assert gpu.allocated - before < states / 20


def test_a_copy_that_is_not_waited_for_is_seen(tmp_path):
    """The device tells whether our code waits: else the tests above would show nothing of it."""
    checkpoint = save_stirred_model(tmp_path / "model", "gpt_neox")
    windows = tokenise(load_tokenizer(checkpoint), WINDOWS)
    with pretended_cuda():
        forward = sample_of(checkpoint, [32] * 4, device=GPU).forward
        copy = forward.hidden_states(windows, 0).states[1]
        assert np.isnan(copy._tensor.numpy()).all()
        assert np.isfinite(copy.values()).all()


def test_a_planted_mixing_of_devices_is_found(tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", "gpt_neox")
    with pretended_cuda():
        sample = sample_of(checkpoint, [32] * 4, device=GPU)
        bias = torch.ones(32)  # not moved
        sample.forward.model.layers[1].register_forward_hook(lambda m, i, output: output + bias)
        with pytest.raises(InputError, match="on the same device"):
            sample.into(HiddenStatesInMemory(sample))


@pytest.mark.parametrize("name", ["gpt_neox", "bert"])
def test_the_loss_of_window_batches_of_equal_work_is_that_of_single_windows(name, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    with pretended_cuda():
        losses = [
            cross_entropy(
                checkpoint, tmp_path / str(n), name, WINDOWS * 4, device=GPU, window_batch_size=n
            )
            for n in (1, 5)
        ]
    assert losses[0].loss == pytest.approx(losses[1].loss, abs=1e-3)
