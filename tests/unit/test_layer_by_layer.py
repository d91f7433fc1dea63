"""Hidden states that are measured while the windows go through the model are those of a dump."""

import gc
import json
import sys
import threading
import time
import weakref

import numpy as np
import pytest
import torch
import transformers

from dumps import WINDOWS, dump, sample_of
from little_memory import said_with_little_memory
from shape_of_learning.embeddings.half_precision import HalfPrecision
from shape_of_learning.embeddings.hidden_state_files import read_hidden_states
from shape_of_learning.embeddings.hidden_state_sites import Site, find_sites
from shape_of_learning.embeddings.layer_by_layer import PROBED_TOKENS, measure_layer_by_layer
from shape_of_learning.embeddings.paused_pass import PausedPass, pausing_at
from shape_of_learning.errors import InputError
from tiny_models import CONFIGURATIONS, WIDTHS, save_stirred_model, save_tiny_model, save_tokenizer


def layers_of(checkpoint, widths, windows=WINDOWS, **options):
    """The rows of all layers as they are given out, and the cross-entropy."""
    layers = {}
    loss = measure_layer_by_layer(
        sample_of(checkpoint, widths, windows, **options), copied, layers.__setitem__
    )
    assert list(layers) == list(range(len(widths)))
    return layers, loss


def copied(layer, rows):
    return rows.copy()


def ignore(layer, measured):
    """Take nothing."""


def assert_as_dumped(folder, checkpoint, widths, windows=WINDOWS, **options):
    _, expected = dump(checkpoint, folder, widths, windows, **options)
    layers, loss = layers_of(checkpoint, widths, windows, **options)
    for layer, rows in layers.items():
        assert rows.dtype == np.float32
        np.testing.assert_array_equal(rows, read_hidden_states(folder, layer))
    np.testing.assert_equal(vars(loss), vars(expected))


