"""Set the scales and ticks of axes: of measures, and of training progress, where 0 has no logarithm."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from shape_of_learning.figures.captions import format_short, join_sentences
from shape_of_learning.figures.job import DrawnMeasure
from shape_of_learning.figures.style import BEYOND, MARKS, SUSPECT, measure_width

ZERO_GAP = 0.45  # decades between 0 and the first step after it
BAR_ASPECT = 25  # height over width of a bar beside one panel
# The last label but one is dropped if it is nearer to the last than this share of a stride.
CROWDED = 0.7
FEW_POWERS = 1000  # a log axis whose ends have a smaller ratio also labels multiples of powers
NARROW = 5  # a log axis whose ends have a smaller ratio has the labels of a linear axis
MOST_RANKS = 14  # labels of steps along a panel
MOST_TICKS = 20  # ticks without a label along a panel
NEAR_ONE = 0.5  # an axis whose values are all larger ends at 1 and need not begin at 0
MARGIN = 0.05  # share of the drawn range
LABEL_GAP = 0.06  # inches between two labels
PANEL_SHARE = 0.8  # the share of a panel's width that the layout leaves
# Suspect values above this multiple of the largest other value are beyond the axis.
MOST_BEYOND = 2
MOST_BELOW = 2  # bands do not extend a log axis below the smallest value over this number
UPPER_EDGE = 0.97  # of a panel's height
format_exact = "{:,.0f}".format
# Batch sizes up to this ratio count as equal, since some models round their tokens.
SAME_SIZE = 1.01


def choose_progress_column(table: pd.DataFrame) -> str:
    """Return ``tokens`` if batch sizes differ and all checkpoints state their tokens, else ``step``."""
    has_tokens = table["tokens"].notna().all()
    return "tokens" if has_tokens and _have_different_batch_sizes(table) else "step"


def describe_progress(table: pd.DataFrame, column: str) -> str:
    """Describe an x axis of steps or tokens."""
    words = {
        "tokens": "The x axis counts tokens, since the models' batch sizes differ.",
        "step": "The models' batch sizes differ, so equal steps are not equal tokens.",
    }
    has_break = (table[column] == 0).any() and (table[column] > 0).any()
    return join_sentences(
        words[column] if _have_different_batch_sizes(table) else "",
        "Left of the axis break: before training." if has_break else "",
    )


def _have_different_batch_sizes(table: pd.DataFrame) -> bool:
    trained_rows = table[(table["step"] > 0) & table["tokens"].notna()]
    tokens = trained_rows["tokens"].astype("float64")
    batch_sizes = tokens / trained_rows["step"].astype("float64")
    sizes = batch_sizes.groupby(trained_rows["model"]).median()
    return len(sizes) > 0 and bool(sizes.max() > SAME_SIZE * sizes.min())


def set_progress_axis(axes: Axes, steps: Iterable[float]) -> None:
    """Make the x axis of steps or tokens logarithmic, with an axis break after 0 if 0 occurs.

    As many steps have labels as fit without touching. A checkpoint without a step has no place.
    """
    values = [int(step) for step in steps if not pd.isna(step)]
    if not values:
        axes.set_xticks([])
        return
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
    ticks = _choose_step_labels([0, *positive] if has_zero else positive, places, length)
    axes.set_xticks([*ticks], [*ticks.values()])
    # The other steps have ticks without labels.
    unlabelled_steps = [step for step in positive if step not in ticks]
    are_few = len(unlabelled_steps) <= MOST_TICKS
    axes.xaxis.set_minor_locator(FixedLocator(unlabelled_steps) if are_few else NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


def begin_at_zero(axes: Axes, measures: Sequence[DrawnMeasure]) -> None:
    """Begin the y axis at 0 or below for shares and cosines; if all are above 0.5, span their values up to 1.

    The axis of another measure begins at 0 if its bands reach below 0 but its values do not, and if all values are
    suspect, so that their differences do not stand out. Suspect values far above the other values are beyond the axis,
    with a mark at its upper edge. A log axis does not change. Call this after everything is drawn.
    """
    if axes.get_yscale() == "log":
        return
    panels = axes.get_shared_y_axes().get_siblings(axes)
    if not all(measure.begins_at_zero for measure in measures):
        values, suspect_values = _list_line_values(panels)
        are_suspect = bool(values) and len(suspect_values) == len(values)
        if min(values, default=0.0) >= 0 and (axes.get_ylim()[0] < 0 or are_suspect):
            axes.set_ylim(bottom=0)
        _limit_to_trusted(axes, values, suspect_values)
        return
    lowest = min(panel.dataLim.y0 for panel in panels)
    highest = max(panel.dataLim.y1 for panel in panels)
    if NEAR_ONE < lowest <= highest <= 1:
        margin = MARGIN * (1 - lowest)
        axes.set_ylim(lowest - margin, 1 + margin)
    else:
        low, high = axes.get_ylim()
        axes.set_ylim(min(0, low), max(high, 1.03 * highest))


def _list_line_values(panels: Iterable[Axes]) -> tuple[list[float], list[float]]:
    """List the values of the lines in some panels, then their suspect values."""
    values: list[float] = []
    suspect_values: list[float] = []
    for axes in panels:
        for line in axes.get_lines():
            label, y = str(line.get_label()), np.asarray(line.get_ydata(), dtype=float)
            if line.get_transform() == axes.transData and (label == SUSPECT or label not in MARKS):
                (suspect_values if label == SUSPECT else values).extend(y[np.isfinite(y)])
    return values, suspect_values


def _limit_to_trusted(axes: Axes, values: Sequence[float], suspect_values: Sequence[float]) -> None:
    """End an axis at :data:`MOST_BEYOND` times the largest value that is not suspect, if suspect values are larger."""
    trusted_values = list((Counter(values) - Counter(suspect_values)).elements())
    end = MOST_BEYOND * max(trusted_values, default=0.0)
    if end <= 0 or max(values) <= end:
        return
    axes.set_ylim(top=end)
    for line in axes.get_lines():
        if line.get_label() == SUSPECT:
            x, y = (np.asarray(data, dtype=float) for data in line.get_data())
            edge = {"transform": axes.get_xaxis_transform(), "label": BEYOND}
            if (above := x[y > end]).size:
                heights = np.full(above.size, UPPER_EDGE)
                axes.plot(above, heights, color=line.get_color(), **MARKS[BEYOND].look, **edge)


def set_log_axis(axes: Axes, span: float = FEW_POWERS) -> None:
    """Make the y axis logarithmic; call this after everything is drawn.

    Values decide the lower edge, and bands that reach lower end there. `span` is the argument of
    :func:`set_log_ticks`.
    """
    axes.set_yscale("log")
    values, _ = _list_line_values(axes.get_shared_y_axes().get_siblings(axes))
    lower_edge = min((value for value in values if value > 0), default=0.0) / MOST_BELOW
    if axes.get_ylim()[0] < lower_edge:
        axes.set_ylim(bottom=lower_edge)
    set_log_ticks(axes.yaxis, span)


def set_log_ticks(axis: Axis, span: float = FEW_POWERS) -> None:
    """Label powers of ten with plain numbers, and multiples by 2 and 5 if the ratio of the ends is below `span`."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1,) if high > span * low else (1, 2, 5)))
    if high < NARROW * low:  # such a range may hold no power of ten
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_short(value)))
    axis.set_minor_formatter(NullFormatter())


