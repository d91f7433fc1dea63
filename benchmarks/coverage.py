"""Measure the coverage of 95 % intervals with simulated hidden states of 128 windows.

    python -m benchmarks.coverage 200 1

writes benchmarks/results/coverage.csv from 200 draws by one process: for each simulation and measure the share of
intervals that hold the mean of all draws, and the mean standard error over the true standard deviation. Intervals of
measures of blocks should hold the value of 400,000 independent vectors instead, so that a bias counts, too. Intervals
that are withheld because few windows decide count in these columns; the last columns have their share, and the coverage
of the other intervals.
"""

import csv
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from shape_of_learning.estimators.linearity import linearity_adjusted, linearity_increment_adjusted
from shape_of_learning.metrics import measure
from shape_of_learning.metrics.intervals import interval, standard_error
from shape_of_learning.metrics.measure import measure_layer
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.selections import MeasuringProtocol
from shape_of_learning.metrics.tidy import FEWEST_WINDOWS

RESULTS = Path(__file__).parent / "results"
WINDOWS, BATCH, NEIGHBOURS, DRAWS = 128, 4096, 100, 200
ESTIMATORS = (
    *("anisotropy", "anisotropy_uncentered", "average_cosine", "average_cosine_centered"),
    *("participation_ratio", "participation_ratio_corrected", "isoscore"),
    *("two_nn", "two_nn_authors", "mada", "mom", "mle", "gride_8", "gride_32"),
)
BLOCK_MEASURES = {
    f"{target}{suffix}": target
    for target in ("linearity", "linearity_increment")
    for suffix in ("", "_adjusted")
}


class LayerStates:
    """Hidden states, as :func:`.measure_layer` reads them."""

    def __init__(self, *layers: np.ndarray, windows: np.ndarray) -> None:
        nothing = np.zeros(len(windows), np.int64)
        self.each, self.layers = layers, len(layers) - 1
        self.rows = {"windows": windows, "special": nothing.astype(bool)}
        self.rows |= {"positions": nothing, "token_ids": nothing}

    def __getitem__(self, state: int) -> np.ndarray:
        return self.each[state]


