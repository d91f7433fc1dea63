"""How often 95 % intervals hold the truth: draws of 128 windows from simulations of hidden states.

    python -m benchmarks.coverage

writes benchmarks/results/coverage.csv: for each simulation and measure how many of 200 intervals hold the mean of all
draws, and the mean standard error over the true standard deviation.
"""

import csv
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from shape_of_learning.metrics.intervals import interval, standard_error
from shape_of_learning.metrics.measure import measure_layer
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.selections import MeasuringProtocol

RESULTS = Path(__file__).parent / "results"
WINDOWS, BATCH, NEIGHBOURS, DRAWS = 128, 4096, 100, 200
ESTIMATORS = (
    *("anisotropy", "anisotropy_uncentered", "average_cosine", "average_cosine_centered"),
    *("two_nn", "two_nn_authors", "mada", "mom", "mle"),
)


class OneLayer:
    """The hidden states of one layer, as :func:`.measure_layer` reads them."""

    layers = 0

    def __init__(self, vectors: np.ndarray, windows: np.ndarray) -> None:
        nothing = np.zeros(len(windows), np.int64)
        self.vectors = vectors
        self.rows = {"windows": windows, "special": nothing.astype(bool)}
        self.rows |= {"positions": nothing, "token_ids": nothing}

    def __getitem__(self, state: int) -> np.ndarray:
        return self.vectors


def shifted(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of 12 dimensions in 64, whose windows differ in their means."""
    means = 0.7 * random.normal(size=(WINDOWS, 1, 12))
    return _bent(means + random.normal(size=(WINDOWS, 110, 12)))


def spread(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of 12 dimensions in 64, whose windows differ in means and spread."""
    means = random.normal(size=(WINDOWS, 1, 12))
    scales = np.exp(0.4 * random.normal(size=(WINDOWS, 1, 1)))
    return _bent(means + scales * random.normal(size=(WINDOWS, 110, 12)))


def typed(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Vectors near those of 3,000 token types, as frequent as words are, with shifted means of windows."""
    types = np.random.default_rng(1).normal(size=(3000, 15))
    frequencies = 1 / np.arange(1, 3001)
    tokens = random.choice(3000, size=(WINDOWS, 110), p=frequencies / frequencies.sum())
    means = 0.3 * random.normal(size=(WINDOWS, 1, 15))
    return _bent(types[tokens] + means + 0.15 * random.normal(size=(WINDOWS, 110, 15)))


def _bent(latent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    windows = np.repeat(np.arange(WINDOWS), latent.shape[1])
    flat = latent.reshape(len(windows), -1)
    embedded = flat @ np.random.default_rng(2).normal(size=(flat.shape[1], 64))
    return (embedded + embedded**2 / 100).astype(np.float32), windows


SIMULATIONS = {"shifted means": shifted, "shifted means and spread": spread, "token types": typed}


def measured(kind: str, number: int) -> dict[str, np.ndarray]:
    """Measure one simulated sample: by estimator the value and the values without each group, (17,)."""
    states = OneLayer(*SIMULATIONS[kind](np.random.default_rng(number)))
    measures = [MEASURES[name].chosen(name, {}) for name in ESTIMATORS]
    protocol = MeasuringProtocol("draw", WINDOWS, number, BATCH, NEIGHBOURS)
    rows = [
        row
        for family in ("isotropy", "dimension")
        for row in measure_layer(states, 0, family, measures, protocol)
    ]
    return {row.estimator: np.array([row.value, *row.without]) for row in rows if row.batch is None}


def main(draws: int = DRAWS) -> None:
    """Measure all draws and write the table."""
    rows = []
    with ProcessPoolExecutor(
        mp_context=get_context("fork"), initializer=threadpool_limits, initargs=(1,)
    ) as pool:
        for kind in SIMULATIONS:
            found = list(pool.map(measured, [kind] * draws, range(draws)))
            for name in ESTIMATORS:
                values, left_out = np.split(np.array([draw[name] for draw in found]), [1], axis=1)
                low, high = interval(values[:, 0], left_out)
                truth, sd = values.mean(), values.std(ddof=1)
                covered = np.mean((low <= truth) & (truth <= high))
                ratio = np.sqrt(np.mean(standard_error(left_out) ** 2)) / sd
                rows.append([kind, name, draws, f"{covered:.3f}", f"{ratio:.2f}"])
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "coverage.csv").open("w", newline="") as file:
        columns = ["simulation", "measure", "draws", "coverage", "error_over_sd"]
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])


if __name__ == "__main__":
    main()
