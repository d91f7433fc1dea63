"""Define the look of all figures: sizes, type, colours, line styles."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import seaborn
from matplotlib.colors import to_hex
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from shape_of_learning.figures.job import DrawnModel

COLUMN_WIDTH = 3.35  # inches, one column of a two-column page
TEXT_WIDTH = 6.9  # inches, both columns
PANEL_HEIGHT = 2.1  # inches
LOW_PANEL_HEIGHT = 1.5  # inches, if there are several rows of panels

# seaborn's colour-blind palette without yellow and pale pink, which are too faint on paper. Neighbours in the list
# also differ in lightness, for greyscale.
COLOURS = [
    seaborn.color_palette("colorblind").as_hex()[place] for place in (0, 1, 2, 4, 3, 9, 5, 7)
]
_LENGTHS = ((4, 1.2), (1, 1), (4, 1, 1, 1), (7, 1.5), (4, 1, 1, 1, 1, 1), (2, 2))
_LENGTHS += ((8, 1, 1, 1, 1, 1, 1, 1), (10, 2, 2, 2), (1, 3), (5, 4), (7, 1, 3, 1))
Dashes = str | tuple[int, tuple[float, ...]]
DASHES: list[Dashes] = ["-", *((0, lengths) for lengths in _LENGTHS)]
MARKERS = "osD^vP"
INK = "0.15"  # a grey level


class Mark(NamedTuple):
    """A mark of a point: its words in the key, and its look."""

    words: str
    look: Mapping[str, Any]


# Labels of marks in matplotlib; the key of a figure lists the marks whose labels it finds.
SUSPECT, NOT_OK, NO_INTERVAL = "_suspect", "_not_ok", "_no_interval"
UNDEFINED, BEYOND = "_undefined", "_beyond"
_OPEN = {"linestyle": "none", "markerfacecolor": "white", "markeredgewidth": 0.8}
_STROKES = {"linestyle": "none", "markeredgewidth": 1.0}
MARKS = {
    SUSPECT: Mark("suspect", {**_OPEN, "marker": "o", "markersize": 4.2}),
    NOT_OK: Mark("checkpoint is not ok", {**_OPEN, "marker": "D", "markersize": 5.5}),
    NO_INTERVAL: Mark("no interval", {**_STROKES, "marker": "x", "markersize": 5}),
    UNDEFINED: Mark("undefined", {**_STROKES, "marker": "|", "markersize": 5}),
    BEYOND: Mark("suspect, beyond the axis", {**_OPEN, "marker": "^", "markersize": 4.2}),
}
SIZE_OF_TYPE, SIZE_OF_TITLES = 7, 7.5  # points

THEME = {
    "font.family": "DejaVu Sans",  # shipped with matplotlib, hence the same on every machine
    "font.size": SIZE_OF_TYPE,  # of labels, ticks and legends, too
    "axes.titlesize": SIZE_OF_TITLES,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "lines.markersize": 3,
    "lines.markeredgewidth": 0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "0.9",
    "grid.linewidth": 0.4,
    **dict.fromkeys(("xtick.major.width", "ytick.major.width"), 0.6),
    **dict.fromkeys(("xtick.minor.width", "ytick.minor.width"), 0.4),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 3),
    **dict.fromkeys(("xtick.minor.size", "ytick.minor.size"), 1.8),
    "axes.titlelocation": "left",
    "pdf.fonttype": 42,  # TrueType: text in the PDF stays text
    "text.parse_math": False,  # labels may have dollar signs
    "figure.constrained_layout.use": True,
    "savefig.dpi": 300,
}


@contextmanager
def use_theme() -> Iterator[None]:
    """Use this look to draw and save, whatever the user's matplotlib settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(seaborn.axes_style("ticks") | THEME)
        yield


@dataclass(frozen=True)
class LineStyle:
    """The look of a model's line in a figure."""

    colour: str
    dashes: Dashes
    marker: str


def choose_line_styles(models: Sequence[DrawnModel]) -> dict[str, LineStyle]:
    """Choose a colour per family, with shades from light to dark for its models; keys are the models' names.

    If there are enough dashes, each model has its own dashes. Otherwise each family has, and lightness distinguishes
    its models. So a figure can be read without colours.
    """
    families: dict[str, list[str]] = {}
    for model in models:
        families.setdefault(model.family, []).append(model.name)
    is_few = len(models) <= len(MARKERS)
    order = [model.name for model in models]
    styles = {}
    for number, members in enumerate(families.values()):
        shades = _choose_shades(COLOURS[number % len(COLOURS)], len(members))
        for name, shade in zip(members, shades, strict=True):
            place = order.index(name) if is_few else number
            dashes, marker = DASHES[place % len(DASHES)], MARKERS[place % len(MARKERS)]
            styles[name] = LineStyle(shade, dashes, marker)
    return styles


def choose_step_colours(steps: Sequence[int]) -> dict[int, str]:
    """Choose a colour per step, from light to dark, evenly by rank, so that readers can distinguish all steps.

    The colours are even in perception and in greyscale. The palest end is left out, since it is too faint on paper.
    """
    ranks = np.linspace(1, 0.08, len(steps))[::-1]
    shades = matplotlib.colormaps["viridis_r"](ranks)
    return {step: to_hex(shade) for step, shade in zip(sorted(steps), shades, strict=True)}


def measure_width(line: str, size: float = SIZE_OF_TYPE) -> float:
    """Return the width of a line of text in the PDF, in inches."""
    font = FontProperties(size=size)
    return text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] / 72


def _choose_shades(colour: str, members: int) -> list[str]:
    """Choose a shade per member of a family, the last one darkest; a single member has the plain colour."""
    light, dark = seaborn.light_palette(colour, 6)[3], seaborn.dark_palette(colour, 5)[2]
    blend = [light, colour, dark] if members > 1 else [colour, colour]
    return seaborn.blend_palette(blend, members).as_hex()
