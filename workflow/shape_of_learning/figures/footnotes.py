"""A footnote under the panels."""

import re
import textwrap
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

SIZE = 6  # points
GREY = "0.35"  # a grey level: 7 to 1 against white
SIDE = 0.04  # inches at both sides and below
ABOVE = 0.07  # inches between the panels and the note
HELD_TOGETHER = re.compile(r"(?<=step) (?=\d)|(?<=steps) (?=\d)|(?<=\d) (?=checkpoints)")
BOUND = "\N{NO-BREAK SPACE}"
PIXEL_SHARE = 0.036  # a PNG sets letters on whole pixels: half of one to a letter of 14 at 300 dpi
NARROWEST = 8  # characters; less than any figure's or panel's width holds
NARROW_LETTER = 0.3  # of the type size: text of nothing but "il.," is about that wide


def add_footnote(figure: Figure, sentences: Sequence[str]) -> None:
    """Write each sentence on a line of its own under the panels, wrapped to the figure's width.

    The figure grows taller by what the note takes, so that the panels keep their size. Nothing
    happens without a sentence. Call it before labels are placed at the lines' ends.

    Parameters
    ----------
    figure : Figure
        With constrained layout.
    sentences : sequence of str
        Plain text: a dollar sign is one.
    """
    if not sentences:
        return
    width, height = figure.get_size_inches()
    note = figure.text(
        SIDE,
        SIDE,
        wrapped(sentences, width - 2 * SIDE, SIZE),
        transform=figure.dpi_scale_trans,
        fontsize=SIZE,
        color=GREY,
        va="bottom",
        ha="left",
        linespacing=1.25,
        parse_math=False,
        gid="footnote",
    )
    added = note.get_window_extent().height / figure.dpi + SIDE + ABOVE
    figure.set_size_inches(width, height + added)
    share = added / (height + added)
    figure.get_layout_engine().set(rect=(0, share, 1, 1 - share))


def wrapped(sentences: Sequence[str], width: float, size: float) -> str:
    """The longest lines, of a type size in points, that fit into `width` inches."""
    most = int(width * 72 / (size * NARROW_LETTER))
    sentences = [HELD_TOGETHER.sub(BOUND, sentence) for sentence in sentences]
    lines: list[str] = []
    for characters in range(most, NARROWEST, -1):
        lines = [
            line.replace(BOUND, " ")
            for sentence in sentences
            for line in textwrap.wrap(sentence, characters, break_on_hyphens=False)
        ]
        if all(width_of(line, size) <= width * (1 - PIXEL_SHARE) for line in lines):
            break
    return "\n".join(lines)


def width_of(line: str, size: float) -> float:
    """Inches that a line takes in the PDF."""
    points, _, _ = text_to_path.get_text_width_height_descent(
        line, FontProperties(size=size), ismath=False
    )
    return points / 72
