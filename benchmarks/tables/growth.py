"""How cost grows with the number of vectors, n, and of coordinates, d: as a power of either.

The power is the slope of a straight line on logarithmic axes through the times of the five largest sizes;
below, most of the time is overhead. A search compares all pairs: n^2 d. Anisotropy of at most 128 coordinates
forms their products, n d^2; beyond, it reads the matrix a dozen times or two, n d, as it has a leading
direction.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.clouds import stored_cloud
from benchmarks.contest import Contender, Measured, contest
from benchmarks.results import Results
from benchmarks.targets import Target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Growth"
ROWS = [1024 * 2**step for step in range(7)]
ROWS_WIDTH = 128
WIDTHS = [128, 256, 512, 1024, 2560, 5120]
WIDTHS_ROWS = 4096
TINY_ROWS, TINY_WIDTHS = [200, 400], [10, 20]
SEARCH, ANISOTROPY = "nearest_distances, k = 100", "anisotropy"
OWN = (SEARCH, ANISOTROPY)
BY_ROWS, BY_WIDTH = "n", "d"
FITTED = 5


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """One factor at a time."""
    grown = [(n, ROWS_WIDTH) for n in (TINY_ROWS if tiny else ROWS)]
    widened = [(WIDTHS_ROWS if not tiny else 300, d) for d in (TINY_WIDTHS if tiny else WIDTHS)]
    contenders = []
    for n, d in dict.fromkeys(grown + widened):
        size, arguments = f"{n} x {d}", {"cloud": stored_cloud(folder, n, d)}
        for name, function in ((SEARCH, "nearest_distances"), (ANISOTROPY, "anisotropy")):
            contenders.append(Contender(name, f"benchmarks.ours:{function}", arguments, size))
    return contest(contenders, repeats)


def points(results: Results, contender: str, factor: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers n or d, ascending, and the seconds at each, the other one fixed."""
    fixed = f" x {ROWS_WIDTH}" if factor == BY_ROWS else f"{WIDTHS_ROWS} x "
    found = {}
    for size in results.sizes():
        if size.endswith(fixed) if factor == BY_ROWS else size.startswith(fixed):
            n, d = map(int, size.split(" x "))
            found[n if factor == BY_ROWS else d] = results[size, contender].seconds
    if len(found) < 2:
        raise KeyError(factor)
    x = np.array(sorted(found))
    return x, np.array([found[each] for each in x])


def slope(results: Results, contender: str, factor: str) -> float:
    """Fit the power."""
    x, seconds = points(results, contender, factor)
    return float(np.polyfit(np.log(x[-FITTED:]), np.log(seconds[-FITTED:]), 1)[0])


def draw(results: Results) -> "Figure":
    """Seconds over n and over d, on logarithmic axes, with the fitted power beside each line."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
    fixed = {BY_ROWS: f"d = {ROWS_WIDTH}", BY_WIDTH: f"n = {WIDTHS_ROWS}"}
    for axis, factor in zip(axes, (BY_ROWS, BY_WIDTH), strict=True):
        for name, marker in ((SEARCH, "o"), (ANISOTROPY, "s")):
            try:
                x, seconds = points(results, name, factor)
            except KeyError:
                continue
            power = slope(results, name, factor)
            axis.plot(x, seconds, marker=marker, label=f"{name}: {factor}^{power:.2f}")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set(xlabel=f"{factor} ({fixed[factor]})", ylabel="seconds")
        if axis.lines:
            axis.legend(frameon=False, fontsize=8)
    figure.suptitle(TITLE, x=0.01, ha="left", fontsize=11)
    return figure


TARGETS = [
    Target(
        f"{name}: power of {factor}",
        None,
        lambda r, name=name, factor=factor: slope(r, name, factor),
        "",
    )
    for name in (SEARCH, ANISOTROPY)
    for factor in (BY_ROWS, BY_WIDTH)
]
AGREEMENTS = []
