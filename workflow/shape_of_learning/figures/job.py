"""The jobs that draw figures and write tables of papers.

This module imports nothing heavy, because the Snakefile reads it at every start.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.suspects import Conditions


@dataclass(frozen=True)
class DrawnModel:
    """A model of a figure.

    Attributes
    ----------
    name : str
        The name in tables.
    label, family, role : str
        The printed name; the family, by which its colour is chosen; and ``decoder`` or ``encoder``.
    revision : str or None
        The checkpoint that is drawn; None if the figure shows all checkpoints that the verdicts allow.
    width : int
        Coordinates of a hidden state; 0 if unknown.
    seeds_of : str
        The entry of which this model is one seed; empty if the entry has one seed only.
    """

    name: str
    label: str
    family: str
    role: str
    revision: str | None = None
    width: int = 0
    seeds_of: str = ""


@dataclass(frozen=True)
class DrawnMeasure:
    """A measure of a figure.

    Attributes
    ----------
    name : str
        The name in tables.
    label, axis : str
        The printed names of the measure with its settings, and of its quantity.
    begins_at_zero : bool
        Whether the axis begins at 0 or below, as for shares and cosines. Other axes may be logarithmic.
    depends_on_width : bool
        Whether the value depends on the number of vectors per dimension, as scores of fits do.
    parameters : mapping
        The arguments of its function besides the data.
    conditions : Conditions
        The conditions under which a value is not suspect.
    """

    name: str
    label: str
    axis: str
    begins_at_zero: bool = True
    depends_on_width: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)
    conditions: Conditions = field(default_factory=Conditions)


class FigureJob(NamedTuple):
    """A figure of a paper.

    Attributes
    ----------
    function : str
        ``"module:function"``; its arguments are :class:`.FigureInputs` and the options.
    models : tuple of DrawnModel
    measures : tuple of DrawnMeasure
    options : mapping
    caption, note, sample : str
        As in :class:`.FigureInputs`.
    protocol : str
        The settings of its estimators of the intrinsic dimension, for the end of the caption.
    """

    function: str
    models: tuple[DrawnModel, ...]
    measures: tuple[DrawnMeasure, ...]
    options: Mapping[str, Any]
    caption: str
    note: str
    sample: str
    protocol: str


class TableJob(NamedTuple):
    """A table of a paper.

    Attributes
    ----------
    function : str
        ``"module:function"``; its arguments are the entries and the tables that the paper's table reads.
    entries : tuple of mapping
        For each model, the columns that its entry states.
    caption : str
    """

    function: str
    entries: tuple[Mapping[str, Any], ...]
    caption: str


def make_drawn_measures(measures: Iterable[Measure]) -> tuple[DrawnMeasure, ...]:
    """Describe measures in the order of panels; axes of dimensions need not begin at 0."""
    return tuple(
        DrawnMeasure(
            name=measure.name,
            label=measure.label,
            axis=measure.axis,
            begins_at_zero=not (measure.depends_on_n and measure.family == "dimension"),
            depends_on_width=measure.depends_on_n and measure.family == "linearity",
            parameters=measure.arguments,
            conditions=measure.conditions,
        )
        for measure in measures
    )
