import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.selections import contiguous_batches, shuffled_batches
from shape_of_learning.random_streams import random_stream, stream_seed

sizes = st.integers(1, 50).flatmap(
    lambda size: st.tuples(st.integers(size, 40 * size), st.just(size))
)


@given(sizes)
def test_contiguous_batches_cover_all_vectors_in_order_and_are_large_enough(vectors_and_size):
    vectors, size = vectors_and_size
    batches = contiguous_batches(vectors, size)
    rows = np.concatenate([np.arange(vectors)[batch] for batch in batches])
    np.testing.assert_array_equal(rows, np.arange(vectors))
    lengths = [batch.stop - batch.start for batch in batches]
    assert min(lengths) >= size
    assert max(lengths) - min(lengths) <= 1
    assert len(batches) == vectors // size


@given(sizes)
def test_shuffled_batches_are_disjoint_and_of_exactly_one_size(vectors_and_size):
    vectors, size = vectors_and_size
    batches = shuffled_batches(vectors, size, random_stream(0, "batches"))
    assert [len(batch) for batch in batches] == [size] * (vectors // size)
    rows = np.concatenate(batches)
    assert len(np.unique(rows)) == len(rows)
    assert rows.max() < vectors


@pytest.mark.parametrize(
    "divide", [contiguous_batches, lambda n, size: shuffled_batches(n, size, None)]
)
def test_too_few_vectors_are_refused(divide):
    with pytest.raises(
        InputError, match=r"100 vectors, fewer than one batch of 4096; raise `sampling.*token_types"
    ):
        divide(100, 4096)


def test_a_random_stream_belongs_to_its_name_alone():
    seed = stream_seed(0, "batches", model="m", revision="r", layer=1)
    assert seed == stream_seed(0, "batches", model="m", revision="r", layer=1)
    others = [
        stream_seed(1, "batches", model="m", revision="r", layer=1),
        stream_seed(0, "windows", model="m", revision="r", layer=1),
        stream_seed(0, "batches", model="n", revision="r", layer=1),
        stream_seed(0, "batches", model="m", revision="s", layer=1),
        stream_seed(0, "batches", model="m", revision="r", layer=11),
        stream_seed(0, "batches", model="mr", revision="", layer=1),
        stream_seed(0, "batches", model="m", revision="r"),
    ]
    assert len({seed, *others}) == len(others) + 1