@pytest.mark.parametrize("last_layer", ["after_final_norm", "before_final_norm"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_rows_and_loss_are_bit_for_bit_those_of_a_dump(name, last_layer, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    options = {"batch_size": 2, "threads": 2, "last_layer": last_layer}
    assert_as_dumped(tmp_path / "dump", checkpoint, WIDTHS[name], **options)


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_whatever_the_number_of_threads(threads, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    options = {"batch_size": 1, "threads": threads, "keep_first_token": False}
    assert_as_dumped(tmp_path / "dump", checkpoint, WIDTHS["gpt_neox"], **options)


@pytest.mark.parametrize(
    "options", [{"keep_special_tokens": False}, {"precision": "bfloat16"}], ids=repr
)
def test_whatever_is_kept_and_rounded(options, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "bert", head=True)
    assert_as_dumped(tmp_path / "dump", checkpoint, WIDTHS["bert"], **options)


def test_hidden_states_in_half_precision_are_rounded_and_checked_as_for_a_dump(tmp_path):
    checkpoint, windows = save_tiny_model(tmp_path / "model", "gpt_neox"), WINDOWS * 2
    assert_as_dumped(tmp_path / "dump", checkpoint, [32] * 4, windows, dtype="float16")
    model = transformers.AutoModel.from_pretrained(checkpoint)
    model.layers[1].mlp.dense_4h_to_h.bias.data[:] = 1e5
    model.save_pretrained(checkpoint)
    with pytest.raises(InputError, match=r"hidden state 2 .* reaches 1e\+05, but float16 ends"):
        layers_of(checkpoint, [32] * 4, windows, dtype="float16")


def test_of_a_broken_checkpoint_all_is_given_out_and_the_loss_is_infinite(tmp_path, caplog):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox", head=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint)
    model.gpt_neox.layers[1].mlp.dense_4h_to_h.bias.data[:] = np.nan
    model.save_pretrained(checkpoint)
    layers, loss = layers_of(checkpoint, [32] * 4)
    assert [np.isnan(layers[layer]).all() for layer in range(4)] == [False, False, True, True]
    assert loss.loss == np.inf
    assert "hidden state 2 of the model" in caplog.text


def refused_before_measuring(checkpoint, widths):
    def measure(layer, rows):
        raise AssertionError(f"layer {layer} is measured")

    with pytest.raises(InputError) as caught:
        measure_layer_by_layer(sample_of(checkpoint, widths), measure, ignore)
    return str(caught.value)


def test_a_model_that_is_not_as_its_entry_says_is_refused_before_anything_is_measured(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    assert "has 3 layers, but its entry says 5" in refused_before_measuring(checkpoint, [32] * 6)
    message = refused_before_measuring(checkpoint, [32, 32, 16, 32])
    assert "hidden state 2 of the model" in message
    assert "has width 32, but its entry says 16" in message


def test_a_hidden_state_that_no_module_sees_is_refused(tmp_path):
    sample = sample_of(save_tiny_model(tmp_path / "model", "gpt2"), [32] * 4)
    model = sample.batches.forward.model

    def run():
        states = model(torch.ones((2, 3), dtype=torch.int64), output_hidden_states=True)
        return [*states.hidden_states[:2], states.hidden_states[2] + 0]

    with pytest.raises(InputError, match="hidden state 2 of a `gpt2` model does not pass"):
        find_sites(model, run)


def test_a_hidden_state_that_is_padded_within_the_model_is_refused(tmp_path):
    configuration = transformers.LongformerConfig(
        vocab_size=300, hidden_size=32, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=130, attention_window=[8] * 3,
    )  # fmt: skip
    checkpoint = tmp_path / "model"
    transformers.LongformerModel(configuration).save_pretrained(checkpoint)
    save_tokenizer(checkpoint, special=True)
    with pytest.raises(InputError, match=r"hidden state of shape .* is no 5 windows of \d+ tokens"):
        layers_of(checkpoint, [32] * 4)


def test_a_model_that_exchanges_modules_is_refused(tmp_path):
    configuration = transformers.BigBirdConfig(
        vocab_size=300, hidden_size=32, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=512, block_size=8, num_random_blocks=1,
    )  # fmt: skip
    checkpoint = tmp_path / "model"
    transformers.BigBirdModel(configuration).save_pretrained(checkpoint)
    save_tokenizer(checkpoint, special=True)
    message = refused_before_measuring(checkpoint, [32] * 4)
    assert "a `big_bird` model exchanges modules during a forward pass" in message


def test_a_block_that_gives_back_its_input_is_a_layer_like_others(tmp_path):
    sample = sample_of(save_tiny_model(tmp_path / "model", "gpt_neox"), [32] * 4)
    sample.batches.forward.model.layers[1].forward = lambda states, **options: states
    layers = {}
    measure_layer_by_layer(sample, copied, layers.__setitem__)
    np.testing.assert_array_equal(layers[1], layers[2])
    assert not np.array_equal(layers[2], layers[3])


def test_a_call_with_two_hidden_states_pauses_for_each():
    class Sum(torch.nn.Module):
        def forward(self, one, other):
            return one + other

    module, tensors = Sum(), (torch.ones(2), torch.zeros(2))
    sites = [Site(module, 0, is_output=False, path=(0, n)) for n in range(2)]
    paused = PausedPass(sites, lambda: module(*tensors))
    with pausing_at(sites):
        assert paused.switch() is tensors[0]
        assert paused.switch() is tensors[1]
        assert paused.switch().tolist() == [1, 1]


def test_what_a_checkpoint_says_of_its_output_costs_no_memory(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    file = checkpoint / "config.json"
    asked = {"output_hidden_states": True, "output_attentions": True, "use_cache": True}
    file.write_text(json.dumps({**json.loads(file.read_text()), **asked}))
    forward = sample_of(checkpoint, [32] * 4).batches.forward
    kept = forward.run([np.arange(5)], padding=0)
    assert [name for name, value in kept.items() if value is not None] == ["last_hidden_state"]


def test_the_longest_windows_tell_where_hidden_states_are(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    assert_as_dumped(tmp_path / "dump", checkpoint, [32] * 4, ["", "", *WINDOWS])


def test_memory_that_a_measurement_exhausts_is_no_matter_of_the_batch_size(tmp_path):
    layers = []

    def measure(layer, rows):
        layers.append(layer)
        raise MemoryError("too much")

    sample = sample_of(save_tiny_model(tmp_path / "model", "gpt_neox"), [32] * 4)
    with pytest.raises(InputError, match=r"hidden state 0 .* \(too much\); give the job more, or"):
        measure_layer_by_layer(sample, measure, ignore)
    assert layers == [0]


def test_so_is_memory_that_rounding_exhausts(tmp_path, monkeypatch):
    def fail(*arguments):
        raise MemoryError("too much")

    monkeypatch.setattr(HalfPrecision, "check", fail)
    sample = sample_of(save_tiny_model(tmp_path / "model", "gpt_neox"), [32] * 4, dtype="float16")
    with pytest.raises(InputError, match=r"hidden state 0 .* \(too much\); give the job more, or"):
        measure_layer_by_layer(sample, copied, ignore)


def test_a_layer_is_measured_while_the_next_one_and_no_other_is_computed(tmp_path):
    sample = sample_of(save_tiny_model(tmp_path / "model", "gpt_neox"), [32] * 4, batch_size=2)
    entered = [threading.Event() for _ in range(3)]
    watched = []
    for block, event in zip(sample.batches.forward.model.layers, entered, strict=True):

        def note(module, arguments, event=event):
            if arguments[0].shape[1] > PROBED_TOKENS:
                event.set()

        block.register_forward_pre_hook(note)

    def measure(layer, rows):
        if layer == 0:
            watched.append(entered[0].wait(60))
            watched.append(entered[1].wait(1))

    measure_layer_by_layer(sample, measure, ignore)
    assert watched == [True, False]
    assert all(event.is_set() for event in entered)


@pytest.mark.parametrize("threads", [1, 2])
def test_no_more_layers_are_in_memory_than_are_measured_and_computed(threads, tmp_path):
    configuration = transformers.GPTNeoXConfig(
        vocab_size=300, hidden_size=32, num_hidden_layers=12, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=128,
    )  # fmt: skip
    checkpoint = save_stirred_model(tmp_path / "model", "gpt_neox", configuration)
    given_out, alive = [], []

    def measure(layer, rows):
        given_out.append(weakref.ref(rows))
        time.sleep(0.05)
        alive.append(sum(reference() is not None for reference in given_out))

    measure_layer_by_layer(sample_of(checkpoint, [32] * 13, threads=threads), measure, ignore)
    assert len(alive) == 13
    assert max(alive) <= threads


def defect_in_the_pass(sample):
    def fail(module, arguments):
        if arguments[0].shape[0] == 1:  # the last batch; others pause before this block
            raise ValueError("a defect")

    sample.batches.forward.model.layers[1].register_forward_pre_hook(fail)
    return lambda layer, rows: None


def defect_in_the_measurement(sample):
    def fail(layer, rows):
        if layer == 1:
            raise ValueError("a defect")

    return fail


@pytest.mark.parametrize("defect", [defect_in_the_pass, defect_in_the_measurement])
def test_a_defect_comes_out_and_nothing_remains(defect, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    sample = sample_of(checkpoint, [32] * 4, batch_size=2, threads=2)
    before = threading.active_count()
    measure = defect(sample)
    with pytest.raises(ValueError, match="a defect"):
        measure_layer_by_layer(sample, measure, ignore)
    assert threading.active_count() <= before
    gc.collect()
    assert not any(type(thing) is PausedPass and thing for thing in gc.get_objects())


def test_where_memory_is_exhausted_midway_all_is_measured_again_in_smaller_batches(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    dump(checkpoint, tmp_path / "dump", [32] * 4, batch_size=1)
    sample = sample_of(checkpoint, [32] * 4, batch_size=4)
    taken = []

    def fail(module, arguments):
        rows, length, _ = arguments[0].shape
        if rows > 1 and length > PROBED_TOKENS:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    sample.batches.forward.model.layers[1].register_forward_pre_hook(fail)
    measure_layer_by_layer(sample, copied, lambda layer, rows: taken.append((layer, rows)))
    layers = dict(taken)
    assert [layer for layer, _ in taken[-4:]] == [0, 1, 2, 3]
    for layer in range(4):
        np.testing.assert_array_equal(layers[layer], read_hidden_states(tmp_path / "dump", layer))


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space as Linux does")
def test_memory_too_small_for_one_window_is_one_sentence(tmp_path):
    # The scores of a single window take 128 MB.
    said = said_with_little_memory(
        "from test_layer_by_layer import layers_of; "
        "layers_of(checkpoint, widths, windows, batch_size=8)",
        save_tiny_model(tmp_path / "model", "bloom", head=True),
        ["; " * 2000] * 8,
        32 * 2**20,
    )
    for size in (8, 4, 2, 1):
        assert f"memory is exhausted by {size} windows at a time" in said
    assert "memory of the CPU is exhausted by one window of 4000 tokens" in said
    assert "lower `sampling.windows`, or set `embeddings.dump: true`" in said
