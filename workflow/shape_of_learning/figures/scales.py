"""Scales: of measures, and of training progress, where step 0 has no logarithm."""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

from shape_of_learning.figures.captions import short_number
from shape_of_learning.figures.inputs import DrawnMeasure

ZERO_GAP = 0.45  # decades between 0 and the first step beyond it
MOST_TICKS = 4  # powers of ten with a label; of more, every other one has its tick only
LABEL_ROOM = 0.07  # of the bar's length, for one tick label


def set_progress_axis(axes: Axes, values: Sequence[float]) -> None:
    """Make the x axis logarithmic, with 0, where it occurs, to the left of an axis break.

    Parameters
    ----------
    values : sequence of float
        Steps or tokens that are drawn; none negative.
    """
    positive = sorted({value for value in values if value > 0})
    has_zero = min(values) == 0
    if not positive:
        axes.set_xticks([0])
        return
    first, last = positive[0], positive[-1]
    if has_zero:
        axes.set_xscale("symlog", linthresh=first, linscale=ZERO_GAP)
        _mark_break(axes, first / 2)
    else:
        axes.set_xscale("log")
    powers = 10.0 ** np.arange(np.floor(np.log10(first)), np.ceil(np.log10(last)) + 1)
    ticks = _between(powers, first, last)
    if len(ticks) < 2:
        ticks = _between(np.outer(powers, [1, 2, 5]).ravel(), first, last)
    if len(ticks) < 2:
        ticks = [first, last]
    minor = _between(np.outer(powers, np.arange(2, 10)).ravel(), first, last)
    if len(ticks) > MOST_TICKS:
        ticks, minor = ticks[::2], ticks[1::2]
    axes.xaxis.set_major_locator(FixedLocator([0, *ticks] if has_zero else ticks))
    axes.xaxis.set_minor_locator(FixedLocator(minor))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def set_measure_axes(panels: Iterable[Axes], measures: Sequence[DrawnMeasure]) -> None:
    """Let y start at 0 or below where the measures are shares or cosines; open the frames."""
    for axes in panels:
        if not any(measure.depends_on_n for measure in measures):
            axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
        open_frame(axes)


def set_log_axis(axes: Axes, subdivisions: Sequence[float] = (1, 2, 5)) -> None:
    """Make the y axis logarithmic, with plain numbers at powers of ten and some of their multiples."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=subdivisions))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def set_whole_ticks(axes: Axes) -> None:
    """Tick x, such as layers, at whole numbers only."""
    axes.xaxis.get_major_locator().set_params(integer=True)


def open_frame(axes: Axes) -> None:
    """Leave out the upper and the right edge of a panel."""
    axes.spines[["top", "right"]].set_visible(False)


def set_step_ticks(bar: Colorbar, steps: Sequence[float]) -> None:
    """Tick every step on a logarithmic colour bar and label those for which there is room."""
    bar.minorticks_off()
    places = np.log(steps)
    room = LABEL_ROOM * (np.log(bar.norm.vmax) - np.log(bar.norm.vmin))
    labelled = [0]
    for i in range(1, len(steps)):
        last = i == len(steps) - 1
        if places[i] - places[labelled[-1]] < room:
            if last and len(labelled) > 1:
                labelled[-1] = i
            continue
        if last or places[-1] - places[i] >= room:
            labelled.append(i)
    words = [short_number(step) if i in labelled else "" for i, step in enumerate(steps)]
    bar.set_ticks(list(steps), labels=words)


def _between(values: np.ndarray, first: float, last: float) -> list[float]:
    return [float(value) for value in values if first <= value <= last]


def _mark_break(axes: Axes, place: float) -> None:
    """Interrupt the bottom spine at `place` in data coordinates with two slashes."""
    slashes = {
        "marker": [(-0.4, -1), (0.4, 1)],
        "markersize": 5,
        "markeredgewidth": 0.6,
        "color": axes.spines["bottom"].get_edgecolor(),
    }
    common = {"transform": axes.get_xaxis_transform(), "clip_on": False, "zorder": 5}
    ends = [place * 0.85, place * 1.15]
    axes.plot(ends, [0, 0], color="white", linewidth=1.5, label="_break", **common)
    axes.plot(ends, [0, 0], linestyle="none", label="_break", **slashes, **common)
