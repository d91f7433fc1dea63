"""Labels at the ends of lines that never cover each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from shape_of_learning.figures.style import INK, PANEL_HEIGHT

LABEL_PITCH = 0.125  # inches from one label to the next: 7 pt type with leading
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
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())  # connectors must not move the limits
    axes.figure.draw_without_rendering()  # fixes the panel's height
    height = axes.get_window_extent().height / axes.figure.dpi
    inches_right = axes.figure.dpi_scale_trans + ScaledTranslation(1, 0, axes.transAxes)
    margin = blended_transform_factory(inches_right, axes.transAxes)
    to_fraction = axes.transData + axes.transAxes.inverted()
    pitch = LABEL_PITCH / height
    ends = [_last_point(each.line) for each in lines]
    are_joined = len(lines) <= MOST_JOINED
    if are_joined:
        places = spread(np.nan_to_num(to_fraction.transform(ends)[:, 1]), pitch)
    else:
        places = 1 - pitch * (np.arange(len(lines)) + 0.5)
    for each, end, place in zip(lines, ends, places, strict=True):
        defined = bool(np.isfinite(end[1]))
        if are_joined and defined:
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
        words = each.label if defined else f"{each.label}: {each.without_points}"
        axes.text(0.43, place, words, transform=margin, va="center_baseline", color=INK)


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
    present = np.flatnonzero(np.isfinite(y))
    return (x[present[-1]], y[present[-1]]) if present.size else (np.nan, np.nan)
