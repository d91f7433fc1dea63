"""Sentences of a cleaned corpus, with the article and the paragraph that they are from."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

_END = re.compile(r"(?<=[.!?])\s+(?=\S)")
CHARACTERS = range(40, 301)  # shorter ones say little, and longer ones are often no sentences
FEWEST_WORDS = 5


@dataclass(frozen=True)
class Sentence:
    """A sentence, and the numbers of its article in the text and of its paragraph there."""

    article: int
    paragraph: int
    text: str


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
