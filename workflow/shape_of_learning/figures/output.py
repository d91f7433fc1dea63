"""What a figure is made of, who draws it, and how it is written."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from shape_of_learning.figures.captions import as_markup
from shape_of_learning.storage.files import atomic_write

PAPERS = Path(__file__).resolve().parents[2] / "papers"


@dataclass(frozen=True)
class Drawing:
    """A figure, the numbers that it draws, and what a reader must know of them.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
    table : pandas.DataFrame
        One row per drawn point.
    caption : str
        A few sentences; stored in the PDF as Subject, in the PNG as Description, and beside them as Markdown.
    """

    figure: Figure
    table: pd.DataFrame
    caption: str


def paper_function(name: str) -> Callable:
    """Load ``"PAPER:function"`` from the ``figures.py`` of a paper, a file that nobody imports."""
    paper, function = name.split(":")
    file = PAPERS / paper / "figures.py"
    specification = spec_from_file_location(f"figures_of_{paper}", file)
    assert specification is not None
    assert specification.loader is not None
    module = module_from_spec(specification)
    specification.loader.exec_module(module)
    return getattr(module, function)


def save(drawing: Drawing, pdf: Path, png: Path, csv: Path, markdown: Path) -> None:
    """Write a drawing as PDF and PNG, its numbers and its caption; equal drawings give equal bytes.

    Call it within :func:`~shape_of_learning.figures.style.theme`.
    """
    with atomic_write(csv) as partial:
        drawing.table.to_csv(partial, index=False, lineterminator="\n")
    with atomic_write(markdown) as partial:
        partial.write_text(
            f"**{as_markup(markdown.stem)}.** {as_markup(drawing.caption)}\n", encoding="utf-8"
        )
    metadata = {"Subject": drawing.caption, "CreationDate": None}
    with atomic_write(pdf) as partial:
        drawing.figure.savefig(partial, format="pdf", metadata=metadata)
    metadata = {"Description": drawing.caption, "Software": None}
    with atomic_write(png) as partial:
        drawing.figure.savefig(partial, format="png", metadata=metadata)
