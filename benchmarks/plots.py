"""A plot for each table: ``python -m benchmarks.plots TABLE CSV`` writes a PNG beside the CSV."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import matplotlib
import seaborn as sns

from benchmarks.results import Results

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

UNITS = {"seconds": "seconds", "cpu_seconds": "processor seconds", "peak_gb": "GB at the peak"}
# Of seaborn's colour-blind palette: one for what is ours, a grey for everybody else.
OURS_COLOUR, OTHERS_COLOUR = sns.color_palette("colorblind")[0], "0.65"
WIDTH, ROW_HEIGHT, PANEL_HEIGHT = 7.0, 0.28, 0.75
DPI = 160
# Up to it bars begin at zero, so that their lengths show their ratios.
LARGEST_RATIO = 10


def bars(table: ModuleType, results: Results) -> Figure:
    """One panel per size, a bar per contender, or a point on a logarithmic scale if they differ much."""
    shown = getattr(table, "SHOWN", "seconds")
    panels = {
        size: [
            (row.contender, getattr(row, shown))
            for row in results.rows
            if row.size == size and getattr(row, shown)
        ]
        for size in results.sizes()
    }
    panels = {size: rows for size, rows in panels.items() if rows}
    all_shown = [number for rows in panels.values() for _, number in rows]
    scale = "log" if all_shown and max(all_shown) > LARGEST_RATIO * min(all_shown) else "linear"
    heights = [len(rows) * ROW_HEIGHT + PANEL_HEIGHT for rows in panels.values()]
    figure, axes = plt.subplots(
        max(len(panels), 1),
        figsize=(WIDTH, max(sum(heights), 1.0)),
        height_ratios=heights or None,
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for axis, (size, rows) in zip(axes[:, 0], panels.items(), strict=False):
        axis.set_xscale(scale)
        draw_panel(axis, rows, table.OWN)
        axis.set_title(size, loc="left", fontsize=9)
    if panels:
        axes[-1, 0].set_xlabel(UNITS[shown])
    else:
        axes[-1, 0].set_axis_off()
        axes[-1, 0].text(0, 0.5, "; ".join(row.note for row in results.rows), fontsize=8)
    figure.suptitle(table.TITLE, x=0.01, ha="left", fontsize=11)
    sns.despine(figure, left=True)
    return figure


def draw_panel(axis: Axes, rows: list[tuple[str, float]], own: Sequence[str]) -> None:
    """Draw a row for each contender and its number, from the top; `own` are ours."""
    names, numbers = zip(*rows, strict=True)
    colours = [OURS_COLOUR if name in own else OTHERS_COLOUR for name in names]
    if axis.get_xscale() == "log":  # where a bar's length would show nothing
        axis.scatter(numbers, names, c=colours, zorder=2)
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter("{x:g}")
        axis.grid(axis="x", linewidth=0.4)
    else:
        axis.barh(names, numbers, color=colours, height=0.7)
    for name, number in rows:
        axis.annotate(
            f"{number:.3g}", (number, name), (6, 0),
            textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.margins(x=0.12)
    axis.tick_params(axis="y", length=0, labelsize=8)


def main(name: str, path: str) -> None:
    """Draw one table."""
    sns.set_theme(style="ticks", context="paper")
    table = import_module(f"benchmarks.tables.{name}")
    results = Results.read(Path(path))
    draw = getattr(table, "draw", lambda results: bars(table, results))
    draw(results).savefig(Path(path).with_suffix(".png"), dpi=DPI)


if __name__ == "__main__":
    main(*sys.argv[1:])
