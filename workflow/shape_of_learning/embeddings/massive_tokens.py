"""Which tokens are massive in each hidden state of a checkpoint, and what share of the variance they hold."""

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
    """Describe the massive tokens of each layer, all of whose tokens count.

    Parameters
    ----------
    states : HiddenStates
    tokenizer : Path
        The folder of the tokenizer, which writes the tokens.

    Yields
    ------
    tuple
        Columns ``MASSIVE_COLUMNS``. Positions count from 0 within a window; they and tokens, in quotes, are listed
        with how many of the massive ones they are, the most frequent first.
    """
    for layer in range(states.layers + 1):
        yield _describe_layer(states, layer, tokenizer)


def _describe_layer(states: HiddenStates, layer: int, tokenizer: Path) -> tuple[object, ...]:
    vectors, rows = states[layer], states.rows
    found = np.flatnonzero(find_massive(vectors))
    positions = Counter(rows["positions"][found].tolist()).most_common(MOST_LISTED)
    tokens = Counter(rows["token_ids"][found].tolist()).most_common(MOST_LISTED)
    decode = load_tokenizer(tokenizer).decode if tokens else str
    written = [(json.dumps(decode([token]), ensure_ascii=False), n) for token, n in tokens]
    listed = ["; ".join(f"{each} ({number})" for each, number in of) for of in (positions, written)]
    return (layer, *measure_concentration(vectors), len(found), len(vectors), *listed)
