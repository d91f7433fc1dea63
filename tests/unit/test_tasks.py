"""Tasks: labels by construction, splits without leaks, scores and probes as other libraries have them."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import spearmanr
from sklearn.metrics import matthews_corrcoef

from shape_of_learning.errors import InputError
from shape_of_learning.tasks import probes
from shape_of_learning.tasks.adjustments import number_frequency_bands, share_between
from shape_of_learning.tasks.examples import Example, Task, check_task, read_task, write_task
from shape_of_learning.tasks.measure import SplitVectors, make_task_rows
from shape_of_learning.tasks.sources import make_topic_task

SPLITS = ("train", "held_out")


REPEATED = "This is a sentence that stands in very many of the paragraphs."


def paragraph(article: int, number: int) -> str:
    own = f"Article {article} says in its paragraph {number} that it is so."
    return " ".join([own, REPEATED][:: 1 if number % 3 else -1])


@pytest.fixture(scope="module")
def corpus():
    """Articles of different lengths, of paragraphs that have a sentence in common."""
    articles = [
        [f"Title {n}", *(paragraph(n, k) for k in range(6 + 2 * (n % 9)))] for n in range(40)
    ]
    return "\n".join("\n".join(lines) + "\n" for lines in articles)


@pytest.mark.parametrize("seed", [0, 1, 17])
def test_no_paragraph_or_sentence_is_on_both_sides_of_a_split(seed, corpus):
    task = make_topic_task(corpus, seed=seed, most={}, corpus="c")
    train, held_out = map(task.split, SPLITS)
    for facts in (lambda e: e.group, lambda e: e.text):
        assert not set(map(facts, train)) & set(map(facts, held_out))
    for split in (train, held_out):
        labels = [example.label for example in split]
        assert labels.count(0) == labels.count(1) > 0


def test_topic_is_of_the_eight_longest_articles_four_of_each_label(corpus):
    task = make_topic_task(corpus, seed=0, most={}, corpus="c")
    articles = corpus.split("\n\n")
    label_of = {}
    for e in task.examples:
        article, paragraph = map(int, e.group.split("/"))
        assert e.text in articles[article].splitlines()[paragraph]
        assert label_of.setdefault(article, e.label) == e.label
    assert set(label_of) == set(sorted(range(40), key=lambda n: -len(articles[n]))[:8])
    assert sorted(label_of.values()) == [0] * 4 + [1] * 4
    for split in SPLITS:
        assert {int(e.group.split("/")[0]) for e in task.split(split)} == set(label_of)


def test_equal_seeds_give_equal_bytes_and_others_another_split(corpus, tmp_path):
    written = []
    for number, seed in enumerate((0, 0, 1)):
        path = tmp_path / str(number) / "topic.csv"
        write_task(path, make_topic_task(corpus, seed=seed, most={"train": 60}, corpus="c"))
        written.append(path.read_bytes())
        assert json.loads(path.with_suffix(".json").read_text())["train"] == 60
    assert written[0] == written[1] != written[2]


def test_a_text_that_is_too_short_is_named_with_the_remedy(corpus):
    few = "\n\n".join(corpus.split("\n\n")[:5])
    short = "\n\n".join(["Title\nOne long sentence of some more words stands here alone."] * 9)
    for text, reason in ((few, "has 5 articles"), (short, "is too short for the task")):
        with pytest.raises(InputError, match=f"{reason}.*corpus.first_bytes"):
            make_topic_task(text, seed=0, most={}, corpus="corpus/text.txt")


def test_a_task_is_read_as_it_was_written(tmp_path):
    pairs = [
        Example(split, label, f"{split}{label}", 'a "b", c', "d\u2028e, 1")
        for split in SPLITS
        for label in (0.1, -3.875)
    ]
    write_task(tmp_path / "graded.csv", Task("spearman", pairs))
    assert read_task(tmp_path / "graded.csv") == Task("spearman", pairs)


@pytest.mark.parametrize(
    ("metric", "labels", "reason"),
    [
        ("accuracy", {"train": [0, 1], "held_out": []}, "`held_out` has no examples"),
        ("matthews", {"train": [0, 1], "held_out": [-1, -1]}, "constant, all -1"),
        ("accuracy", {"train": [0, 0.5], "held_out": [0, 1]}, "0.5 is no class"),
        ("spearman", {"train": [0, float("inf")], "held_out": [0, 1]}, "NaN or infinite"),
    ],
)
def test_what_cannot_be_learnt_is_refused(metric, labels, reason):
    examples = [Example(s, label, "g", "text") for s in SPLITS for label in labels[s]]
    with pytest.raises(InputError, match=reason):
        check_task(Task(metric, examples), "task `t`")


def test_scores_are_those_of_other_libraries():
    numbers = np.random.default_rng(0)
    for classes in (2, 4):
        true, predicted = numbers.integers(classes, size=(2, 60))
        assert probes.matthews(true, predicted) == pytest.approx(matthews_corrcoef(true, predicted))
    grades, guesses = numbers.integers(6, size=60), numbers.normal(size=60).round(1)
    assert probes.spearman(grades, guesses) == pytest.approx(spearmanr(grades, guesses).statistic)
    assert probes.accuracy([0, 1, 2, 2], [0, 1, 1, 2]) == 0.75
    assert np.isnan(probes.matthews([0, 1], [1, 1]))
    assert np.isnan(probes.spearman([0, 1], [2, 2]))


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
        expected = (Z @ weights[1:] + weights[0]).argmax(axis=1)
        found = probes.fit_probe(X, labels, has_classes=True)(X)
        assert (found == expected).mean() > 0.99
    grades = X @ numbers.normal(size=6)
    fitted = np.linalg.solve(
        Z.T @ Z + 300 * probes.PENALTY * np.eye(6), Z.T @ (grades - grades.mean())
    )
    predicted = probes.fit_probe(X, grades, has_classes=False)(X)
    np.testing.assert_allclose(predicted, Z @ fitted + grades.mean(), rtol=1e-8)


def test_pooling_is_the_mean_of_each_text_and_a_pair_is_told_by_difference_and_product():
    pooled = np.array([[1.0, 2], [3, 1], [0, 1], [5, 5]])
    assert probes.make_features(pooled, has_pairs=True).tolist() == [[2, 1, 3, 2], [5, 4, 0, 5]]
    X = np.arange(12.0).reshape(6, 2)
    assert probes.pool_tokens(X, np.array([0, 0, 0, 1, 2, 2])).tolist() == [[2, 3], [6, 7], [9, 10]]


def test_share_between_groups():
    numbers = np.random.default_rng(4)
    X, noise = numbers.normal(size=(5000, 20)), numbers.integers(250, size=5000)
    # Of groups that say nothing (m - 1) / (n - 1), with a standard deviation of less than .002.
    assert share_between(X, noise) == pytest.approx(249 / 4999, abs=0.006)
    assert share_between(1e4 + X.repeat(2, axis=0), np.arange(5000).repeat(2)) == pytest.approx(1)
    assert share_between(X, np.zeros(5000)) == pytest.approx(0, abs=1e-12)
    assert np.isnan(share_between(np.ones((4, 2)), [0, 1, 0, 1]))
    assert number_frequency_bands([5, 5, 5, 5, 9, 7, 7, 7]).tolist() == [2, 2, 2, 2, 0, 1, 1, 1]


def split_of(numbers, examples, tokens=6, width=12):
    labels = numbers.integers(2, size=examples)
    X = numbers.normal(size=(2, examples * tokens, width)) + labels.repeat(tokens)[:, None] / 5
    layers = dict(enumerate(X.astype(np.float32)))
    texts = np.arange(examples).repeat(tokens)
    return SplitVectors(layers, texts, texts, labels)


def rows_of(train, held_out):
    rows = make_task_rows(train, held_out, Task("accuracy", []), seed=0)["finetuning_probes"]
    return {row[1:5]: row for row in rows}


def test_what_is_fitted_on_training_tokens_reads_no_held_out_one():
    """Then a text's prediction is the same whatever texts are beside it, so scores of halves add up."""
    numbers = np.random.default_rng(5)
    train, whole = split_of(numbers, 60), split_of(numbers, 40)
    halves = [
        SplitVectors({1: whole.last[half]}, *[whole.texts[:120]] * 2, whole.labels[examples])
        for half, examples in ((slice(0, 120), slice(0, 20)), (slice(120, 240), slice(20, 40)))
    ]
    together, *apart = (rows_of(train, split) for split in (whole, *halves))
    for name, row in together.items():
        if name[3] != "each split":
            assert row[-2] == pytest.approx(np.mean([half[name][-2] for half in apart]))
    assert len({name[3] for name in together}) == 3
    # With two equal splits it is all the same what is fitted on which.
    same = rows_of(train, train)
    for (adjustment, clusters, k, fitted_on), row in same.items():
        if fitted_on == "training":
            assert row[5:] == same[adjustment, clusters, k, "each split"][5:]


def test_states_that_are_not_finite_give_empty_values_and_the_run_goes_on():
    numbers = np.random.default_rng(6)
    train, held_out = split_of(numbers, 20), split_of(numbers, 20)
    held_out.last[7, 3] = np.nan
    tables = make_task_rows(train, held_out, Task("accuracy", []), seed=0)
    (row,) = tables.pop("finetuning_probes")
    assert row[6] is None
    assert np.isnan([*row[7:9], row[10]]).all()
    rows = [row for table in tables.values() for row in table]
    assert np.isnan([row[-1] for row in rows if row[0] == 1]).all()
    assert np.isfinite([row[-1] for row in rows if row[0] == 0]).all()
