"""Axes: of measures, and of training progress, in steps or tokens, where 0 has no logarithm."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from shape_of_learning.figures.captions import format_short, join_sentences
from shape_of_learning.figures.inputs import DrawnMeasure
from shape_of_learning.figures.style import BEYOND, MARKS, SUSPECT, measure_width

ZERO_GAP = 0.45  # decades between 0 and the first step beyond it
BAR_ASPECT = 25  # height over width, of a bar beside one panel
CROWDED = 0.7  # of the distance between labels
FEW_POWERS = 1000  # times the lower end of a log axis, up to which multiples of powers have labels
NARROW = 5  # times the lower end of a log axis, up to which its labels are those of a linear one
MOST_RANKS = 14  # labels of steps along a panel
NEAR_ONE = 0.5  # from which on distances to 1 are seen, not those to 0
MARGIN = 0.05  # of what is drawn
LABEL_GAP = 0.06  # inches between two labels
PANEL_SHARE = 0.8  # of a panel's width before the layout is made, that remains
MOST_BEYOND = (
    2  # times the largest value that is not suspect, from which on suspect ones are beyond the axis
)
MOST_BELOW = 2  # times that a log axis reaches below the least value, for bands
UPPER_EDGE = 0.97  # of a panel's height
_exact = "{:,.0f}".format
SAME = 1.01  # ratio of batch sizes; some models state their tokens rounded


def choose_progress_column(table: pd.DataFrame) -> str:
    """Choose what the x axis counts: tokens where batch sizes differ and all checkpoints state them, or steps."""
    known = table["tokens"].notna().all()
    return "tokens" if known and _batch_sizes_differ(table) else "step"


def describe_progress(table: pd.DataFrame, column: str) -> str:
    """Say what a reader must know of an x axis of steps or tokens."""
    words = {
        "tokens": "The x axis counts tokens, since the models' batch sizes differ.",
        "step": "The models' batch sizes differ, so equal steps are not equal tokens.",
    }
    has_break = (table[column] == 0).any() and (table[column] > 0).any()
    return join_sentences(
        words[column] if _batch_sizes_differ(table) else "",
        "Left of the axis break: before training." if has_break else "",
    )


def _batch_sizes_differ(table: pd.DataFrame) -> bool:
    trained = table[(table["step"] > 0) & table["tokens"].notna()]
    per_step = trained["tokens"].astype("float64") / trained["step"].astype("float64")
    sizes = per_step.groupby(trained["model"]).median()
    return len(sizes) > 0 and bool(sizes.max() > SAME * sizes.min())


def set_progress_axis(axes: Axes, steps: Iterable[float]) -> None:
    """Make the x axis of steps or tokens logarithmic, with 0, where it occurs, left of an axis break.

    Labels stand at steps that occur, so far as they do not touch.
    """
    values = [int(step) for step in steps]
    positive = sorted({value for value in values if value > 0})
    has_zero = min(values) == 0
    if not positive:
        axes.set_xticks([0])
        return
    first = positive[0]
    if has_zero:
        axes.set_xscale("symlog", linthresh=first, linscale=ZERO_GAP)
        _mark_break(axes, first / 2)
    else:
        axes.set_xscale("log")
    places = np.log10(positive)
    if has_zero:
        places = np.append(places[0] - ZERO_GAP, places)
    length = PANEL_SHARE * axes.get_window_extent().width / axes.figure.dpi
    ticks = _step_labels([0, *positive] if has_zero else positive, places, length)
    axes.set_xticks([*ticks], [*ticks.values()])
    axes.xaxis.set_minor_locator(NullLocator())


def begin_at_zero(axes: Axes, measures: Sequence[DrawnMeasure]) -> None:
    """Let y start at 0 or below where the measures are shares or cosines; end at 1 where all is near it.

    Another measure starts at 0 where its band reaches below and no value does, as no dimension does, and where all
    values are suspect, whose differences are not to be looked at closely. Suspect values that are far above the
    others are beyond the axis, with a mark at its upper edge. A log axis stays as it is. Call it when all is drawn.
    """
    if axes.get_yscale() == "log":
        return
    sharing = axes.get_shared_y_axes().get_siblings(axes)
    if not all(measure.from_zero for measure in measures):
        values, suspect = _drawn_values(sharing)
        least = min(values, default=0.0)
        if least >= 0 and (axes.get_ylim()[0] < 0 or (values and len(suspect) == len(values))):
            axes.set_ylim(bottom=0)
        _limit_to_trusted(axes, values, suspect)
        return
    least, most = min(each.dataLim.y0 for each in sharing), max(each.dataLim.y1 for each in sharing)
    if NEAR_ONE < least <= most <= 1:
        margin = MARGIN * (1 - least)
        axes.set_ylim(least - margin, 1 + margin)
    else:
        low, high = axes.get_ylim()
        axes.set_ylim(min(0, low), max(high, 1.03 * most))


def _drawn_values(panels: Iterable[Axes]) -> tuple[list[float], list[float]]:
    """Return the values of the lines of some panels, and those of them that are suspect; bands do not count."""
    values: list[float] = []
    suspect: list[float] = []
    for axes in panels:
        for line in axes.get_lines():
            label, y = str(line.get_label()), np.asarray(line.get_ydata(), dtype=float)
            if line.get_transform() == axes.transData and (label == SUSPECT or label not in MARKS):
                (suspect if label == SUSPECT else values).extend(y[np.isfinite(y)])
    return values, suspect


def _limit_to_trusted(axes: Axes, values: Sequence[float], suspect: Sequence[float]) -> None:
    """End an axis at :data:`MOST_BEYOND` times the largest value that is not suspect, if suspect ones are above."""
    trusted = list((Counter(values) - Counter(suspect)).elements())
    end = MOST_BEYOND * max(trusted, default=0.0)
    if end <= 0 or max(values) <= end:
        return
    axes.set_ylim(top=end)
    for line in axes.get_lines():
        if line.get_label() == SUSPECT:
            x, y = (np.asarray(each, dtype=float) for each in line.get_data())
            edge = {"transform": axes.get_xaxis_transform(), "label": BEYOND}
            if (above := x[y > end]).size:
                at_the_edge = np.full(above.size, UPPER_EDGE)
                axes.plot(above, at_the_edge, color=line.get_color(), **MARKS[BEYOND].look, **edge)


def set_log_axis(axes: Axes, span: float = FEW_POWERS) -> None:
    """Make the y axis logarithmic, see :func:`set_log_ticks`; call it when all is drawn.

    Bands that reach to 0 or near it end at the lower edge, which values decide.
    """
    axes.set_yscale("log")
    values, _ = _drawn_values(axes.get_shared_y_axes().get_siblings(axes))
    least = min((value for value in values if value > 0), default=0.0) / MOST_BELOW
    if axes.get_ylim()[0] < least:
        axes.set_ylim(bottom=least)
    set_log_ticks(axes.yaxis, span)


def set_log_ticks(axis: Axis, span: float = FEW_POWERS) -> None:
    """Label powers of ten with plain numbers and, up to `span` times the lower end, some of their multiples."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1,) if high > span * low else (1, 2, 5)))
    if high < NARROW * low:  # which may hold none of these
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_short(value)))
    axis.set_minor_formatter(NullFormatter())


