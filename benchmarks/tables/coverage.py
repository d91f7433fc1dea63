"""How often 95 % intervals hold the truth: simulated vectors, and a real encoder on real text."""

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.contest import CORES, Measured
from benchmarks.sampled_windows import ESTIMATORS, SIMULATIONS, Draw, Encoder, simulation
from benchmarks.wikitext import ENWIK
from shape_of_learning.metrics.resampling import interval, standard_error

TITLE = "Coverage of 95 % intervals"
DRAWS = {"simulated": 200, "encoder": 27}
OWN = ESTIMATORS
TARGETS: list[object] = []
AGREEMENTS: list[object] = []


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """Draw many samples of 128 windows, and compare the interval of each with what they say in the mean."""
    rows = []
    for kind in list(SIMULATIONS)[: 1 if tiny else None]:
        draws = all_draws(simulation(kind), 3 if tiny else DRAWS["simulated"])
        rows += rows_of(
            f"simulated, {kind}", [{n: d[kind, 0][n] for n in ESTIMATORS} for d in draws]
        )
    if ENWIK.exists() and not tiny:
        rows += _encoder_rows(folder)
    return rows


def _encoder_rows(folder: Path) -> list[Measured]:
    draws = all_draws(Encoder(folder, None).draw, DRAWS["encoder"])
    layers = Encoder.LAYERS

    def of(take: Callable[[dict[tuple[str, int], Draw], str], np.ndarray]) -> list[Draw]:
        return [{name: take(draw, name) for name in ESTIMATORS} for draw in draws]

    def mean(
        draw: dict[tuple[str, int], Draw], name: str, which: str, over: Iterable[int]
    ) -> np.ndarray:
        return np.mean([draw[which, layer][name] for layer in over], axis=0)

    rows = []
    for layer in layers:
        rows += rows_of(f"layer {layer}", of(lambda d, n, k=layer: d["trained", k][n]))
    rows += rows_of("average of layers 1 to 6", of(lambda d, n: mean(d, n, "trained", layers[1:])))
    both = Encoder.EARLIER_LAYERS
    for layer in both:
        rows += rows_of(
            f"layer {layer}, difference of steps",
            of(lambda d, n, k=layer: d["trained", k][n] - d["earlier", k][n]),
        )
    rows += rows_of(
        "average of layers 1, 3 and 6, difference of steps",
        of(lambda d, n: mean(d, n, "trained", both) - mean(d, n, "earlier", both)),
    )
    return rows


def rows_of(case: str, draws: list[Draw]) -> list[Measured]:
    """Coverage of each estimator's interval, and the standard error beside the true one."""
    rows = []
    for name in draws[0]:
        values, left_out = np.split(np.array([draw[name] for draw in draws]), [1], axis=1)
        values = values[:, 0]
        low, high = interval(values, left_out)
        truth, sd = values.mean(), values.std(ddof=1)
        found = {
            "draws": len(draws),
            "truth": truth,
            "sd": sd,
            "coverage": float(np.mean((low <= truth) & (truth <= high))),
            "standard_error": float(np.sqrt(np.mean(standard_error(left_out) ** 2))),
        }
        rows.append(Measured(case, name, repeats=len(draws), values=found))
    return rows


def all_draws(
    draw: Callable[[int], dict[tuple[str, int], Draw]], count: int
) -> list[dict[tuple[str, int], Draw]]:
    """Measure draws 0, 1, ..., one on each core at a time."""
    with ProcessPoolExecutor(
        CORES, mp_context=get_context("fork"), initializer=threadpool_limits, initargs=(1,)
    ) as pool:
        return list(pool.map(draw, range(count)))
