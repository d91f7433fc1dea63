"""What a figure is made of, and how it is written."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from shape_of_learning.figures.style import drawn_models, theme
from shape_of_learning.figures.tidy_table import Measurements, read_measurements
from shape_of_learning.figures.verdicts import Verdicts, read_verdicts
from shape_of_learning.storage.files import atomic_write

logger = logging.getLogger(__name__)

DEFAULT_PROTOCOL = "The last layer is taken after the model's final norm, where it has one."


@dataclass(frozen=True)
class Drawing:
    """A figure, the numbers that it draws, and what a reader must know of them.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    table : pandas.DataFrame
        One row per drawn point.
    caption : str
        A few sentences; stored in the PDF as Subject and in the PNG as Description.
    """

    figure: Figure
    table: pd.DataFrame
    caption: str


def produce(
    draw: Callable[..., Drawing],
    *,
    measurements: Sequence[Path] | None = None,
    verdicts: Sequence[Path] | None = None,
    models: Sequence[str],
    labels: Sequence[str] = (),
    families: Sequence[str] = (),
    protocol: str = DEFAULT_PROTOCOL,
    pdf: Path,
    png: Path,
    csv: Path,
    **options: object,
) -> None:
    """Read the tables, draw and save: what every figure's script does.

    Parameters
    ----------
    draw : callable
        ``draw(models=..., protocol=..., **options) -> Drawing``, and besides ``measurements=...`` and
        ``verdicts=...``, whichever are given here.
    measurements : sequence of Path, optional
        Tidy tables, see :func:`~shape_of_learning.figures.tidy_table.read_measurements`.
    verdicts : sequence of Path, optional
        See :func:`~shape_of_learning.figures.verdicts.read_verdicts`.
    models, labels, families : sequence of str
        See :func:`~shape_of_learning.figures.style.drawn_models`.
    protocol : str
        Closing sentences of the caption: what the table does not say.
    pdf, png, csv : Path
        Files to write.
    **options
        What this figure's function takes besides.

    Raises
    ------
    InputError
        If the tables do not hold what the figure needs.
    """
    tables: dict[str, Measurements | Verdicts] = {}
    if measurements is not None:
        tables["measurements"] = read_measurements(measurements)
    if verdicts is not None:
        tables["verdicts"] = read_verdicts(verdicts)
    with theme():
        chosen = drawn_models(models, labels, families)
        drawing = draw(models=chosen, protocol=protocol, **tables, **options)
        save(drawing, pdf, png, csv)
    logger.info("%s", drawing.caption)


def save(drawing: Drawing, pdf: Path, png: Path, csv: Path) -> None:
    """Write a drawing as PDF, PNG and CSV; equal drawings give equal bytes.

    Call it within :func:`~shape_of_learning.figures.style.theme`.
    """
    with atomic_write(csv) as partial:
        drawing.table.to_csv(partial, index=False, lineterminator="\n")
    metadata = {"Subject": drawing.caption, "CreationDate": None}
    with atomic_write(pdf) as partial:
        drawing.figure.savefig(partial, format="pdf", metadata=metadata)
    metadata = {"Description": drawing.caption, "Software": None}
    with atomic_write(png) as partial:
        drawing.figure.savefig(partial, format="png", metadata=metadata)