def name_axis(measure: DrawnMeasure) -> str:
    """Return the quantity of an axis, and on a second line the measure if it has another name."""
    is_named = measure.label == measure.axis
    return measure.axis if is_named else f"{measure.axis},\n{measure.label}"


def set_whole_ticks(axis: Axis) -> None:
    """Label whole numbers only, even if the axis has a single one."""
    axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))


def set_rank_ticks(axis: Axis, steps: Sequence[int], limit: int) -> None:
    """Label places 0, 1, ... of an axis by steps, with at most `limit` labels.

    If two short labels would be equal, half as many labels are written in full.
    """
    ranks, format_step = _choose_ranks(len(steps) - 1, limit), format_short
    if _have_equal_labels([steps[rank] for rank in ranks]):
        ranks, format_step = _choose_ranks(len(steps) - 1, limit // 2), format_exact
    axis.set_ticks(ranks, labels=[format_step(steps[rank]) for rank in ranks])
    axis.set_minor_locator(NullLocator())


def place_steps(steps: Sequence[float]) -> np.ndarray:
    """Return the places of ascending steps on a logarithmic axis in decades; 0 lies left of the first positive step."""
    values = np.asarray(steps, dtype=float)
    positive = values[values > 0]
    if not positive.size:
        return np.zeros(len(values))
    # Step 0 is as far from the first positive step as this is from the second, but at most a decade.
    gap = np.clip(np.log10(positive[1] / positive[0]), 0.1, 1) if positive.size > 1 else 0.5
    zero_place = np.log10(positive[0]) - gap
    return np.where(values > 0, np.log10(np.maximum(values, positive[0])), zero_place)


def find_cell_edges(places: np.ndarray) -> np.ndarray:
    """Return the edges of cells around ascending places, half-way between neighbours."""
    if len(places) == 1:
        return places[0] + np.array([-0.5, 0.5])
    middle = (places[1:] + places[:-1]) / 2
    return np.concatenate([[2 * places[0] - middle[0]], middle, [2 * places[-1] - middle[-1]]])


def set_step_ticks(axis: Axis, steps: Sequence[int], length: float) -> None:
    """Label steps at their :func:`place_steps` along an axis of `length` inches, as many as fit without touching."""
    places = place_steps(steps)
    edges = find_cell_edges(places)
    share = np.ptp(places) / (edges[-1] - edges[0])
    ticks = _choose_step_labels(steps, places, length * share)
    place_of = dict(zip(steps, places, strict=True))
    axis.set_ticks([place_of[step] for step in ticks], labels=[*ticks.values()])
    axis.set_minor_locator(NullLocator())


def _choose_step_labels(steps: Sequence[int], places: np.ndarray, length: float) -> dict[int, str]:
    """Choose the labels of steps along `length` inches: both ends, powers of ten, then all other steps that fit.

    If two short labels would be equal, all labels are written in full.
    """
    inches = length * (places - places[0]) / (np.ptp(places) or 1)
    powers = [rank for rank, step in enumerate(steps) if step and np.log10(step) % 1 == 0]
    ranks = dict.fromkeys([len(steps) - 1, 0, *powers[::-1], *range(len(steps) - 1, -1, -1)])
    labels: dict[int, str] = {}
    for format_step in (format_short, format_exact):
        widths = [measure_width(format_step(step)) for step in steps]
        shown_ranks: list[int] = []
        for rank in ranks:
            room = [
                abs(inches[rank] - inches[other]) - (widths[rank] + widths[other]) / 2
                for other in shown_ranks
            ]
            if min(room, default=LABEL_GAP) >= LABEL_GAP:
                shown_ranks.append(rank)
        labels = {steps[rank]: format_step(steps[rank]) for rank in sorted(shown_ranks)}
        if not _have_equal_labels([*labels]):
            break
    return labels


def add_bar(
    mappable: ScalarMappable, panels: np.ndarray, label: str, extend: str = "neither"
) -> Colorbar:
    """Put a bar of colours to the right of an array of panels, with arrows at the ends that values `extend` beyond."""
    rows, columns = panels.shape
    place = {"pad": 0.02, "aspect": BAR_ASPECT * rows, "fraction": 0.15 / columns, "extend": extend}
    bar = panels[0, 0].figure.colorbar(mappable, ax=[*panels.flat], label=label, **place)
    bar.outline.set_visible(False)
    return bar


def _choose_ranks(last: int, limit: int) -> list[int]:
    """Choose at most `limit` places from 0 to `last` at even distances, with both ends."""
    stride = max(1, -(-last // max(1, limit - 1)))
    ranks = [*range(0, last, stride)]
    if ranks and last - ranks[-1] < CROWDED * stride:
        ranks.pop()
    return [*ranks, last]


def _have_equal_labels(values: Sequence[float]) -> bool:
    """Tell whether two different numbers have equal short labels."""
    return len({format_short(value) for value in values}) < len(set(values))


def _mark_break(axes: Axes, place: float) -> None:
    """Draw two slashes that break the bottom spine at `place`, in data coordinates."""
    slashes = {"marker": [(-0.4, -1), (0.4, 1)], "markersize": 5, "markeredgewidth": 0.6}
    ink = axes.spines["bottom"].get_edgecolor()
    transform = axes.get_xaxis_transform()
    common = {"transform": transform, "clip_on": False, "zorder": 5, "label": "_break"}
    ends = [place * 0.85, place * 1.15]
    axes.plot(ends, [0, 0], color="white", linewidth=1.5, **common)
    axes.plot(ends, [0, 0], color=ink, linestyle="none", **slashes, **common)