def draw_shifted(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw vectors of 12 dimensions in 64, whose windows differ in their means."""
    means = 0.7 * random.normal(size=(WINDOWS, 1, 12))
    return _embed(means + random.normal(size=(WINDOWS, 110, 12)))


def draw_spread(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw vectors of 12 dimensions in 64, whose windows differ in means and spread."""
    means = random.normal(size=(WINDOWS, 1, 12))
    scales = np.exp(0.4 * random.normal(size=(WINDOWS, 1, 1)))
    return _embed(means + scales * random.normal(size=(WINDOWS, 110, 12)))


def draw_typed(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw vectors near those of 3,000 token types with the frequencies of words, and shifted means of windows."""
    types = np.random.default_rng(1).normal(size=(3000, 15))
    frequencies = 1 / np.arange(1, 3001)
    tokens = random.choice(3000, size=(WINDOWS, 110), p=frequencies / frequencies.sum())
    means = 0.3 * random.normal(size=(WINDOWS, 1, 15))
    return _embed(types[tokens] + means + 0.15 * random.normal(size=(WINDOWS, 110, 15)))


def draw_heavy(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw like `draw_shifted`, but scale each vector, as in Student's t with three degrees of freedom."""
    means = 0.7 * random.normal(size=(WINDOWS, 1, 12))
    factors = np.sqrt(3 / random.chisquare(3, size=(WINDOWS, 110, 1)))
    return _embed(means + factors * random.normal(size=(WINDOWS, 110, 12)))


def draw_unequal(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw like `draw_shifted`, but with 20 to 200 vectors a window."""
    means = 0.7 * random.normal(size=(WINDOWS, 1, 12))
    X, windows = _embed(means + random.normal(size=(WINDOWS, 200, 12)))
    is_kept = np.tile(np.arange(200), WINDOWS) < random.integers(20, 201, WINDOWS)[windows]
    return X[is_kept], windows[is_kept]


def draw_massive(random: np.random.Generator, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw like `draw_shifted`, but in a share of the windows one token is sixty times as long, in one direction."""
    X, windows = draw_shifted(random)
    direction = np.random.default_rng(3).normal(size=X.shape[1])
    length = 60 * np.sqrt(np.square(X).sum(axis=1).mean()) / np.linalg.norm(direction)
    hit = np.flatnonzero(random.random(WINDOWS) < share)
    rows = 110 * hit + (0 if share == 1 else random.integers(110, size=len(hit)))
    X[rows] = length * (1 + 0.1 * random.normal(size=(len(hit), 1))) * direction
    return X, windows


def _embed(latent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    windows = np.repeat(np.arange(WINDOWS), latent.shape[1])
    flat = latent.reshape(len(windows), -1)
    embeddings = flat @ np.random.default_rng(2).normal(size=(flat.shape[1], 64))
    return (embeddings + embeddings**2 / 100).astype(np.float32), windows


def draw_block(
    random: np.random.Generator, vectors: int, window_share: float, windows: int = WINDOWS
) -> tuple[np.ndarray, ...]:
    """Draw states of 128 coordinates before and after a block; windows share a part of the variance."""

    def normal() -> np.ndarray:
        means = np.sqrt(window_share) * random.normal(size=(windows, 1, 128))
        states = means + np.sqrt(1 - window_share) * random.normal(size=(windows, vectors, 128))
        return states.reshape(-1, 128)

    X = normal()
    weights = np.random.default_rng(4).normal(size=(128, 128)) / np.sqrt(128)
    Y = X + np.tanh(X @ weights) + normal() / 2
    return X, Y, np.repeat(np.arange(windows), vectors)


@cache
def compute_truth(window_share: float) -> dict[str, float]:
    """Compute the scores of a block from so many windows that no bias remains."""
    X, Y, _ = draw_block(np.random.default_rng(5), 1, window_share, windows=400_000)
    return {
        "linearity": linearity_adjusted(X, Y),
        "linearity_increment": linearity_increment_adjusted(X, Y),
    }


BLOCKS = {
    f"{vectors} vectors per dimension, {100 * window_share:.0f} % the window's own": (
        vectors,
        window_share,
    )
    for window_share in (0.1, 0.5)
    for vectors in (4, 8, 16, 32)
}
SIMULATIONS = {
    **{
        "shifted means": draw_shifted,
        "shifted means and spread": draw_spread,
        "token types": draw_typed,
    },
    **{"heavy tails": draw_heavy, "unequal windows": draw_unequal},
    **{
        f"massive tokens in {100 * share:.0f} %": partial(draw_massive, share=share)
        for share in (0.01, 0.03, 0.1, 1)
    },
    **{
        kind: partial(draw_block, vectors=vectors, window_share=window_share)
        for kind, (vectors, window_share) in BLOCKS.items()
    },
}


def list_measures(kind: str) -> Sequence[str]:
    """List the measures of a simulation."""
    return list(BLOCK_MEASURES) if kind in BLOCKS else ESTIMATORS


def measure_sample(kind: str, number: int) -> dict[str, np.ndarray]:
    """Measure one simulated sample: by estimator effective windows, the value, the values without each group."""
    measure.have_few_windows = lambda *_: False  # so that nothing is withheld
    *layers, windows = SIMULATIONS[kind](np.random.default_rng(number))
    states = LayerStates(*layers, windows=windows)
    measures = [MEASURES[name].configure(name, {}) for name in list_measures(kind)]
    protocol = MeasuringProtocol("draw", WINDOWS, number, BATCH, NEIGHBOURS)
    rows = [
        row
        for family in dict.fromkeys(measure.family for measure in measures)
        for row in measure_layer(states, states.layers, family, measures, protocol)
    ]
    return {
        row.estimator: np.array([row.effective_windows, row.value, *row.jackknife_values])
        for row in rows
        if row.batch is None
    }


def main(draws: int = DRAWS, processes: int | None = None) -> None:
    """Measure all draws and write the table."""
    rows = []
    with ProcessPoolExecutor(
        processes, mp_context=get_context("fork"), initializer=threadpool_limits, initargs=(1,)
    ) as pool:
        for kind in SIMULATIONS:
            draws_of_kind = list(pool.map(measure_sample, [kind] * draws, range(draws)))
            for name in list_measures(kind):
                effective, values, *left_out = np.array([draw[name] for draw in draws_of_kind]).T
                left_out = np.transpose(left_out)
                low, high = interval(values, left_out)
                true = values.mean()
                if kind in BLOCKS:
                    true = compute_truth(BLOCKS[kind][1])[BLOCK_MEASURES[name]]
                covers = (low <= true) & (true <= high)
                ratio = np.sqrt(np.mean(standard_error(left_out) ** 2)) / values.std(ddof=1)
                has_interval = ~(effective < FEWEST_WINDOWS)
                coverage_of_others = (
                    f"{covers[has_interval].mean():.3f}" if has_interval.any() else ""
                )
                cells = [
                    f"{covers.mean():.3f}",
                    f"{ratio:.2f}",
                    f"{1 - has_interval.mean():.3f}",
                    coverage_of_others,
                ]
                rows.append([kind, name, draws, *cells])
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "coverage.csv").open("w", newline="") as file:
        columns = ["simulation", "measure", "draws", "coverage", "error_over_sd"]
        columns += ["withheld", "coverage_of_others"]
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
