"""Tasks have labels by construction, splits without leaks, and scores equal to those of other libraries."""

import json

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import matthews_corrcoef

from shape_of_learning.errors import InputError
from shape_of_learning.tasks import scores
from shape_of_learning.tasks.examples import Example, Task, check_task, read_task, write_task
from shape_of_learning.tasks.sources import make_topic_task

SPLITS = ("train", "held_out")


REPEATED = "This is a sentence that stands in very many of the paragraphs."


def write_paragraph(article: int, number: int) -> str:
    sentence = f"Article {article} says in its paragraph {number} that it is so."
    return " ".join([sentence, REPEATED][:: 1 if number % 3 else -1])


@pytest.fixture(scope="module")
def corpus():
    """Articles of different lengths whose paragraphs have a sentence in common."""
    articles = [
        [f"Title {n}", *(write_paragraph(n, k) for k in range(6 + 2 * (n % 9)))] for n in range(40)
    ]
    return "\n".join("\n".join(lines) + "\n" for lines in articles)


@pytest.mark.parametrize("seed", [0, 1, 17])
def test_no_paragraph_or_sentence_is_on_both_sides_of_a_split(seed, corpus):
    task = make_topic_task(corpus, seed=seed, limits={}, corpus="c")
    train, held_out = map(task.split, SPLITS)
    for facts in (lambda e: e.group, lambda e: e.text):
        assert not set(map(facts, train)) & set(map(facts, held_out))
    for split in (train, held_out):
        labels = [example.label for example in split]
        assert labels.count(0) == labels.count(1) > 0


def test_the_topics_are_the_eight_longest_articles_four_with_each_label(corpus):
    task = make_topic_task(corpus, seed=0, limits={}, corpus="c")
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
    contents = []
    for number, seed in enumerate((0, 0, 1)):
        path = tmp_path / str(number) / "topic.csv"
        write_task(path, make_topic_task(corpus, seed=seed, limits={"train": 60}, corpus="c"))
        contents.append(path.read_bytes())
        assert json.loads(path.with_suffix(".json").read_text())["train"] == 60
    assert contents[0] == contents[1] != contents[2]


def test_a_text_that_is_too_short_is_named_with_the_remedy(corpus):
    few = "\n\n".join(corpus.split("\n\n")[:5])
    short = "\n\n".join(["Title\nOne long sentence of some more words stands here alone."] * 9)
    for text, reason in ((few, "has 5 articles"), (short, "is too short for the task")):
        with pytest.raises(InputError, match=f"{reason}.*corpus.first_bytes"):
            make_topic_task(text, seed=0, limits={}, corpus="corpus/text.txt")


def test_a_written_task_is_read_back(tmp_path):
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
        ("matthews", {"train": [0, 1], "held_out": [-1, -1]}, "are -1"),
        ("accuracy", {"train": [0, 0.5], "held_out": [0, 1]}, "the label 0.5 is"),
        ("spearman", {"train": [0, float("inf")], "held_out": [0, 1]}, "NaN or infinite"),
    ],
)
def test_a_task_that_cannot_be_learnt_is_refused(metric, labels, reason):
    examples = [Example(s, label, "g", "text") for s in SPLITS for label in labels[s]]
    with pytest.raises(InputError, match=reason):
        check_task(Task(metric, examples), "task `t`")


def test_scores_are_those_of_other_libraries():
    numbers = np.random.default_rng(0)
    for classes in (2, 4):
        true, predictions = numbers.integers(classes, size=(2, 60))
        assert scores.matthews(true, predictions) == pytest.approx(
            matthews_corrcoef(true, predictions)
        )
    grades, guesses = numbers.integers(6, size=60), numbers.normal(size=60).round(1)
    assert scores.spearman(grades, guesses) == pytest.approx(spearmanr(grades, guesses).statistic)
    assert scores.accuracy([0, 1, 2, 2], [0, 1, 1, 2]) == 0.75
    assert np.isnan(scores.matthews([0, 1], [1, 1]))
    assert np.isnan(scores.spearman([0, 1], [2, 2]))
