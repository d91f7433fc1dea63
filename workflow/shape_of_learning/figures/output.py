"""Put a figure together, and write it as PDF, PNG, CSV and Markdown."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from shape_of_learning.figures.captions import escape_markup, join_sentences
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.marks import add_key
from shape_of_learning.files import atomic_write


@dataclass(frozen=True)
class Drawing:
    """A figure, the numbers that it draws, and its caption.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
    table : pandas.DataFrame
        One row per drawn point.
    caption : str
        A few sentences, stored in the PDF as Subject, in the PNG as Description, and beside both as Markdown.
    """

    figure: Figure
    table: pd.DataFrame
    caption: str


def make_drawing(
    inputs: FigureInputs, figure: Figure, table: pd.DataFrame, *sentences: str
) -> Drawing:
    """Add a key of the marks to a figure and join it with its numbers and caption.

    `sentences` follow the caption of `inputs`.
    """
    add_key(figure)
    numbers = table.drop(columns=["hollow", "marked", "bare"], errors="ignore")
    return Drawing(figure, numbers, join_sentences(inputs.caption, *sentences))


def save(drawing: Drawing, pdf: Path, png: Path, csv: Path, markdown: Path) -> None:
    """Write a drawing as PDF, PNG, CSV and Markdown; equal drawings give equal bytes.

    Call it within :func:`~shape_of_learning.figures.style.use_theme`.
    """
    fix_layout(drawing.figure)
    save_table(drawing.table, csv)
    with atomic_write(markdown) as partial:
        name, words = escape_markup(markdown.stem), escape_markup(drawing.caption)
        partial.write_text(f"**{name}.** {words}\n", encoding="utf-8")
    for path, metadata in (
        (pdf, {"Subject": drawing.caption, "CreationDate": None}),
        (png, {"Description": drawing.caption, "Software": None}),
    ):
        with atomic_write(path) as partial:
            drawing.figure.savefig(partial, format=path.suffix[1:], metadata=metadata)


def fix_layout(figure: Figure) -> None:
    """Lay a figure out, and round the places of its panels to millionths of its size.

    The solver of the layout adds numbers in the order of their addresses in memory, so that its last digits vary.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        box = axes.get_position(original=True)
        axes.set_position([round(side, 6) for side in box.bounds])


def save_table(table: pd.DataFrame, csv: Path) -> None:
    """Write the numbers of a figure or table."""
    with atomic_write(csv) as partial:
        table.to_csv(partial, index=False, lineterminator="\n")
