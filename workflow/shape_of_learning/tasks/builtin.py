"""A task whose labels follow from a corpus, so that nothing is downloaded."""

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.random_streams import random_stream
from shape_of_learning.tasks.examples import SPLITS, Example, Task, at_most

# In which of two groups the longest article is, the next one, and so on: about as much text in both.
GROUPS = (0, 1, 1, 0, 0, 1, 1, 0)
HELD_OUT = 0.2  # of the paragraphs of each article
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

    @property
    def group(self) -> str:
        """The paragraph, which is never on both sides of a split."""
        return f"{self.article}/{self.paragraph}"


def topic_task(text: str, *, seed: int, most: Mapping[str, int], corpus: object) -> Task:
    """Make the task in which of two groups of four articles a sentence is, of the eight longest.

    Parameters
    ----------
    text : str
        Articles with a blank line between them, a paragraph a line.
    seed : int
        Decides the split, by paragraph, and every choice.
    most : mapping of str to int
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
    rng = random_stream(seed, "task topic")
    articles = [article for article in text.split("\n\n") if article.strip()]
    if len(articles) < len(GROUPS):
        raise InputError(
            f"{corpus} has {len(articles)} articles, but the task `topic` is made of at least {len(GROUPS)}; "
            "raise `corpus.first_bytes`, or give a larger corpus in corpus.sources"
        )
    made = _examples(articles, rng)
    chosen: list[Example] = []
    for split in SPLITS:
        examples = [example for example in made if example.split == split]
        balanced = _balanced(examples, rng, most.get(split, MOST[split]))
        if len(balanced) < FEWEST:
            raise InputError(
                f"{corpus} is too short for the task `topic`: it gives {len(balanced)} examples of the split "
                f"`{split}`, where {FEWEST} are needed; raise `corpus.first_bytes`, or give a larger corpus in "
                "corpus.sources"
            )
        chosen += balanced
    return Task("accuracy", chosen)


def _examples(articles: Sequence[str], rng: np.random.Generator) -> list[Example]:
    longest = heapq.nlargest(
        len(GROUPS), range(len(articles)), key=lambda number: (len(articles[number]), -number)
    )
    label_of = dict(zip(longest, GROUPS, strict=True))
    sentences = sentences_of((number, articles[number]) for number in longest)
    held_out: set[str] = set()
    for number in longest:  # within each article, so that all are in both splits
        paragraphs = list(dict.fromkeys(s.group for s in sentences if s.article == number))
        share = max(round(HELD_OUT * len(paragraphs)), min(1, len(paragraphs) - 1))
        held_out |= {paragraphs[place] for place in rng.permutation(len(paragraphs))[:share]}
    return [
        Example(SPLITS[s.group in held_out], label_of[s.article], s.group, s.text)
        for s in sentences
    ]


def _balanced(examples: Sequence[Example], rng: np.random.Generator, most: int) -> list[Example]:
    """As many examples of each label, `most` in all at most."""
    by_label = [[example for example in examples if example.label == label] for label in (0, 1)]
    each = min(most // 2, *map(len, by_label))
    kept = [at_most(own, rng.permutation(len(own)).tolist(), each) for own in by_label]
    together = [example for own in kept for example in own]
    return [together[place] for place in rng.permutation(len(together))]


def sentences_of(articles: Iterable[tuple[int, str]]) -> list[Sentence]:
    """List the sentences of numbered articles, without those that occur more than once.

    A repeated one could stand on both sides of a split.
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
    is_long = len(sentence) in CHARACTERS and len(sentence.split()) >= FEWEST_WORDS
    return is_long and sentence[-1] in ".!?"


def _compared(sentence: str) -> str:
    return " ".join(sentence.lower().split())
