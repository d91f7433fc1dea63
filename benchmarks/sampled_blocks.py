"""Simulated draws of windows before and after a block, and what intervals make of each."""

from collections.abc import Callable

import numpy as np

from benchmarks.sampled_windows import BATCH, NEIGHBOURS, WINDOWS, Draw
from shape_of_learning.metrics.batches import shuffle_of
from shape_of_learning.metrics.layer import measure_layer
from shape_of_learning.metrics.measure_entry import OF_HIDDEN_STATES, by_rows
from shape_of_learning.metrics.pairs import measure_pair
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.resampling import window_groups

TOKENS, WIDTH = 32, 128
OF_WINDOWS, OF_TOKENS = (WINDOWS, 1, WIDTH), (WINDOWS, TOKENS, WIDTH)
# Of a power law, as eigenvalues of hidden states have.
SCALES = np.arange(1, WIDTH + 1) ** -0.5
# Their mean is not zero either.
MEAN = 0.5 * SCALES * np.random.default_rng(0).normal(size=WIDTH)
# All but what the first table has, and what is one of these on other rows of the last layer.
ESTIMATORS = tuple(
    name
    for name, measure in MEASURES.items()
    if measure.of in (*OF_HIDDEN_STATES, "spectrum")
    and "last_layer" not in measure.rows
    and not name.startswith(("anisotropy", "average_cosine"))
)
Windows = Callable[[np.random.Generator], np.ndarray]


def shifted(random: np.random.Generator) -> np.ndarray:
    """Windows that differ in their means."""
    return SCALES * (0.7 * random.normal(size=OF_WINDOWS) + random.normal(size=OF_TOKENS))


def spread(random: np.random.Generator) -> np.ndarray:
    """Windows that differ in means and spread."""
    scales = np.exp(0.4 * random.normal(size=(WINDOWS, 1, 1)))
    return SCALES * (random.normal(size=OF_WINDOWS) + scales * random.normal(size=OF_TOKENS))


def typed(random: np.random.Generator) -> np.ndarray:
    """Vectors near those of 3,000 token types, as frequent as words are, with shifted means of windows."""
    types = np.random.default_rng(1).normal(size=(3000, WIDTH))
    frequencies = 1 / np.arange(1, 3001)
    tokens = random.choice(3000, size=(WINDOWS, TOKENS), p=frequencies / frequencies.sum())
    return SCALES * (
        types[tokens] + 0.3 * random.normal(size=OF_WINDOWS) + 0.3 * random.normal(size=OF_TOKENS)
    )


def massive(random: np.random.Generator) -> np.ndarray:
    """As the second, but the first token of each window is much longer, nearly in one direction."""
    vectors = spread(random)
    direction = np.random.default_rng(2).normal(size=WIDTH)
    vectors[:, 0] = 3 * direction + 3 * vectors[:, 0]
    return vectors


SIMULATIONS: dict[str, Windows] = {
    "shifted means": shifted,
    "shifted means and spread": spread,
    "token types": typed,
    "massive first tokens": massive,
}


def drawn(kind: str, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw vectors before and after a block, float32 of shape (windows, tokens, width).

    The block adds to each vector a bent map of it, and to all vectors of a window a bent map of their mean.
    """
    before = MEAN + SIMULATIONS[kind](np.random.default_rng(number))
    first, second, third, fourth = (
        np.random.default_rng(3).normal(size=(4, WIDTH, WIDTH)) / WIDTH**0.5
    )
    of_token = np.tanh(before @ first) @ second
    of_window = np.tanh(before.mean(axis=1, keepdims=True) @ third) @ fourth
    after = before + SCALES * (of_token + 0.5 * of_window)
    return before.astype(np.float32), after.astype(np.float32)


def simulated(
    kind: str, number: int, names: tuple[str, ...] = ESTIMATORS
) -> dict[tuple[str, int], Draw]:
    """Measure one sample by the workflow's own functions."""
    before, after = drawn(kind, number)
    groups, found = window_groups(WINDOWS, number), {}
    for rows, measures in by_rows(MEASURES[name].chosen(name, {}) for name in names):
        first = 1 if rows.get("first_token") == "drop" else 0
        x, y = (each[:, first:].reshape(-1, WIDTH) for each in (before, after))
        windows = np.repeat(np.arange(WINDOWS), TOKENS - first)
        pairs = {name: measure for name, measure in measures.items() if measure.of == "pair"}
        others = {name: measure for name, measure in measures.items() if measure.of != "pair"}
        found |= measure_pair(x, y, windows, pairs, groups)
        stream = shuffle_of(number, "draw")
        found |= measure_layer(y, windows, others, BATCH, NEIGHBOURS, stream, groups)
    draw = {
        name: np.array([found[name].estimate.value, *found[name].estimate.left_out])
        for name in names
    }
    return {(kind, 0): draw}
