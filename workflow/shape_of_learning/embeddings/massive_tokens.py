"""Describe the massive tokens of the hidden states of a checkpoint, and their share of the variance."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from shape_of_learning.embeddings.tokenizers import load_tokenizer
from shape_of_learning.estimators.massive import find_massive, measure_concentration
from shape_of_learning.metrics.selections import HiddenStates

MOST_LISTED = 5  # positions and tokens of a layer


def describe_massive_tokens(states: HiddenStates, tokenizer: Path) -> Iterator[tuple[object, ...]]:
    """Describe the massive tokens of each layer among all its tokens.

    Parameters
    ----------
    states : HiddenStates
    tokenizer : Path
        The folder of the tokenizer, which decodes the tokens.

    Yields
    ------
    tuple
        The cells of ``MASSIVE_COLUMNS``. Positions count from 0 within a window. Positions, and tokens in quotes, are
        listed with their number among the massive tokens, the most frequent first.
    """
    for layer in range(states.layers + 1):
        yield _describe_layer(states, layer, tokenizer)


def _describe_layer(states: HiddenStates, layer: int, tokenizer: Path) -> tuple[object, ...]:
    vectors, rows = states[layer], states.rows
    massive = np.flatnonzero(find_massive(vectors))
    positions = Counter(rows["positions"][massive].tolist()).most_common(MOST_LISTED)
    tokens = Counter(rows["token_ids"][massive].tolist()).most_common(MOST_LISTED)
    decode = load_tokenizer(tokenizer).decode if tokens else str
    texts = [(json.dumps(decode([token]), ensure_ascii=False), count) for token, count in tokens]
    lists = [
        "; ".join(f"{value} ({count})" for value, count in counts) for counts in (positions, texts)
    ]
    massive_in_layers = int(states.massive.sum())
    concentration = measure_concentration(vectors)
    return (layer, *concentration, len(massive), massive_in_layers, len(vectors), *lists)
