import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dumps import WINDOWS
from shape_of_learning.embeddings.cross_entropy import next_tokens
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.tokenisation import TokenisedWindow, load_tokenizer, tokenise
from shape_of_learning.embeddings.window_batches import (
    LEAST_TOKENS,
    LENGTH_UNIT,
    window_batches_by_length,
    window_batches_of_equal_work,
)
from tiny_models import save_stirred_model

LENGTHS = st.lists(st.integers(1, 700), min_size=1, max_size=60)


def windows_of(lengths):
    return [TokenisedWindow(np.full(n, 7), np.zeros(n, bool)) for n in lengths]


@given(LENGTHS, st.integers(1, 64), st.sampled_from([None, 700, 1024]))
def test_window_batches_of_equal_work_hold_every_window_once_and_have_equally_many_tokens(
    lengths, size, context
):
    batches = window_batches_of_equal_work(windows_of(lengths), size, context)
    held = np.concatenate([batch.windows for batch in batches])
    assert sorted(held.tolist()) == list(range(len(lengths)))
    assert len({rows * length for rows, length in (batch.shape for batch in batches)}) == 1
    for batch in batches:
        rows, length = batch.shape
        assert len(batch.windows) <= rows
        assert max(lengths[number] for number in batch.windows) <= length
        assert context is None or length <= context


@given(LENGTHS, st.integers(1, 64))
def test_a_batch_of_equal_work_is_no_larger_than_asked_for(lengths, size):
    rows, length = window_batches_of_equal_work(windows_of(lengths), size, None)[0].shape
    rounded = -(-max(lengths) // LENGTH_UNIT) * LENGTH_UNIT
    assert rows * length == min(size, len(lengths)) * rounded


def test_little_is_padded_in_window_batches_of_equal_work():
    lengths = [*np.random.default_rng(0).normal(120, 25, 128).astype(int).tolist(), 400]
    batches = window_batches_of_equal_work(windows_of(lengths), 8, None)
    computed = sum(rows * length for rows, length in (batch.shape for batch in batches))
    to_the_longest = len(lengths) * max(lengths)
    assert sum(lengths) < computed < to_the_longest / 2


def test_window_batches_by_length_are_as_long_as_their_longest_window():
    batches = window_batches_by_length(windows_of([30, 90, 50, 90, 10]), 2, 512)
    assert [(batch.windows.tolist(), batch.shape) for batch in batches] == [
        ([1, 3], (2, 90)),
        ([2, 0], (2, 50)),
        ([4], (1, LEAST_TOKENS)),
    ]


@given(LENGTHS, st.integers(1, 64), st.sampled_from([None, 700, 1024]))
def test_no_batch_is_so_small_that_it_is_multiplied_otherwise(lengths, size, context):
    for batch in window_batches_by_length(windows_of(lengths), size, context):
        rows, length = batch.shape
        assert rows * length >= LEAST_TOKENS
        assert max(lengths[number] for number in batch.windows) <= length


def test_a_small_batch_is_padded_no_further_than_the_context():
    assert window_batches_by_length(windows_of([3]), 1, 8)[0].shape == (1, 8)


def passes(checkpoint, batches, windows, predicted=None):
    """Hidden states by window and layer, and likelihoods, of a forward pass in these batches."""
    forward = ForwardPass.load(
        checkpoint,
        role="decoder",
        precision="float32",
        last_layer="after_final_norm",
        device=torch.device("cpu"),
    )
    rows, sums = {}, np.zeros(len(windows))
    for batch in batches:
        computed = forward.hidden_states(
            [windows[n] for n in batch.windows],
            0,
            [predicted[n] for n in batch.windows],
            batch.shape,
        )
        sums[batch.windows] = computed.sums.values()
        for layer in range(len(computed.states)):
            for n, values in zip(batch.windows, computed.rows(layer), strict=True):
                rows[int(n), layer] = values
    return rows, sums


@pytest.mark.parametrize("name", ["gpt_neox", "bloom", "gpt2"])
def test_rows_that_fill_up_and_padding_change_nothing(name, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    windows = tokenise(load_tokenizer(checkpoint), WINDOWS)
    predicted = [next_tokens(window) for window in windows]
    full = window_batches_of_equal_work(windows, 2, 128)
    assert any(len(batch.windows) < batch.shape[0] for batch in full)
    alone, sums_alone = passes(
        checkpoint, window_batches_by_length(windows, 1, None), windows, predicted
    )
    together, sums_together = passes(checkpoint, full, windows, predicted)
    for key, expected in alone.items():
        # As in test_embedding_dump: a few hundred roundings in a row.
        atol = 1e-5 * np.abs(expected).max()
        np.testing.assert_allclose(together[key], expected, rtol=0, atol=atol)
    # A likelihood sums at most 64 terms below 20, each changed by that of the logits above.
    np.testing.assert_allclose(sums_together, sums_alone, rtol=0, atol=1e-5 * 64 * 20)
