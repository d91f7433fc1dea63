import math

import numpy as np
import pytest
import torch
from scipy.linalg import blas as scipy_blas
from scipy.linalg import lapack

import shape_of_learning as sol
from clouds import gaussian
from shape_of_learning.estimators import blas
from shape_of_learning.estimators import linearity as scores
from shape_of_learning.estimators import pair as pairs
from shape_of_learning.estimators.linearity import fit_errors, summarise_errors
from shape_of_learning.estimators.pair import Pair

pytestmark = pytest.mark.filterwarnings("error")


def number_windows(n, count=32):
    return np.arange(n) * count // n


def draw_block(n=900, d=24, seed=0):
    """Draw vectors before and after a block that is partly linear."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d)) @ random.standard_normal((d, d)) + 3
    change = np.tanh(X @ random.standard_normal((d, d)) / 4) + 0.3 * random.standard_normal((n, d))
    return X, X + change


def solve_by_svd(X, T, fit_rows, score_rows):
    """Fit a map by the pseudo-inverse of scaled rows, cut at 1e-6; return residuals of other rows, and the rank."""
    X, T = np.asarray(X, np.float64), np.asarray(T, np.float64)
    mean, scale = X[fit_rows].mean(axis=0), X[fit_rows].std(axis=0)
    scale[scale == 0] = 1
    white = (X - mean) / scale
    U, S, V = np.linalg.svd(white[fit_rows], full_matrices=False)
    kept_directions = S[0] * 1e-6 < S
    average = T[fit_rows].mean(axis=0)
    map_ = V[kept_directions].T @ (
        (U[:, kept_directions].T @ (T[fit_rows] - average)) / S[kept_directions, None]
    )
    return T[score_rows] - average - white[score_rows] @ map_, int(kept_directions.sum())


def linearity_by_svd(X, Y, increment=False, adjust=False):
    X, Y = np.asarray(X, np.float64), np.asarray(Y, np.float64)
    T, all_rows = Y - X if increment else Y, np.arange(len(X))
    residuals, rank = solve_by_svd(X, T, all_rows, all_rows)
    residual_share = np.square(residuals).sum() / np.square(T - T.mean(axis=0)).sum()
    return 1 - residual_share * ((len(X) - 1) / (len(X) - 1 - rank) if adjust else 1)


def adjusted_linearity_by_svd(X, Y, second):
    halves = [linearity_by_svd(X[half], Y[half], adjust=True) for half in (second, ~second)]
    return 2 * linearity_by_svd(X, Y, adjust=True) - np.mean(halves)


def held_out_linearity_by_svd(X, Y, second, increment=False):
    T, squares = Y - X if increment else Y, np.zeros(2)
    for fit_rows in (second, ~second):
        score_rows = ~fit_rows
        residuals, _ = solve_by_svd(X, T, fit_rows, score_rows)
        squares += (
            np.square(residuals).sum(),
            np.square(T[score_rows] - T[score_rows].mean(axis=0)).sum(),
        )
    return 1 - squares[0] / squares[1]


@pytest.mark.parametrize("n", [1, 2, 20, 30, 31])
def test_linearity_of_no_more_vectors_than_directions_is_undefined(n):
    X, Y = gaussian(n, 30), gaussian(n, 30, 1)
    for score in (sol.linearity, sol.linearity_adjusted, sol.linearity_increment):
        assert math.isnan(score(X, Y))
    assert math.isnan(sol.linearity_held_out(X, Y, np.arange(n)))


def add_huge_coordinate(X, Y):
    X[:, 3] = 1e7 * (1 + 0.1 * X[:, 5] + 0.1 * gaussian(len(X), 1, 7)[:, 0])
    Y[:, 3] = X[:, 3]
    return X, Y


def align_coordinates(size):
    """Make two coordinates nearly equal; their small difference decides one coordinate of the result."""

    def change_vectors(X, Y):
        noise = gaussian(len(X), 1)[:, 0]
        X[:, 3], Y[:, 3] = X[:, 5] + size * noise, 20 * noise
        return X, Y

    return change_vectors


HARD_BLOCKS = {
    "a difference that counts": align_coordinates(1e-3),
    "a difference that is cut off": align_coordinates(1e-8),
    "a coordinate of 1e7": add_huge_coordinate,
    "an offset of 1e4, float32": lambda X, Y: np.float32([X + 1e4, Y + 1e4]),
    "rows without a mean": lambda X, Y: (X - X.mean(axis=1, keepdims=True), Y),
    "huge numbers": lambda X, Y: (X * 1e30, Y * 1e30),
}


@pytest.mark.parametrize("name", HARD_BLOCKS)
def test_linearity_of_hard_vectors_is_that_of_a_scaled_svd(name):
    X, Y = HARD_BLOCKS[name](*draw_block(2000, 40))
    scale = 1e-30 if name == "huge numbers" else 1
    plain = np.asarray(X, np.float64) * scale, np.asarray(Y, np.float64) * scale
    assert sol.linearity(X, Y) == pytest.approx(linearity_by_svd(*plain), abs=1e-6)
    assert sol.linearity_increment(X, Y) == pytest.approx(
        linearity_by_svd(*plain, increment=True), abs=1e-6
    )
    second = number_windows(2000) % 2 == 1
    expected = held_out_linearity_by_svd(*plain, second, increment=True)
    held_out = sol.linearity_increment_held_out(X, Y, number_windows(2000))
    assert held_out == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("rows", [1, 7, 300])
def test_linearity_does_not_depend_on_block_size_or_row_order(rows, monkeypatch):
    X, Y = draw_block()
    X[0] *= 1000  # the first block has little in common with the others
    expected = sol.linearity(X, Y), sol.linearity_increment(X, Y)
    monkeypatch.setattr(pairs, "ROWS", rows)
    order = np.random.default_rng(rows).permutation(len(X))
    X, Y = X[order] + 1e4, Y[order] + 1e4
    assert (sol.linearity(X, Y), sol.linearity_increment(X, Y)) == pytest.approx(
        expected, rel=1e-10
    )


@pytest.mark.parametrize("narrow", [1024, 0])
@pytest.mark.parametrize("name", ["plain", "low rank", "a lonely direction", "offset", "wider"])
def test_jackknife_values_of_linearity_are_those_of_refits(name, narrow, monkeypatch):
    monkeypatch.setattr(pairs, "NARROW", narrow)  # both ways, at one width
    X, Y = draw_block()
    windows = number_windows(len(X))
    group = (np.random.default_rng(5).permutation(32) % 16)[windows]
    if name == "low rank":
        X = X[:, :10] @ gaussian(10, 24)
    elif name == "a lonely direction":  # which vanishes without its group
        X[:, 4] = np.where(group == 3, X[:, 4], X[:, 5])
        Y = X + np.tanh(X)
    elif name == "offset":
        X, Y = X + 1e4, Y + 1e4
    elif name == "wider":
        Y = np.hstack([Y, Y[:, :3] ** 2])
    # The last group belongs to no part, as if its rows were in no group.
    parts = [np.flatnonzero(group == number) for number in range(15)]
    remaining_rows = [group != number for number in range(15)]
    second = windows % 2 == 1
    pair = Pair(X, Y, windows, parts)

    def check(values, refit):
        value, jackknife_values = values
        assert value == pytest.approx(refit(slice(None)), abs=1e-9)
        assert jackknife_values == pytest.approx([refit(rows) for rows in remaining_rows], abs=1e-9)

    check(scores.linearity_jackknife(pair), lambda r: linearity_by_svd(X[r], Y[r]))
    adjusted_linearity = scores.linearity_adjusted_jackknife(pair)
    check(adjusted_linearity, lambda r: adjusted_linearity_by_svd(X[r], Y[r], second[r]))
    assert sol.linearity_adjusted(X, Y) == pytest.approx(
        linearity_by_svd(X, Y, adjust=True), abs=1e-9
    )
    held_out = scores.linearity_held_out_jackknife(pair)
    check(held_out, lambda r: held_out_linearity_by_svd(X[r], Y[r], second[r]))
    if name == "wider":
        assert math.isnan(scores.linearity_increment_jackknife(pair)[0])
        assert math.isnan(sol.block_norm_ratio(X, Y))
        assert math.isnan(sol.block_cosine(X, Y))
        return
    check(scores.linearity_increment_jackknife(pair), lambda r: linearity_by_svd(X[r], Y[r], True))
    held_out = scores.linearity_increment_held_out_jackknife(pair)
    check(held_out, lambda r: held_out_linearity_by_svd(X[r], Y[r], second[r], True))


def test_adjusted_linearity_does_not_depend_on_the_number_of_windows_of_alike_tokens():
    """All tokens of a window share a vector, another before than after the block; a fit to few windows overfits it."""
    random = np.random.default_rng(3)
    length, d, truth = 20, 40, 0.5 / (0.5 + 1.0)

    def measure_bias(count):
        windows = np.repeat(np.arange(count), length)
        values = []
        for _ in range(6):
            X, noise = (random.standard_normal((count, 1, d)) for _ in range(2))
            X, noise = (
                np.sqrt(0.8) * part + np.sqrt(0.2) * random.standard_normal((count, length, d))
                for part in (X, noise)
            )
            X, Y = X.reshape(-1, d), (np.sqrt(0.5) * X + noise).reshape(-1, d)
            values.append((sol.linearity_adjusted(X, Y), sol.linearity_adjusted(X, Y, windows)))
        return np.mean(values, axis=0) - truth

    plain_bias, window_bias = measure_bias(160)
    assert abs(window_bias) < plain_bias / 3
    assert abs(measure_bias(640)[1] - window_bias) < 0.02


def test_jackknife_values_of_norm_ratio_and_cosine_are_those_of_the_remaining_rows():
    X, Y = draw_block()
    parts = np.array_split(np.arange(len(X)), 16)
    for function in (sol.block_norm_ratio, sol.block_cosine):
        jackknife_function = getattr(scores, f"{function.__name__}_jackknife")
        value, jackknife_values = jackknife_function(Pair(X, Y, parts=parts))
        assert value == function(X, Y)
        expected = [function(np.delete(X, part, 0), np.delete(Y, part, 0)) for part in parts]
        assert jackknife_values == pytest.approx(expected, rel=1e-12)


def test_linear_map_is_the_least_squares_solution():
    X, Y = draw_block()
    weight, bias, rank = sol.linear_map(X, Y)
    assert (weight.shape, bias.shape, rank) == ((24, 24), (24,), 24)
    expected = np.linalg.lstsq(np.hstack([X, np.ones((len(X), 1))]), Y, rcond=None)[0]
    assert weight == pytest.approx(expected[:-1], abs=1e-9)
    assert bias == pytest.approx(expected[-1], abs=1e-9)
    X[:, 2] = 7  # What does not vary passes, as it does through a block.
    weight, bias, rank = sol.linear_map(X * 1e30, X * 1e30)
    assert rank == 23
    assert weight == pytest.approx(np.eye(24), abs=1e-12)
    assert bias / 1e30 == pytest.approx(np.zeros(24), abs=1e-12)


def test_norm_ratio_and_cosine_follow_their_definitions():
    X, Y = draw_block()
    norm = np.linalg.norm
    ratios = norm(Y - X, axis=1) / norm(Y, axis=1)
    assert sol.block_norm_ratio(X, Y) == pytest.approx(np.median(ratios), rel=1e-12)
    cosines = (X * Y).sum(axis=1) / norm(X, axis=1) / norm(Y, axis=1)
    assert sol.block_cosine(X, Y) == pytest.approx(cosines.mean(), rel=1e-12)
    X[0], Y[1] = 0, 0  # without direction
    assert sol.block_cosine(X, Y) == pytest.approx(cosines[2:].mean(), rel=1e-12)
    assert math.isnan(sol.block_norm_ratio(X, X * 0))
    assert math.isnan(sol.block_cosine(X, X * 0))
    assert sol.block_norm_ratio(X[2:] * 1e30, Y[2:] * 1e30) == pytest.approx(np.median(ratios[2:]))


def test_linearity_of_a_constant_result_is_undefined():
    X, _ = draw_block()
    constant = np.full_like(X, 0.1)
    assert math.isnan(sol.linearity(X, constant))
    assert math.isnan(sol.linearity_increment(X, X))
    assert math.isnan(sol.linearity_increment(X, X + 0.3))
    assert sol.linearity(constant, X) == pytest.approx(0, abs=1e-12)
    assert math.isnan(sol.linearity_held_out(X, constant, number_windows(len(X))))


def test_rounding_errors_summed_over_many_parts_are_no_variance():
    random = np.random.default_rng(0)
    X = random.standard_normal((1600, 3))
    Y = 1 + 32 * np.finfo(float).eps * random.choice([-1, 1], (1600, 2))
    value, jackknife_values = scores.linearity_jackknife(
        Pair(X, Y, parts=np.split(np.arange(1600), 16))
    )
    assert math.isnan(value)
    assert np.isnan(jackknife_values).all()


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([[1.0], [2.0]], [1.0, 2.0], "Y must have two dimensions"),
        ([[1.0], [2.0]], [[1.0]], "X and Y must have the same rows, but have 2 and 1"),
        ([[1.0], [2.0]], torch.tensor([[1.0], [math.inf]]), "Y holds NaN or inf.* in row 1"),
    ],
)
def test_bad_vectors_are_refused(X, Y, message):
    for measure in (sol.linearity, sol.block_norm_ratio, sol.linear_map):
        with pytest.raises(ValueError, match=message):
            measure(X, Y)


@pytest.mark.parametrize("windows", [None, [1, 2], [[1]] * 900, [0.5] * 900])
def test_bad_windows_are_refused(windows):
    with pytest.raises(ValueError, match="windows must hold one whole number for each"):
        sol.linearity_held_out(*draw_block(), windows)


def test_squared_errors_of_tokens_sum_to_one_minus_linearity():
    X, Y = draw_block()
    errors = fit_errors(Pair(X, Y))
    assert np.square(errors).sum() == pytest.approx(1 - sol.linearity(X, Y), rel=1e-9)
    quantiles, share = summarise_errors(errors)
    assert quantiles[3] == pytest.approx(np.median(errors))
    assert share == pytest.approx(np.square(np.sort(errors)[-9:]).sum() / np.square(errors).sum())
    assert math.isnan(summarise_errors(fit_errors(Pair(X[:20], Y[:20])))[1])


def test_blas_routines_without_the_lock_equal_those_of_scipy_to_the_bit():
    """We call the routines by their addresses, so that no error would tell a wrong argument."""
    stream = np.random.default_rng(0)
    x, t = stream.standard_normal((70, 9)), stream.standard_normal((70, 4))
    square, product = (stream.standard_normal(shape).T for shape in ((9, 9), (4, 9)))
    expected = scipy_blas.dsyrk(1.0, x.T, beta=1.0, c=square)
    blas.add_square(x, square)
    np.testing.assert_array_equal(np.triu(square), np.triu(expected))
    expected = scipy_blas.dgemm(1.0, x.T, t.T, beta=1.0, c=product, trans_b=True)
    blas.add_product(x, t, product)
    np.testing.assert_array_equal(product, expected)
    upper = np.asfortranarray(x.T @ x)
    expected, _ = lapack.dpotrf(upper, clean=False)
    assert blas.decompose_cholesky(upper)
    np.testing.assert_array_equal(np.triu(upper), np.triu(expected))
    b = np.asfortranarray(stream.standard_normal((9, 4)))
    for transpose in (False, True):
        expected = scipy_blas.dtrsm(1.0, upper, b, trans_a=transpose)
        solution = blas.solve_upper(upper, b.copy(order="F"), transpose=transpose)
        np.testing.assert_array_equal(solution, expected)
    expected = scipy_blas.dtrmm(1.0, upper, b)
    np.testing.assert_array_equal(blas.multiply_upper(upper, b.copy(order="F")), expected)
    assert not blas.decompose_cholesky(np.asfortranarray(-np.eye(3)))
