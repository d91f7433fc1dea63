"""Tasks whose labels follow from a corpus, so that nothing is downloaded."""

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise, repeat

import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.random_streams import random_stream
from shape_of_learning.tasks.examples import SPLITS, Example, Task, at_most

TOPIC_ARTICLES = 8
# In which of two groups the longest article is, the next one, and so on: about as much text in both.
TOPIC_GROUPS = (0, 1, 1, 0, 0, 1, 1, 0)
HELD_OUT = 0.2  # of paragraphs or articles
MOST_ARTICLES = 2000  # that are looked at
MOST_FOURS = 8  # of sentences of an article: two pairs each
FEWEST = 10  # examples of a split with which a score means anything
MOST = {"train": 2000, "held_out": 500}
_END = re.compile(r"(?<=[.!?])\s+(?=\S)")
CHARACTERS = range(40, 301)  # shorter ones say little, and longer ones are often no sentences
FEWEST_WORDS = 5


@dataclass(frozen=True)
class Sentence:
    """A sentence, and the numbers of its article in the text and of its paragraph there."""

    article: int
    paragraph: int
    text: str


def builtin_task(kind: str, text: str, *, seed: int, most: dict[str, int], corpus: object) -> Task:
    """Make one of the tasks of :data:`KINDS` from a cleaned text.

    Parameters
    ----------
    kind : str
        ``"topic"``: in which of two groups of four articles a sentence is, of the eight longest; split by
        paragraph. ``"same_article"``: whether two sentences are from one article; split by article.
        ``"bigram_shift"``: whether two neighbouring words of a sentence are swapped; split by paragraph.
    text : str
        Articles with a blank line between them, a paragraph a line.
    seed : int
        Decides the split and every choice.
    most : dict of str to int
        Most examples of each split; :data:`MOST` for one that is not there.
    corpus : object
        How messages call the text.

    Returns
    -------
    Task
        Each split has as many examples of one label as of the other, judged by accuracy.

    Raises
    ------
    InputError
        If the text is too short.
    """
    rng = random_stream(seed, f"task {kind}")
    articles = articles_of(text)
    if len(articles) < TOPIC_ARTICLES:
        raise InputError(
            f"{corpus} has {len(articles)} articles, but the task `{kind}` is made of at least "
            f"{TOPIC_ARTICLES}; raise `corpus.first_bytes`, or give a larger corpus in corpus.sources"
        )
    made = KINDS[kind](articles, rng)
    chosen: list[Example] = []
    for split in SPLITS:
        examples = [example for example in made if example.split == split]
        balanced = _balanced(examples, rng, most.get(split, MOST[split]))
        if len(balanced) < FEWEST:
            raise InputError(
                f"{corpus} is too short for the task `{kind}`: it gives {len(balanced)} examples of the "
                f"split `{split}`, where {FEWEST} are needed; raise `corpus.first_bytes`, or give a larger "
                "corpus in corpus.sources"
            )
        chosen += balanced
    return Task("accuracy", chosen)


def _topic(articles: list[str], rng: np.random.Generator) -> list[Example]:
    longest = heapq.nlargest(
        TOPIC_ARTICLES, range(len(articles)), key=lambda number: (len(articles[number]), -number)
    )
    label_of = dict(zip(longest, TOPIC_GROUPS, strict=True))
    sentences = sentences_of((number, articles[number]) for number in longest)
    # Within each article, so that all are in both splits.
    split_of: dict[str, str] = {}
    for number in longest:
        paragraphs = dict.fromkeys(_paragraph(s) for s in sentences if s.article == number)
        split_of |= _split_at_random(paragraphs, rng)
    return [
        Example(split_of[_paragraph(s)], label_of[s.article], _paragraph(s), s.text)
        for s in sentences
    ]


def _bigram_shift(articles: list[str], rng: np.random.Generator) -> list[Example]:
    sentences = _drawn_sentences(articles, rng)
    split_of = _split_at_random(dict.fromkeys(map(_paragraph, sentences)), rng)
    labels = rng.permutation(np.arange(len(sentences)) % 2).tolist()
    examples = []
    for sentence, label in zip(sentences, labels, strict=True):
        text = _swapped(sentence.text, rng) if label else " ".join(sentence.text.split())
        if text is not None:
            group = _paragraph(sentence)
            examples.append(Example(split_of[group], label, group, text))
    return examples


