import math

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from clouds import gaussian, hidden_states, rotation
from hard_clouds import CLOUDS, exactly_centred, over_all_pairs
from shape_of_learning import average_cosine
from shape_of_learning.estimators import average_cosine as module

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("rows_per_block", [1, 7, 1024])
def test_the_closed_form_is_the_mean_over_all_pairs(rows_per_block, monkeypatch):
    X = hidden_states()
    monkeypatch.setattr(module, "BLOCK_BYTES", rows_per_block * 8 * X.shape[1])
    # Cosines lie in [-1, 1], and so do the errors of their mean in units of the last place.
    assert average_cosine(X) == pytest.approx(over_all_pairs(X), abs=1e-14)
    assert average_cosine(X, center=True) == pytest.approx(over_all_pairs(X, True), abs=1e-14)


@pytest.mark.parametrize("rows_per_block", [7, 1024])
@pytest.mark.parametrize(
    ("name", "center"),
    [(name, False) for name in CLOUDS]
    # In these, most rows lie at the mean, as far as float64 can tell.
    + [(name, True) for name in CLOUDS if not name.startswith("lengths")],
)
def test_average_cosine_of_hard_clouds_is_that_of_all_pairs(
    name, center, rows_per_block, monkeypatch
):
    X = CLOUDS[name]()
    monkeypatch.setattr(module, "BLOCK_BYTES", rows_per_block * 8 * X.shape[1])
    # The mean is rounded relative to the largest deviation from it, and turns a row by no more than that
    # rounding over its length.
    lengths = np.linalg.norm(exactly_centred(X), axis=1) if center else np.ones(len(X))
    turn = 10 * np.finfo(float).eps * float(lengths.max() / lengths.min())
    assert average_cosine(X, center) == pytest.approx(over_all_pairs(X, center), abs=1e-14 + turn)


def test_a_sample_estimates_the_whole():
    # Half the vectors point one way, half the other, with weights that make the mean cosine 3/4.
    share = (1 + math.sqrt(0.75)) / 2
    X = np.outer(np.where(np.arange(10_000) < share * 10_000, 1, -1), gaussian(1, 5)[0])
    assert average_cosine(X) == pytest.approx(0.75, abs=1e-3)
    assert average_cosine(X[::10]) == pytest.approx(0.75, abs=5e-3)


def test_one_direction_has_cosine_one():
    assert average_cosine(np.outer([1.0, 2.0, 5.0], gaussian(1, 9)[0])) == pytest.approx(1)


def test_opposite_vectors_have_cosine_minus_one():
    assert average_cosine([[1.0, 1.0], [-2.0, -2.0]]) == pytest.approx(-1)


@pytest.mark.parametrize("scales", [[1e300, 1e-300], [1e308, 5e-324], [1e30, 1.0]])
def test_length_does_not_matter_however_extreme(scales):
    X = np.array([[1.0, 1.0], [0.0, 1.0]]) * np.array(scales)[:, None]
    assert average_cosine(X) == pytest.approx(math.sqrt(0.5), rel=1e-15)


def test_centring_survives_an_offset():
    X = hidden_states()
    # An offset of 1e6 rounds coordinates of size 1 by 1e-10.
    shifted = average_cosine(X + 1e6, center=True)
    assert shifted == pytest.approx(average_cosine(X, center=True), abs=1e-10)


def test_rows_of_zeros_are_left_out():
    X = hidden_states(n=30)
    with_zeros = np.insert(X, [0, 4, 4, 30], 0.0, axis=0)
    assert average_cosine(with_zeros) == pytest.approx(average_cosine(X), rel=1e-13)


def test_a_row_at_the_mean_has_no_direction_after_centring():
    direction = gaussian(1, 6)[0]
    X = 0.1 + np.outer([-1.0, 0.0, 1.0], direction)
    assert average_cosine(X, center=True) == pytest.approx(-1)


def test_fewer_than_two_directions_are_undefined():
    assert math.isnan(average_cosine([[0.0, 0.0], [1.0, 2.0]]))
    assert math.isnan(average_cosine(np.full((5, 3), 0.1), center=True))


@pytest.mark.parametrize("center", [True, False])
def test_average_cosine_is_unchanged_by_rotation_scale_and_order(center):
    X = hidden_states()
    changed = 1e-3 * (X @ rotation(X.shape[1]))[::-1]
    assert average_cosine(changed, center) == pytest.approx(average_cosine(X, center), abs=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_tensor_gives_what_its_values_give_as_an_array(dtype):
    tensor = torch.from_numpy(hidden_states()).to(dtype)
    assert average_cosine(tensor) == average_cosine(tensor.double().numpy())


def test_the_number_of_threads_changes_no_bit():
    X = hidden_states(n=3000, d=200)
    with threadpool_limits(1):
        alone = average_cosine(X, center=True)
    with threadpool_limits(2):
        assert average_cosine(X, center=True) == alone


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(5), "^X must have two dimensions"),
        (np.ones((1, 5)), "^X has 1 row, but a pair takes at least 2"),
        ([[0.0, np.nan], [1.0, 1.0]], "^X holds NaN or infinity"),
    ],
)
def test_bad_input_is_refused_by_name_and_reason(X, message):
    with pytest.raises(ValueError, match=message):
        average_cosine(X)
