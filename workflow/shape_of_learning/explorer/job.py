"""The job that draws the explorer. The Snakefile reads it at every start, so it imports nothing heavy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from shape_of_learning.metrics.measure_entry import Measure


@dataclass(frozen=True)
class ShownModel:
    """A model of the page.

    Attributes
    ----------
    name, label : str
        The name in tables, and the printed one.
    phase : str
        ``fine-tuning`` for a fine-tuning, which counts its steps anew; empty for other models.
    """

    name: str
    label: str
    phase: str = ""


@dataclass(frozen=True)
class ShownMeasure:
    """A measure of the page.

    Attributes
    ----------
    name : str
        The name in tables.
    label, axis : str
        The printed names of the measure and of its quantity.
    family : str
        What the measure is taken of, such as ``isotropy``.
    description : str
        How the measure is set.
    """

    name: str
    label: str
    axis: str
    family: str = ""
    description: str = ""


@dataclass(frozen=True)
class ShownPaper:
    """A paper whose figures choose curves.

    Attributes
    ----------
    name, title : str
    models, measures : tuple of str
        Names of the models and measures in its figures.
    tables : tuple of str
        Kinds of tables all of whose measures belong to the paper.
    """

    name: str
    title: str
    models: tuple[str, ...]
    measures: tuple[str, ...]
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShownClaim:
    """A claim, beside its row in ``claims/{paper}.csv``.

    Attributes
    ----------
    measures, tables : tuple of str
        The measures that the claim concerns, and kinds of tables all of whose measures it concerns.
    view : str
        ``layer`` or ``step``, the axis on which its curves are drawn.
    figures : tuple of str
        The figures that show its numbers, as the paper names them.
    """

    measures: tuple[str, ...]
    tables: tuple[str, ...]
    view: str
    figures: tuple[str, ...]


class ExplorerJob(NamedTuple):
    """What the explorer shows of a run, beside its tables.

    Attributes
    ----------
    models : tuple of ShownModel
    measures : tuple of ShownMeasure
    sample : str
        Which windows of which text were measured.
    papers : tuple of ShownPaper
    claims : mapping of (str, str) to ShownClaim
        By the names of paper and claim.
    notes : tuple of str
        Sentences on the protocol.
    curves : mapping of str to mapping
        Tables of papers that have curves, in the form of :data:`.KINDS`.
    """

    models: tuple[ShownModel, ...]
    measures: tuple[ShownMeasure, ...]
    sample: str
    papers: tuple[ShownPaper, ...] = ()
    claims: Mapping[tuple[str, str], ShownClaim] = {}
    notes: tuple[str, ...] = ()
    curves: Mapping[str, Mapping[str, str]] = {}


def make_shown_measures(measures: Iterable[Measure]) -> tuple[ShownMeasure, ...]:
    """Describe measures in the order of the page."""
    return tuple(
        ShownMeasure(
            name=measure.name,
            label=measure.label,
            axis=measure.axis,
            family=measure.family,
            description=measure.description,
        )
        for measure in measures
    )