def _swapped(sentence: str, rng: np.random.Generator) -> str | None:
    """Swap two neighbouring words, neither the first nor the last; None if all are the same."""
    words = sentence.split()
    places = [
        place
        for place, (word, following) in enumerate(pairwise(words))
        if 0 < place < len(words) - 2 and word.lower() != following.lower()
    ]
    if not places:
        return None
    place = places[rng.integers(len(places))]
    words[place : place + 2] = reversed(words[place : place + 2])
    return " ".join(words)


def _same_article(articles: list[str], rng: np.random.Generator) -> list[Example]:
    """Pair sentences so that each label sees as many of each article."""
    of_article: dict[int, list[Sentence]] = {}
    for sentence in _drawn_sentences(articles, rng):
        of_article.setdefault(sentence.article, []).append(sentence)
    split_of = _split_at_random(dict.fromkeys(map(str, of_article)), rng)
    shuffled = {
        number: [own[place] for place in rng.permutation(len(own))]
        for number, own in of_article.items()
    }
    examples = []
    for split in SPLITS:
        inside = [own for number, own in shuffled.items() if split_of[str(number)] == split]
        for start in range(0, 4 * MOST_FOURS, 4):
            fours = [own[start : start + 4] for own in inside if len(own) >= start + 4]
            if len(fours) < 2:
                break
            for own, other in zip(fours, [*fours[1:], fours[0]], strict=True):
                examples.append(_pair(split, 1, own[0], own[1]))
                examples.append(_pair(split, 0, own[2], other[3]))
    return examples


def _pair(split: str, label: int, first: Sentence, second: Sentence) -> Example:
    group = " ".join(dict.fromkeys([str(first.article), str(second.article)]))
    return Example(split, label, group, first.text, second.text)


def _drawn_sentences(articles: list[str], rng: np.random.Generator) -> list[Sentence]:
    numbers = sorted(rng.permutation(len(articles))[:MOST_ARTICLES].tolist())
    return sentences_of((number, articles[number]) for number in numbers)


def _paragraph(sentence: Sentence) -> str:
    return f"{sentence.article}/{sentence.paragraph}"


def _split_at_random(groups: Iterable[str], rng: np.random.Generator) -> dict[str, str]:
    """Put a share of the groups, but at least one of two, into the held-out split."""
    named = list(groups)
    held_out = max(round(HELD_OUT * len(named)), min(1, len(named) - 1))
    order = [named[place] for place in rng.permutation(len(named))]
    return dict(zip(order[:held_out], repeat(SPLITS[1]))) | dict(
        zip(order[held_out:], repeat(SPLITS[0]))
    )


def _balanced(examples: list[Example], rng: np.random.Generator, most: int) -> list[Example]:
    """As many examples of each label, `most` in all at most."""
    by_label: dict[float, list[Example]] = {0: [], 1: []}
    for example in examples:
        by_label[example.label].append(example)
    each = min(most // 2, *map(len, by_label.values()))
    kept = [at_most(own, rng.permutation(len(own)).tolist(), each) for own in by_label.values()]
    together = [example for own in kept for example in own]
    return [together[place] for place in rng.permutation(len(together))]


def articles_of(text: str) -> list[str]:
    """Divide a cleaned text at its blank lines; a line is then a paragraph."""
    return [article for article in text.split("\n\n") if article.strip()]


def sentences_of(articles: Iterable[tuple[int, str]]) -> list[Sentence]:
    """List the sentences of numbered articles, without those that occur more than once.

    A repeated one could stand on both sides of a split, whatever it is split by.
    """
    found = [
        Sentence(number, place, sentence)
        for number, article in articles
        for place, paragraph in enumerate(article.splitlines())
        for sentence in map(str.strip, _END.split(paragraph))
        if _is_whole(sentence)
    ]
    times = Counter(_compared(sentence.text) for sentence in found)
    return [sentence for sentence in found if times[_compared(sentence.text)] == 1]


def _is_whole(sentence: str) -> bool:
    return (
        len(sentence) in CHARACTERS
        and sentence[-1] in ".!?"
        and len(sentence.split()) >= FEWEST_WORDS
    )


def _compared(sentence: str) -> str:
    return " ".join(sentence.lower().split())


KINDS: dict[str, Callable[[list[str], np.random.Generator], list[Example]]] = {
    "topic": _topic,
    "same_article": _same_article,
    "bigram_shift": _bigram_shift,
}
