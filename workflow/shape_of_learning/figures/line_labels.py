"""Labels at the ends of lines that never cover each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from shape_of_learning.figures.footnotes import width_of, wrapped
from shape_of_learning.figures.style import INK, PANEL_HEIGHT, SIZE_OF_TITLES, SIZE_OF_TYPE

LABEL_PITCH = 0.125  # inches from one label to the next: 7 pt type with leading
LABEL_ROOM = 1.3  # inches of its width that any figure has for words beside a panel
TITLE_ROOM = 0.6  # inches of a column's width that are no room for its title
MOST_JOINED = 3  # lines whose labels stand at their ends; more are listed


@dataclass(frozen=True)
class LabelledLine:
    """A drawn line, the words for its end, and what to add to them if it has no point."""

    line: Line2D
    label: str
    without_points: str = "undefined"


def height_for_labels(labels: int, least: float = PANEL_HEIGHT) -> float:
    """Inches of panel height: at least so many, and what so many labels need."""
    return max(least, labels * LABEL_PITCH)


def make_room_for(figure: Figure, labels: Sequence[str]) -> None:
    """Make a figure wider by what labels beside a panel need beyond the room that there is."""
    longest = max(width_of(label, SIZE_OF_TYPE) for label in labels)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width + max(0, longest - LABEL_ROOM), height)


def panel_title(label: str, figure: Figure, columns: int) -> str:
    """Break a label into lines that do not reach into the next of so many columns."""
    room = figure.get_size_inches()[0] / columns - TITLE_ROOM
    return wrapped([label], room, SIZE_OF_TITLES)


def label_line_ends(axes: Axes, lines: Sequence[LabelledLine]) -> None:
    """Write each line's label to the right of the panel, beside a sample of the line without its markers.

    Labels of few lines stand as near to their ends as they can without covering each other, and a thin rule
    joins each to its end. Those of many are a list from the top in the order of `lines`, by family and size.
    A line without a single defined point says so. Call it when all else is drawn.

    Parameters
    ----------
    axes : Axes
        At least :func:`height_for_labels` tall.
    lines : sequence of LabelledLine
    """
    ends = [_last_point(each.line) for each in lines]
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())  # connectors must not move the limits
    words = [
        each.label if np.isfinite(end[1]) else f"{each.label}: {each.without_points}"
        for each, end in zip(lines, ends, strict=True)
    ]
    make_room_for(axes.figure, words)
    axes.figure.draw_without_rendering()  # fixes the panel's height
    height = axes.get_window_extent().height / axes.figure.dpi
    inches_right = axes.figure.dpi_scale_trans + ScaledTranslation(1, 0, axes.transAxes)
    margin = blended_transform_factory(inches_right, axes.transAxes)
    to_fraction = axes.transData + axes.transAxes.inverted()
    pitch = LABEL_PITCH / height
    are_joined = len(lines) <= MOST_JOINED
    if are_joined:
        places = spread(np.nan_to_num(to_fraction.transform(ends)[:, 1]), pitch)
    else:
        places = 1 - pitch * (np.arange(len(lines)) + 0.5)
    for each, end, place, said in zip(lines, ends, places, words, strict=True):
        if are_joined and np.isfinite(end[1]):
            axes.annotate(
                "",
                xy=end,
                xytext=(0.13, place),
                textcoords=margin,
                annotation_clip=False,
                arrowprops={
                    "arrowstyle": "-",
                    "linewidth": 0.4,
                    "color": each.line.get_color(),
                    "shrinkA": 0,
                    "shrinkB": 0,
                },
            )
        sample = Line2D([0.14, 0.39], [place] * 2, transform=margin, clip_on=False)
        sample.update_from(each.line)
        sample.set(transform=margin, clip_on=False, label="_sample", marker="")
        axes.add_artist(sample)
        axes.text(0.43, place, said, transform=margin, va="center_baseline", color=INK)


def spread(wanted: np.ndarray, pitch: float) -> np.ndarray:
    """Places in [0, 1] that are nearest to the `wanted` ones, in their order, and at least `pitch` apart.

    Least squares under the constraint: isotonic regression of the sorted places less ``i * pitch``, by
    pooling neighbours that are out of order.
    """
    order = np.argsort(wanted, kind="stable")
    pools: list[tuple[float, int]] = []
    for i, value in enumerate(wanted[order]):
        mean, size = value - i * pitch, 1
        while pools and pools[-1][0] > mean:
            earlier, count = pools.pop()
            mean = (mean * size + earlier * count) / (size + count)
            size += count
        pools.append((mean, size))
    slack = 1 - (len(wanted) - 1) * pitch  # what the labels' stack leaves of the height
    settled = np.concatenate([np.full(size, mean) for mean, size in pools])
    settled = np.clip(settled, min(pitch / 2, slack / 2), max(slack - pitch / 2, slack / 2))
    places = np.empty(len(wanted))
    places[order] = settled + np.arange(len(wanted)) * pitch
    return places


def _last_point(line: Line2D) -> tuple[float, float]:
    x, y = line.get_data()
    present = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    return (x[present[-1]], y[present[-1]]) if present.size else (np.nan, np.nan)
