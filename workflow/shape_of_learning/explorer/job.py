"""The job that draws the explorer; the Snakefile imports this module at every start, so it imports nothing slow."""

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
        ``fine-tuning`` for a fine-tuning, whose steps begin again at 0; empty for other models.
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
        The family of measures, such as ``isotropy``.
    description : str
        The settings of the measure.
    """

    name: str
    label: str
    axis: str
    family: str = ""
    description: str = ""


@dataclass(frozen=True)
class ShownPaper:
    """A paper whose curves the page can select.

    Attributes
    ----------
    name, title : str
    models, measures : tuple of str
        Names of the models and measures in its figures.
    tables : tuple of str
        Kinds of tables; all measures in them belong to the paper.
    """

    name: str
    title: str
    models: tuple[str, ...]
    measures: tuple[str, ...]
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShownClaim:
    """The facts about a claim that its row in ``claims/{paper}.csv`` lacks.

    Attributes
    ----------
    measures, tables : tuple of str
        The measures that the claim concerns, and kinds of tables of which it concerns all measures.
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
    """The contents of the explorer that the tables of the run lack.

    Attributes
    ----------
    models : tuple of ShownModel
    measures : tuple of ShownMeasure
    sample : str
        The windows that were measured, and their text.
    papers : tuple of ShownPaper
    claims : mapping of (str, str) to ShownClaim
        The claims by paper and name.
    notes : tuple of str
        Sentences on the protocol.
    curves : mapping of str to mapping
        Kinds of tables of papers that have curves, in the form of :data:`.KINDS`.
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
