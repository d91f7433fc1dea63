import numpy as np
import pytest
import torch

from clouds import gaussian
from shape_of_learning.estimators.arrays import as_matrix, distinct_rows


def test_distinct_rows_are_first_appearances_and_differ_in_the_last_bit_but_not_by_a_negative_zero():
    X = gaussian(5, 3)
    assert distinct_rows(X[[3, 1, 3, 0, 1, 4]]).tolist() == [0, 1, 3, 5]
    assert distinct_rows([[0.0, 1.0], [-0.0, 1.0], [0.0, np.nextafter(1.0, 2.0)]]).tolist() == [
        0,
        2,
    ]


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int32]
)
def test_a_tensor_is_read_without_loss(dtype):
    tensor = torch.tensor([[1.5, -2.0], [0.0, 96.0]]).to(dtype)
    expected = np.array([[int(dtype != torch.int32) * 0.5 + 1, -2.0], [0.0, 96.0]])
    np.testing.assert_array_equal(as_matrix(tensor), expected)
