"""Probes equal regressions of other libraries, and their fits read no held-out token."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from papers.finetuning import probes
from papers.finetuning.adjustments import number_frequency_bands, share_between
from papers.finetuning.measure import SplitVectors, make_task_rows
from shape_of_learning.tasks.examples import Task


def test_probes_are_regularised_regressions_of_scaled_features():
    """Softmax regression of two classes and of three by its own loss, and ridge regression in closed form."""
    assert probes.PENALTY == 0.02
    numbers = np.random.default_rng(1)
    X = numbers.normal(size=(300, 6)) * [1, 2, 3, 4, 5, 60] + 7
    Z = (X - X.mean(axis=0)) / X.std(axis=0).__pow__(2).mean() ** 0.5
    for classes in (2, 3):
        labels = numbers.integers(classes, size=300) * (X[:, 0] > 7)
        true = labels[:, None] == np.arange(classes)

        def loss(flat, true=true):
            weights = flat.reshape(7, -1)
            logits = Z @ weights[1:] + weights[0]
            misfit = (logsumexp(logits, axis=1) - logits[true]).mean()
            return misfit + probes.PENALTY / 2 * (weights[1:] ** 2).sum()

        weights = minimize(loss, np.zeros(7 * classes), tol=1e-9).x.reshape(7, -1)
        expected_labels = (Z @ weights[1:] + weights[0]).argmax(axis=1)
        labels_of_probe = probes.fit_probe(X, labels, has_classes=True)(X)
        assert (labels_of_probe == expected_labels).mean() > 0.99
    grades = X @ numbers.normal(size=6)
    ridge_weights = np.linalg.solve(
        Z.T @ Z + 300 * probes.PENALTY * np.eye(6), Z.T @ (grades - grades.mean())
    )
    predictions = probes.fit_probe(X, grades, has_classes=False)(X)
    np.testing.assert_allclose(predictions, Z @ ridge_weights + grades.mean(), rtol=1e-8)


def test_features_of_a_text_are_its_mean_and_of_a_pair_difference_and_product():
    text_vectors = np.array([[1.0, 2], [3, 1], [0, 1], [5, 5]])
    assert probes.make_features(text_vectors, has_pairs=True).tolist() == [
        [2, 1, 3, 2],
        [5, 4, 0, 5],
    ]
    X = np.arange(12.0).reshape(6, 2)
    assert probes.pool_tokens(X, np.array([0, 0, 0, 1, 2, 2])).tolist() == [[2, 3], [6, 7], [9, 10]]


def test_the_share_between_groups_without_effect_is_that_of_chance():
    numbers = np.random.default_rng(4)
    X, noise = numbers.normal(size=(5000, 20)), numbers.integers(250, size=5000)
    # By chance m groups of n vectors have (m - 1) / (n - 1), with a standard deviation of less than .002.
    assert share_between(X, noise) == pytest.approx(249 / 4999, abs=0.006)
    assert share_between(1e4 + X.repeat(2, axis=0), np.arange(5000).repeat(2)) == pytest.approx(1)
    assert share_between(X, np.zeros(5000)) == pytest.approx(0, abs=1e-12)
    assert np.isnan(share_between(np.ones((4, 2)), [0, 1, 0, 1]))
    assert number_frequency_bands([5, 5, 5, 5, 9, 7, 7, 7]).tolist() == [2, 2, 2, 2, 0, 1, 1, 1]


def draw_split(numbers, examples, tokens=6, width=12):
    labels = numbers.integers(2, size=examples)
    X = numbers.normal(size=(2, examples * tokens, width)) + labels.repeat(tokens)[:, None] / 5
    layers = dict(enumerate(X.astype(np.float32)))
    texts = np.arange(examples).repeat(tokens)
    return SplitVectors(layers, texts, texts, labels)


def make_probe_rows(train, held_out):
    rows = make_task_rows(train, held_out, Task("accuracy", []), seed=0)["finetuning_probes"]
    return {row[1:5]: row for row in rows}


@pytest.mark.long
def test_a_fit_to_training_tokens_reads_no_held_out_token():
    """A prediction does not depend on the other texts, so that the mean of scores of halves is the whole score."""
    numbers = np.random.default_rng(5)
    train, whole = draw_split(numbers, 60), draw_split(numbers, 40)
    halves = [
        SplitVectors({1: whole.last[half]}, *[whole.texts[:120]] * 2, whole.labels[examples])
        for half, examples in ((slice(0, 120), slice(0, 20)), (slice(120, 240), slice(20, 40)))
    ]
    together, *apart = (make_probe_rows(train, split) for split in (whole, *halves))
    for name, row in together.items():
        if name[3] != "each split":
            assert row[-2] == pytest.approx(np.mean([half[name][-2] for half in apart]))
    assert len({name[3] for name in together}) == 3
    # With two equal splits both fits are equal.
    same = make_probe_rows(train, train)
    for (adjustment, clusters, k, fitted_on), row in same.items():
        if fitted_on == "training":
            assert row[5:] == same[adjustment, clusters, k, "each split"][5:]


def test_states_that_are_not_finite_give_empty_values():
    numbers = np.random.default_rng(6)
    train, held_out = draw_split(numbers, 20), draw_split(numbers, 20)
    held_out.last[7, 3] = np.nan
    tables = make_task_rows(train, held_out, Task("accuracy", []), seed=0)
    (row,) = tables.pop("finetuning_probes")
    assert row[6] is None
    assert np.isnan([*row[7:9], row[11]]).all()
    rows = [row for table in tables.values() for row in table]
    assert np.isnan([row[-1] for row in rows if row[0] == 1]).all()
    assert np.isfinite([row[-1] for row in rows if row[0] == 0]).all()