def set_whole_ticks(axis: Axis) -> None:
    """Label whole numbers alone, as layers are, also where there is a single one."""
    axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))


def set_rank_ticks(axis: Axis, steps: Sequence[int], most: int) -> None:
    """Label places 0, 1, ... of an axis by the steps that stand there: all, or at most so many.

    Steps that are the same when written short are written in full, half as many.
    """
    ranks, words = _choose_ranks(len(steps) - 1, most), format_short
    if _look_alike([steps[rank] for rank in ranks]):
        ranks, words = _choose_ranks(len(steps) - 1, most // 2), _exact
    axis.set_ticks(ranks, labels=[words(steps[rank]) for rank in ranks])
    axis.set_minor_locator(NullLocator())


def place_steps(steps: Sequence[float]) -> np.ndarray:
    """Return where steps, ascending, stand on a logarithmic axis in decades, 0 left of the first other one."""
    values = np.asarray(steps, dtype=float)
    positive = values[values > 0]
    if not positive.size:
        return np.zeros(len(values))
    # As far from the next one as this is from its successor, but not beyond a decade.
    gap = np.clip(np.log10(positive[1] / positive[0]), 0.1, 1) if positive.size > 1 else 0.5
    before = np.log10(positive[0]) - gap
    return np.where(values > 0, np.log10(np.maximum(values, positive[0])), before)


def find_cell_edges(places: np.ndarray) -> np.ndarray:
    """Return the borders of cells around ascending places, in the middle between neighbours."""
    if len(places) == 1:
        return places[0] + np.array([-0.5, 0.5])
    middle = (places[1:] + places[:-1]) / 2
    return np.concatenate([[2 * places[0] - middle[0]], middle, [2 * places[-1] - middle[-1]]])


def set_step_ticks(axis: Axis, steps: Sequence[int], length: float) -> None:
    """Label steps at their :func:`place_steps` along so many inches: the last, and all that do not touch."""
    places = place_steps(steps)
    edges = find_cell_edges(places)
    share = np.ptp(places) / (edges[-1] - edges[0])
    ticks = _step_labels(steps, places, length * share)
    at = dict(zip(steps, places, strict=True))
    axis.set_ticks([at[step] for step in ticks], labels=[*ticks.values()])
    axis.set_minor_locator(NullLocator())


def _step_labels(steps: Sequence[int], places: np.ndarray, length: float) -> dict[int, str]:
    """Choose the labels along so many inches between ascending places: both ends, powers of ten, then all that fit.

    Returns
    -------
    dict of int to str
        By step, ascending. Steps that are the same when written short are written in full.
    """
    inches = length * (places - places[0]) / (np.ptp(places) or 1)
    powers = [rank for rank, step in enumerate(steps) if step and np.log10(step) % 1 == 0]
    ranks = dict.fromkeys([len(steps) - 1, 0, *powers[::-1], *range(len(steps) - 1, -1, -1)])
    labels: dict[int, str] = {}
    for words in (format_short, _exact):
        widths = [measure_width(words(step)) for step in steps]
        shown: list[int] = []
        for rank in ranks:
            room = [
                abs(inches[rank] - inches[other]) - (widths[rank] + widths[other]) / 2
                for other in shown
            ]
            if min(room, default=LABEL_GAP) >= LABEL_GAP:
                shown.append(rank)
        labels = {steps[rank]: words(steps[rank]) for rank in sorted(shown)}
        if not _look_alike([*labels]):
            break
    return labels


def add_bar(
    mapped: ScalarMappable, panels: np.ndarray, label: str, extend: str = "neither"
) -> Colorbar:
    """Put a bar of colours to the right of panels, shape (rows, columns), that share them.

    It ends in an arrow where values `extend` beyond the colours.
    """
    rows, columns = panels.shape
    place = {"pad": 0.02, "aspect": BAR_ASPECT * rows, "fraction": 0.15 / columns, "extend": extend}
    bar = panels[0, 0].figure.colorbar(mapped, ax=[*panels.flat], label=label, **place)
    bar.outline.set_visible(False)
    return bar


def _choose_ranks(last: int, most: int) -> list[int]:
    """At most so many of the places from 0 to `last`, both among them, at even distances but for the end."""
    stride = max(1, -(-last // max(1, most - 1)))
    ranks = [*range(0, last, stride)]
    if ranks and last - ranks[-1] < CROWDED * stride:
        ranks.pop()
    return [*ranks, last]


def _look_alike(values: Sequence[float]) -> bool:
    """Whether some numbers are the same only when they are written short."""
    return len({format_short(value) for value in values}) < len(set(values))


def _mark_break(axes: Axes, place: float) -> None:
    """Interrupt the bottom spine at `place` in data coordinates with two slashes."""
    slashes = {"marker": [(-0.4, -1), (0.4, 1)], "markersize": 5, "markeredgewidth": 0.6}
    ink = axes.spines["bottom"].get_edgecolor()
    transform = axes.get_xaxis_transform()
    common = {"transform": transform, "clip_on": False, "zorder": 5, "label": "_break"}
    ends = [place * 0.85, place * 1.15]
    axes.plot(ends, [0, 0], color="white", linewidth=1.5, **common)
    axes.plot(ends, [0, 0], color=ink, linestyle="none", **slashes, **common)
