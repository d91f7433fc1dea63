"""Compare values and speed of our estimators with those of scikit-dimension.

    python -m benchmarks.peers

In one process, in turns; medians of wall and CPU seconds go to benchmarks/results/peers.csv. `make test`
installs scikit-dimension.
"""

import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

import shape_of_learning as sol

RESULTS = Path(__file__).parent / "results"
SIZES = ((4096, 768), (4096, 2560))
NEIGHBOURS, REPEATS = 100, 5
PEERS = ("TwoNN", "MADA", "MOM", "MLE")


def draw_cloud(n: int, d: int) -> np.ndarray:
    """Draw vectors like hidden states: a curved sheet of 20 dimensions, noise and an offset."""
    random = np.random.default_rng(0)
    latent = 4 * random.normal(size=(n, 20)) * np.arange(1, 21) ** -0.5
    directions = random.normal(size=(40, d)) / d**0.5
    sheet = np.hstack([latent, np.sin(latent)]) @ directions
    return (sheet + 0.05 * random.normal(size=(n, d)) + random.normal(size=d)).astype(np.float32)


def estimate_dimensions(X: np.ndarray) -> dict[str, float]:
    """Compute four estimators from one search."""
    r = sol.nearest_distances(X, NEIGHBOURS)
    return {"TwoNN": sol.two_nn(r), "MADA": sol.mada(r), "MOM": sol.mom(r), "MLE": sol.mle(r)}


def make_peer(name: str) -> Callable[[np.ndarray], dict[str, float]]:
    """Make one estimator of scikit-dimension, with as many neighbours as ours."""
    import skdim

    settings = {"n_neighbors": NEIGHBOURS} if name == "MOM" else {}
    return lambda X: {name: float(getattr(skdim.id, name)().fit(X, **settings).dimension_)}


def main() -> None:
    """Measure, compare and write the table."""
    warnings.simplefilter("ignore")
    contenders = {
        "ours, four estimators": estimate_dimensions,
        "ours, TwoNN alone": lambda X: {"TwoNN": sol.two_nn(sol.nearest_distances(X, 2))},
        **{f"scikit-dimension, {name}": make_peer(name) for name in PEERS},
    }
    rows = []
    for n, d in SIZES:
        X, times, values = draw_cloud(n, d).astype(float), {}, {}
        for turn in range(REPEATS + 1):  # the first is not counted
            for name, compute in contenders.items():
                wall, cpu = time.perf_counter(), time.process_time()
                values[name] = compute(X)
                if turn:
                    spent = time.perf_counter() - wall, time.process_time() - cpu
                    times.setdefault(name, []).append(spent)
        for peer in PEERS:
            assert np.isclose(
                values["ours, four estimators"][peer],
                *values[f"scikit-dimension, {peer}"].values(),
                1e-6,
            )
        for name in contenders:
            wall, cpu = (median(seconds) for seconds in zip(*times[name], strict=True))
            rows.append([f"{n} x {d}", name, f"{wall:.3f}", f"{cpu:.3f}", values[name]])
        wall, cpu = (
            sum(median(t[clock] for t in times[f"scikit-dimension, {peer}"]) for peer in PEERS)
            / median(t[clock] for t in times["ours, four estimators"])
            for clock in (0, 1)
        )
        print(
            f"{n} x {d}: {wall:.1f} times as fast as scikit-dimension's four, {cpu:.1f} in CPU seconds"
        )
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "peers.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [["size", "contender", "seconds", "cpu_seconds", "values"], *rows]
        )


if __name__ == "__main__":
    main()
