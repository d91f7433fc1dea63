"""Hidden states that are kept in memory are those of a dump."""

import threading
import weakref

import numpy as np
import pytest
import torch

from dumps import WINDOWS, dump, hidden_states, sample_of
from shape_of_learning.embeddings import loading, memory
from shape_of_learning.embeddings.hidden_state_files import state_files
from shape_of_learning.embeddings.in_memory import HiddenStatesInMemory
from shape_of_learning.embeddings.memory import available_memory
from shape_of_learning.embeddings.selected_rows import read_selected
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.selections import Selection
from tiny_models import CONFIGURATIONS, WIDTHS, save_stirred_model, save_tiny_model


def layers_of(checkpoint, widths, windows=WINDOWS, *, threads=1, **options):
    """The rows of all layers as they are given out, and the cross-entropy."""
    sample = sample_of(checkpoint, widths, windows, threads=threads, in_memory=True, **options)
    states = HiddenStatesInMemory(sample)
    loss = sample.into(states)
    layers = list(states.measured(lambda layer, rows: (layer, rows), threads))
    assert [layer for layer, _ in layers] == list(range(len(widths)))
    return [rows for _, rows in layers], loss


def assert_as_dumped(folder, checkpoint, widths, windows=WINDOWS, **options):
    _, expected = dump(checkpoint, folder, widths, windows, **options)
    layers, loss = layers_of(checkpoint, widths, windows, **options)
    for layer, rows in enumerate(layers):
        assert rows.dtype == np.float32
        np.testing.assert_array_equal(rows, hidden_states(folder, layer))
    np.testing.assert_equal(vars(loss), vars(expected))


@pytest.mark.parametrize("last_layer", ["after_final_norm", "before_final_norm"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_rows_and_loss_are_bit_for_bit_those_of_a_dump(name, last_layer, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    options = {"window_batch_size": 2, "threads": 2, "last_layer": last_layer}
    assert_as_dumped(tmp_path / "dump", checkpoint, WIDTHS[name], **options)


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_whatever_the_number_of_threads(threads, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    assert_as_dumped(
        tmp_path / "dump", checkpoint, WIDTHS["gpt_neox"], window_batch_size=1, threads=threads
    )


def test_whatever_is_rounded(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "bert", head=True)
    assert_as_dumped(tmp_path / "dump", checkpoint, WIDTHS["bert"], precision="bfloat16")


def test_a_sample_that_memory_cannot_hold_is_refused_before_weights_are_loaded(
    tmp_path, monkeypatch
):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    states = 4 * sample_of(checkpoint, [32] * 4).tokens * 4 * 32
    monkeypatch.setattr(loading, "_load", lambda *arguments: pytest.fail("weights are loaded"))
    monkeypatch.setattr(memory, "available_memory", lambda: states)  # and none for the weights
    message = (
        r"hidden states of the sample take .* MB .* are available; lower `sampling.windows`, or"
    )
    with pytest.raises(InputError, match=message):
        sample_of(checkpoint, [32] * 4, in_memory=True)


def test_a_control_group_limits_memory_that_the_machine_has(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 4000 kB\nMemAvailable:    3000 kB\n")
    (tmp_path / "proc/self/cgroup").write_text("9:name=systemd:/\n0::/job/step\n")
    assert available_memory(tmp_path) == 3000 * 1024
    job = tmp_path / "sys/fs/cgroup/job"
    (job / "step").mkdir(parents=True)
    (job / "step/memory.max").write_text("max\n")
    (job / "memory.max").write_text("1000000\n")
    (job / "memory.current").write_text("600000\n")
    (job / "memory.stat").write_text("anon 500000\ninactive_file 50000\nactive_file 20000\n")
    assert available_memory(tmp_path) == 450_000


def test_where_nothing_is_said_of_memory_nothing_is_refused(tmp_path):
    assert available_memory(tmp_path) is None


def test_memory_that_a_measurement_exhausts_is_one_sentence(tmp_path):
    def measure(layer, rows):
        raise MemoryError("too much")

    sample = sample_of(save_tiny_model(tmp_path / "model", "gpt_neox"), [32] * 4)
    states = HiddenStatesInMemory(sample)
    sample.into(states)
    with pytest.raises(InputError, match=r"hidden state 0 \(too much\); give the job more, or"):
        list(states.measured(measure, 1))


def test_a_defect_of_a_measurement_comes_out_as_it_is(tmp_path):
    def measure(layer, rows):
        if layer == 1:
            raise ValueError("a defect")

    sample = sample_of(save_tiny_model(tmp_path / "model", "gpt_neox"), [32] * 4)
    before = threading.active_count()
    states = HiddenStatesInMemory(sample)
    sample.into(states)
    with pytest.raises(ValueError, match="a defect"):
        list(states.measured(measure, 2))
    assert threading.active_count() <= before


@pytest.mark.parametrize("threads", [1, 2])
def test_a_layer_that_is_measured_is_forgotten(threads, tmp_path):
    sample = sample_of(save_tiny_model(tmp_path / "model", "gpt_neox"), [32] * 4)
    states = HiddenStatesInMemory(sample)
    sample.into(states)
    given_out = []

    def measure(layer, rows):
        given_out.append(weakref.ref(rows))

    for _ in states.measured(measure, threads):
        pass
    assert len(given_out) == 4
    assert all(reference() is None for reference in given_out)


@pytest.mark.parametrize("threads", [1, 4])
def test_what_several_layers_need_is_kept_until_the_last_of_them(threads, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    dump(checkpoint, tmp_path / "dump", [32] * 4, last_layer="both")
    sample = sample_of(checkpoint, [32] * 4, last_layer="both")
    states = HiddenStatesInMemory(sample)
    sample.into(states)
    needed = [[0], [0, 1], [1, 2], [2, 3, 4]]
    given = list(states.measured(lambda layer, *rows: rows, threads, needed))
    files = state_files(tmp_path / "dump", 5, before_final_norm=True)
    for numbers, rows in zip(needed, given, strict=True):
        for number, values in zip(numbers, rows, strict=True):
            dumped = read_selected(files[number], Selection()).vectors
            np.testing.assert_array_equal(values, dumped)
    assert not states._states


def test_where_memory_is_exhausted_midway_all_is_run_again_in_smaller_window_batches(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    dump(checkpoint, tmp_path / "dump", [32] * 4, window_batch_size=1)
    sample = sample_of(checkpoint, [32] * 4, window_batch_size=4)

    def fail(module, arguments):
        if arguments[0].shape[0] > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    sample.forward.model.layers[1].register_forward_pre_hook(fail)
    states = HiddenStatesInMemory(sample)
    sample.into(states)
    for layer, rows in enumerate(states.measured(lambda layer, rows: rows, 1)):
        np.testing.assert_array_equal(rows, hidden_states(tmp_path / "dump", layer))
