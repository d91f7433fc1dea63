"""Tasks: labels by construction, splits without leaks, files as they were written."""

import json
import random

import pytest

from shape_of_learning.errors import InputError
from shape_of_learning.tasks.builtin import KINDS, builtin_task
from shape_of_learning.tasks.examples import Example, Task, checked, read_task, write_task

SPLITS = ("train", "held_out")


@pytest.fixture(scope="module")
def corpus():
    """Articles of different lengths in words of their own, some sentences being in several paragraphs."""
    numbers = random.Random(3)
    common = [f"word{i}" for i in range(300)]
    repeated = "This is a sentence that stands in very many of the paragraphs."
    articles = []
    for article in range(40):
        words = common + [f"own{article}x{i}" for i in range(30)]
        paragraphs = [f"Title {article}"]
        for _ in range(6 + 2 * (article % 9)):
            sentences = [
                " ".join(numbers.choices(words, k=numbers.randint(6, 14))).capitalize() + "."
                for _ in range(numbers.randint(1, 5))
            ]
            paragraphs.append(" ".join([*sentences, repeated][:: numbers.choice((1, -1))]))
        articles.append("\n".join(paragraphs) + "\n")
    return "\n".join(articles)


def groups(task, split):
    return {
        g for e in task.split(split) for g in (e.group.split() if task.has_pairs else [e.group])
    }


def texts(task, split):
    return {text for e in task.split(split) for text in (e.text, e.text_2) if text}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1, 17])
def test_no_paragraph_article_or_sentence_is_on_both_sides_of_a_split(kind, seed, corpus):
    task = builtin_task(kind, corpus, seed=seed, most={}, corpus="c")
    assert not groups(task, "train") & groups(task, "held_out")
    assert not texts(task, "train") & texts(task, "held_out")
    for split in SPLITS:
        labels = [example.label for example in task.split(split)]
        assert labels.count(0) == labels.count(1) > 0


def test_groups_are_the_paragraphs_and_articles_of_the_corpus(corpus):
    articles = [article.splitlines() for article in corpus.split("\n\n")]
    for kind in ("topic", "same_article"):
        task = builtin_task(kind, corpus, seed=0, most={}, corpus="c")
        for e in task.examples:
            if kind == "topic":
                article, paragraph = map(int, e.group.split("/"))
                assert e.text in articles[article][paragraph]
                continue
            found = [
                next(n for n, lines in enumerate(articles) if text in "\n".join(lines))
                for text in (e.text, e.text_2)
            ]
            assert set(map(str, found)) == set(e.group.split())
            assert e.label == (found[0] == found[1])


def test_topic_is_of_the_eight_longest_articles_four_of_each_label(corpus):
    task = builtin_task("topic", corpus, seed=0, most={}, corpus="c")
    label_of = {e.group.split("/")[0]: e.label for e in task.examples}
    lengths = [len(article) for article in corpus.split("\n\n")]
    longest = sorted(range(len(lengths)), key=lambda number: -lengths[number])[:8]
    assert set(label_of) == set(map(str, longest))
    assert sorted(label_of.values()) == [0] * 4 + [1] * 4
    for split in SPLITS:
        assert {e.group.split("/")[0] for e in task.split(split)} == set(label_of)


def test_a_shifted_bigram_is_two_neighbours_swapped_and_nothing_else(corpus):
    task = builtin_task("bigram_shift", corpus, seed=0, most={}, corpus="c")
    whole = " ".join(corpus.split())
    for e in task.examples:
        words = e.text.split()
        swapped = [
            " ".join([*words[:i], words[i + 1], words[i], *words[i + 2 :]])
            for i in range(len(words) - 1)
        ]
        assert (e.text in whole) == (e.label == 0)
        assert e.label == 0 or any(text in whole for text in swapped)


def test_equal_seeds_give_equal_bytes_and_others_another_split(corpus, tmp_path):
    written = []
    for number, seed in enumerate((0, 0, 1)):
        path = tmp_path / str(number) / "topic.csv"
        write_task(path, builtin_task("topic", corpus, seed=seed, most={"train": 60}, corpus="c"))
        written.append(path.read_bytes())
        assert json.loads(path.with_suffix(".json").read_text())["train"] == 60
    assert written[0] == written[1] != written[2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_is_too_short_is_named_with_the_remedy(kind, corpus):
    few = "\n\n".join(corpus.split("\n\n")[:5])
    short = "\n\n".join(["Title\nOne long sentence of some more words stands here alone."] * 9)
    for text, reason in ((few, "has 5 articles"), (short, "is too short for the task")):
        with pytest.raises(InputError, match=reason) as error:
            builtin_task(kind, text, seed=0, most={}, corpus="corpus/text.txt")
        assert "corpus.first_bytes" in str(error.value)


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
        checked(Task(metric, examples), "task `t`")
