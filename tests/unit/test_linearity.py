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


def windows_of(n, count=32):
    return np.arange(n) * count // n


def block(n=900, d=24, seed=0):
    """Vectors before and after a block that is partly linear."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d)) @ random.standard_normal((d, d)) + 3
    added = np.tanh(X @ random.standard_normal((d, d)) / 4) + 0.3 * random.standard_normal((n, d))
    return X, X + added


def residuals_by_svd(X, T, fitted, scored):
    """Residuals on some rows of the pseudo-inverse of others, scaled, with the cut at 1e-6."""
    X, T = np.asarray(X, np.float64), np.asarray(T, np.float64)
    mean, scale = X[fitted].mean(axis=0), X[fitted].std(axis=0)
    scale[scale == 0] = 1
    white = (X - mean) / scale
    U, S, V = np.linalg.svd(white[fitted], full_matrices=False)
    kept = S[0] * 1e-6 < S
    average = T[fitted].mean(axis=0)
    map_ = V[kept].T @ ((U[:, kept].T @ (T[fitted] - average)) / S[kept, None])
    return T[scored] - average - white[scored] @ map_, int(kept.sum())


def by_svd(X, Y, increment=False, adjusted=False):
    X, Y = np.asarray(X, np.float64), np.asarray(Y, np.float64)
    T, every = Y - X if increment else Y, np.arange(len(X))
    residuals, rank = residuals_by_svd(X, T, every, every)
    unexplained = np.square(residuals).sum() / np.square(T - T.mean(axis=0)).sum()
    return 1 - unexplained * ((len(X) - 1) / (len(X) - 1 - rank) if adjusted else 1)


def adjusted_by_svd(X, Y, second):
    halves = [by_svd(X[some], Y[some], adjusted=True) for some in (second, ~second)]
    return 2 * by_svd(X, Y, adjusted=True) - np.mean(halves)


def held_out_by_svd(X, Y, second, increment=False):
    T, squares = Y - X if increment else Y, np.zeros(2)
    for fitted in (second, ~second):
        scored = ~fitted
        residuals, _ = residuals_by_svd(X, T, fitted, scored)
        squares += np.square(residuals).sum(), np.square(T[scored] - T[scored].mean(axis=0)).sum()
    return 1 - squares[0] / squares[1]


@pytest.mark.parametrize("n", [1, 2, 20, 30, 31])
def test_as_many_directions_as_vectors_are_undefined(n):
    X, Y = gaussian(n, 30), gaussian(n, 30, 1)
    for score in (sol.linearity, sol.linearity_adjusted, sol.linearity_increment):
        assert math.isnan(score(X, Y))
    assert math.isnan(sol.linearity_held_out(X, Y, np.arange(n)))


def huge_coordinate(X, Y):
    X[:, 3] = 1e7 * (1 + 0.1 * X[:, 5] + 0.1 * gaussian(len(X), 1, 7)[:, 0])
    Y[:, 3] = X[:, 3]
    return X, Y


def nearly_alike(size):
    """Two coordinates whose difference is so small and decides one of the results."""

    def changed(X, Y):
        noise = gaussian(len(X), 1)[:, 0]
        X[:, 3], Y[:, 3] = X[:, 5] + size * noise, 20 * noise
        return X, Y

    return changed


HARD = {
    "a difference that counts": nearly_alike(1e-3),
    "a difference that is cut off": nearly_alike(1e-8),
    "a coordinate of 1e7": huge_coordinate,
    "an offset of 1e4, float32": lambda X, Y: np.float32([X + 1e4, Y + 1e4]),
    "rows without a mean": lambda X, Y: (X - X.mean(axis=1, keepdims=True), Y),
    "huge numbers": lambda X, Y: (X * 1e30, Y * 1e30),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_vectors_score_as_by_a_scaled_svd(name):
    X, Y = HARD[name](*block(2000, 40))
    scale = 1e-30 if name == "huge numbers" else 1
    plain = np.asarray(X, np.float64) * scale, np.asarray(Y, np.float64) * scale
    assert sol.linearity(X, Y) == pytest.approx(by_svd(*plain), abs=1e-6)
    assert sol.linearity_increment(X, Y) == pytest.approx(by_svd(*plain, increment=True), abs=1e-6)
    second = windows_of(2000) % 2 == 1
    expected = held_out_by_svd(*plain, second, increment=True)
    found = sol.linearity_increment_held_out(X, Y, windows_of(2000))
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("rows", [1, 7, 300])
def test_blocks_of_any_size_and_order_give_the_same(rows, monkeypatch):
    X, Y = block()
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
def test_values_without_parts_are_those_of_refits(name, narrow, monkeypatch):
    monkeypatch.setattr(pairs, "NARROW", narrow)  # both ways, at one width
    X, Y = block()
    windows = windows_of(len(X))
    group = (np.random.default_rng(5).permutation(32) % 16)[windows]
    if name == "low rank":
        X = X[:, :10] @ gaussian(10, 24)
    elif name == "a lonely direction":  # that without its group is gone
        X[:, 4] = np.where(group == 3, X[:, 4], X[:, 5])
        Y = X + np.tanh(X)
    elif name == "offset":
        X, Y = X + 1e4, Y + 1e4
    elif name == "wider":
        Y = np.hstack([Y, Y[:, :3] ** 2])
    # The last group is of no part, as if its rows were in no group.
    parts = [np.flatnonzero(group == each) for each in range(15)]
    left = [group != each for each in range(15)]
    second = windows % 2 == 1
    pair = Pair(X, Y, windows, parts)

    def check(found, refit):
        value, without = found
        assert value == pytest.approx(refit(slice(None)), abs=1e-9)
        assert without == pytest.approx([refit(rows) for rows in left], abs=1e-9)

    check(scores.linearity_jackknife(pair), lambda r: by_svd(X[r], Y[r]))
    adjusted = scores.linearity_adjusted_jackknife(pair)
    check(adjusted, lambda r: adjusted_by_svd(X[r], Y[r], second[r]))
    assert sol.linearity_adjusted(X, Y) == pytest.approx(by_svd(X, Y, adjusted=True), abs=1e-9)
    held_out = scores.linearity_held_out_jackknife(pair)
    check(held_out, lambda r: held_out_by_svd(X[r], Y[r], second[r]))
    if name == "wider":
        assert math.isnan(scores.linearity_increment_jackknife(pair)[0])
        assert math.isnan(sol.block_norm_ratio(X, Y))
        assert math.isnan(sol.block_cosine(X, Y))
        return
    check(scores.linearity_increment_jackknife(pair), lambda r: by_svd(X[r], Y[r], True))
    held_out = scores.linearity_increment_held_out_jackknife(pair)
    check(held_out, lambda r: held_out_by_svd(X[r], Y[r], second[r], True))


def test_adjusted_linearity_does_not_depend_on_how_many_windows_of_alike_tokens_there_are():
    """What windows add to all their tokens, before and after the block apart: to it a fit to few windows fits."""
    random = np.random.default_rng(3)
    length, d, truth = 20, 40, 0.5 / (0.5 + 1.0)

    def bias(count):
        windows = np.repeat(np.arange(count), length)
        found = []
        for _ in range(6):
            X, noise = (random.standard_normal((count, 1, d)) for _ in range(2))
            X, noise = (
                np.sqrt(0.8) * each + np.sqrt(0.2) * random.standard_normal((count, length, d))
                for each in (X, noise)
            )
            X, Y = X.reshape(-1, d), (np.sqrt(0.5) * X + noise).reshape(-1, d)
            found.append((sol.linearity_adjusted(X, Y), sol.linearity_adjusted(X, Y, windows)))
        return np.mean(found, axis=0) - truth

    plain, with_windows = bias(160)
    assert abs(with_windows) < plain / 3
    assert abs(bias(640)[1] - with_windows) < 0.02


def test_norm_ratio_and_cosine_without_parts_are_those_of_the_rest():
    X, Y = block()
    parts = np.array_split(np.arange(len(X)), 16)
    for plain in (sol.block_norm_ratio, sol.block_cosine):
        jackknife_function = getattr(scores, f"{plain.__name__}_jackknife")
        value, without = jackknife_function(Pair(X, Y, parts=parts))
        assert value == plain(X, Y)
        expected = [plain(np.delete(X, part, 0), np.delete(Y, part, 0)) for part in parts]
        assert without == pytest.approx(expected, rel=1e-12)


def test_the_map_is_that_of_least_squares():
    X, Y = block()
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


def test_ratio_and_cosine_are_those_of_their_definitions():
    X, Y = block()
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


def test_no_variance_is_undefined():
    X, _ = block()
    still = np.full_like(X, 0.1)
    assert math.isnan(sol.linearity(X, still))
    assert math.isnan(sol.linearity_increment(X, X))
    assert math.isnan(sol.linearity_increment(X, X + 0.3))
    assert sol.linearity(still, X) == pytest.approx(0, abs=1e-12)
    assert math.isnan(sol.linearity_held_out(X, still, windows_of(len(X))))


def test_sums_of_rounding_over_many_parts_are_no_variance():
    random = np.random.default_rng(0)
    X = random.standard_normal((1600, 3))
    Y = 1 + 32 * np.finfo(float).eps * random.choice([-1, 1], (1600, 2))
    value, without = scores.linearity_jackknife(Pair(X, Y, parts=np.split(np.arange(1600), 16)))
    assert math.isnan(value)
    assert np.isnan(without).all()


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
        sol.linearity_held_out(*block(), windows)


def test_errors_of_tokens_sum_to_what_is_not_linear():
    X, Y = block()
    errors = fit_errors(Pair(X, Y))
    assert np.square(errors).sum() == pytest.approx(1 - sol.linearity(X, Y), rel=1e-9)
    quantiles, share = summarise_errors(errors)
    assert quantiles[3] == pytest.approx(np.median(errors))
    assert share == pytest.approx(np.square(np.sort(errors)[-9:]).sum() / np.square(errors).sum())
    assert math.isnan(summarise_errors(fit_errors(Pair(X[:20], Y[:20])))[1])


def test_routines_without_the_lock_are_those_of_scipy_to_the_bit():
    """They are called by their addresses, so that a wrong argument would go unseen."""
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
    for transposed in (False, True):
        expected = scipy_blas.dtrsm(1.0, upper, b, trans_a=transposed)
        found = blas.solve_upper(upper, b.copy(order="F"), transpose=transposed)
        np.testing.assert_array_equal(found, expected)
    expected = scipy_blas.dtrmm(1.0, upper, b)
    np.testing.assert_array_equal(blas.multiply_upper(upper, b.copy(order="F")), expected)
    assert not blas.decompose_cholesky(np.asfortranarray(-np.eye(3)))
