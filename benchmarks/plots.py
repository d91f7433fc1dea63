"""A plot for each table: ``python -m benchmarks.plots TABLE CSV`` writes a PNG beside the CSV."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import matplotlib
import seaborn as sns

from benchmarks.results import Results

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

UNITS = {"seconds": "seconds", "cpu_seconds": "processor seconds", "peak_gb": "GB at the peak"}
# Of seaborn's colour-blind palette: one for what is ours, a grey for everybody else.
OURS_COLOUR, OTHERS_COLOUR = sns.color_palette("colorblind")[0], "0.65"
WIDTH, ROW_HEIGHT, PANEL_HEIGHT = 7.0, 0.28, 0.75
DPI = 160
# Up to it bars begin at zero, so that their lengths show their ratios.
LARGEST_RATIO = 10


def bars(table: ModuleType, results: Results) -> Figure:
    """One panel per size, a bar per contender, on a logarithmic scale if they differ much."""
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
        names, numbers = zip(*rows, strict=True)
        colours = [OURS_COLOUR if name in table.OWN else OTHERS_COLOUR for name in names]
        drawn = axis.barh(names, numbers, color=colours, height=0.7)
        axis.bar_label(drawn, [f"{number:.3g}" for number in numbers], padding=3, fontsize=8)
        axis.set_xscale(scale)
        axis.invert_yaxis()
        axis.margins(x=0.12)
        axis.set_title(size, loc="left", fontsize=9)
        axis.tick_params(axis="y", length=0, labelsize=8)
    axes[-1, 0].set_xlabel(UNITS[shown])
    figure.suptitle(table.TITLE, x=0.01, ha="left", fontsize=11)
    sns.despine(figure, left=True)
    return figure


def main(name: str, path: str) -> None:
    """Draw one table."""
    sns.set_theme(style="ticks", context="paper")
    table = import_module(f"benchmarks.tables.{name}")
    results = Results.read(Path(path))
    draw = getattr(table, "draw", lambda results: bars(table, results))
    draw(results).savefig(Path(path).with_suffix(".png"), dpi=DPI)


if __name__ == "__main__":
    main(*sys.argv[1:])
