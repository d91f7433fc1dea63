"""Window batches hold every window once, with equal work on a GPU and never too few tokens."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shape_of_learning.embeddings.tokenised_windows import (
    LEAST_TOKENS,
    LENGTH_UNIT,
    TokenisedWindow,
    batch_by_length,
    batch_by_work,
)

LENGTHS = st.lists(st.integers(1, 700), min_size=1, max_size=60)
CONTEXTS = st.sampled_from([None, 700, 1024])


def make_windows(lengths):
    return [TokenisedWindow(np.full(n, 7), np.zeros(n, bool)) for n in lengths]


@given(LENGTHS, st.integers(1, 64), CONTEXTS)
def test_window_batches_of_equal_work_hold_every_window_once_and_equally_many_tokens(
    lengths, size, context
):
    batches = batch_by_work(make_windows(lengths), size, context)
    window_numbers = np.concatenate([batch.windows for batch in batches])
    assert sorted(window_numbers.tolist()) == list(range(len(lengths)))
    (tokens,) = {rows * length for rows, length in (batch.shape for batch in batches)}
    if context is None:
        longest = -(-max(lengths) // LENGTH_UNIT) * LENGTH_UNIT
        assert tokens == min(size, len(lengths)) * longest
    for batch in batches:
        rows, length = batch.shape
        assert len(batch.windows) <= rows
        assert max(lengths[number] for number in batch.windows) <= length
        assert context is None or length <= context


@given(LENGTHS, st.integers(1, 64), CONTEXTS)
def test_every_batch_has_the_least_number_of_tokens(lengths, size, context):
    for batch in batch_by_length(make_windows(lengths), size, context):
        rows, length = batch.shape
        assert rows * length >= LEAST_TOKENS == 16
        assert max(lengths[number] for number in batch.windows) <= length
