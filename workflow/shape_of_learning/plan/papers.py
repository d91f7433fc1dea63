"""Papers: what each folder of ``workflow/papers`` says that its paper shows."""

import csv
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from shape_of_learning.claims.claim import Claim
from shape_of_learning.errors import InputError
from shape_of_learning.files import read_yaml
from shape_of_learning.plan.claim_list import CLAIMS, read_claims
from shape_of_learning.plan.functions import check_function, named_function, public_functions
from shape_of_learning.plan.refusals import Section, Words, must_be, unique, unknown_name, validated

ALL = "all"  # estimators
CAPTION_FIELDS = ("measures", "models")
# Of the configuration, whose keys a caption may name: {sampling[windows]}.
CAPTION_SECTIONS = ("block_editing", "corpus", "sampling")
COLUMNS = ["model", "estimator", "layer", "value", "reading_error", "source", "protocol"]
NUMBERS = {"layer": int, "value": float, "reading_error": float}

Target = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*\Z"), must_be("a name in small letters")]
Draws = Literal["fine_tunings", "twins"]
Text = Annotated[str, Field(min_length=1)]


class FigureSpecification(Section):
    """A figure.

    Attributes
    ----------
    folder
        of its paper; not written
    draw
        ``function``, of the paper's ``figures.py``, or ``module.function``, of another module of its
        folder or of :mod:`shape_of_learning.figures`
    estimators
        what is drawn; none: just the loss; `all`: what is of layers in ``measurement.estimators``
    any_measures
        whether ``figures.measures`` in the configuration may name others
    most_models
        how many there is room for; empty if for any number
    checkpoints
        `training`: all of a model, of models with training steps; `last`: each model's last one
    options
        arguments of the function
    settings
        further ones, by the keys of ``figures`` in the configuration that hold them
    caption
        may hold ``{measures}`` and ``{models}``, which stand for their labels, and settings such as
        ``{sampling[windows]}``
    reads
        tables that it reads besides estimates, ``tables/{name}/{model}.csv`` of each model
    role
        of the models that it can draw; empty for both
    draws
        the only kind of models that it can draw: fine-tunings, measured at their first and last steps, or
        trainings together with a twin
    published
        whether it shows published.csv
    published_rows
        not written: what :func:`read_published` says of its estimators,
        an argument of its function, too; of models without such values it draws nothing
    """

    folder: Path = Path()
    draw: str
    estimators: Annotated[Literal["all"] | Words, must_be("`all` or a list of measures, each once")]
    any_measures: bool = False
    most_models: int | None = Field(None, ge=1)
    checkpoints: Literal["last", "training"]
    options: dict[str, Any] = {}
    settings: Annotated[list[Literal["average_over", "progress"]], unique] = []
    caption: Text
    reads: Annotated[list[Target], unique] = []
    role: Literal["decoder", "encoder"] | None = None
    draws: Draws | None = None
    published: bool = False
    published_rows: list[dict[str, Any]] = []

    @property
    def needs_training_steps(self) -> bool:
        """Whether it draws all checkpoints of a model."""
        return self.checkpoints == "training"


class TableSpecification(Section):
    """A table of the models whose entry has `table_1`; `write` is a function as `draw` is.

    One that `reads` tables, ``tables/{name}/{model}.csv`` of each model, is of any, or of what it `draws`.
    """

    folder: Path = Path()
    write: str
    caption: Text
    reads: Annotated[list[Target], unique] = []
    draws: Draws | None = None


class PaperFile(Section):
    """A ``paper.yaml``."""

    title: Text
    citation: Text
    prefix: Annotated[str, Field(pattern=r"^([a-z][a-z0-9]*_)?\Z"), must_be("empty, or end in `_`")]
    figures: dict[Target, FigureSpecification]
    tables: dict[Target, TableSpecification] = {}


@dataclass(frozen=True)
class Paper:
    """A paper; figures and tables by names of targets, which begin with its prefix, claims by their own."""

    name: str
    folder: Path
    title: str
    citation: str
    prefix: str
    figures: Mapping[str, FigureSpecification]
    tables: Mapping[str, TableSpecification]
    claims: Mapping[str, Claim]


def read_papers(folder: Path) -> list[Paper]:
    """Read the ``paper.yaml`` of every folder in `folder`, in the order of their names.

    Raises
    ------
    InputError
        One sentence that names the file and the key: a key or a value that a paper cannot have, a function
        that its ``figures.py`` lacks or that takes other arguments, or a target that another paper has.
    """
    papers = [_read_paper(file) for file in sorted(folder.glob("*/paper.yaml"))]
    owners: dict[str, Paper] = {}
    for paper in papers:
        for target in (*paper.figures, *paper.tables):
            if target in owners:
                raise InputError(
                    f"papers `{owners[target].name}` and `{paper.name}` both have the target `{target}`; "
                    "give one of them another `prefix` in its paper.yaml"
                )
            owners[target] = paper
    return papers


def figures_of(papers: Sequence[Paper]) -> dict[str, FigureSpecification]:
    """Collect the figures of all papers."""
    return {target: figure for paper in papers for target, figure in paper.figures.items()}


def tables_of(papers: Sequence[Paper]) -> dict[str, TableSpecification]:
    """Collect the tables of all papers."""
    return {target: table for paper in papers for target, table in paper.tables.items()}


def _read_paper(file: Path) -> Paper:
    folder = file.parent
    if not re.fullmatch(r"[A-Za-z0-9_]+", folder.name):
        raise InputError(
            f"{folder} is no name of a paper: use letters, digits and `_`; rename the folder"
        )
    content = validated(PaperFile, read_yaml(file), str(file))
    figures, tables = {}, {}
    for name, figure in content.figures.items():
        where = f"{file}, key `figures.{name}`"
        rows = read_published(file.with_name("published.csv")) if figure.published else []
        shown = [row for row in rows if row["estimator"] in figure.estimators]
        given = (*figure.options, *figure.settings, *(["published"] if shown else []))
        _check_drawn(figure.draw, given, file, where)
        _check_caption(figure.caption, where)
        read = {"folder": folder, "published_rows": shown}
        figures[content.prefix + name] = figure.model_copy(update=read)
    for name, table in content.tables.items():
        _check_drawn(table.write, (), file, f"{file}, key `tables.{name}`")
        tables[content.prefix + name] = table.model_copy(update={"folder": folder})
    claims = read_claims(file.with_name(CLAIMS))
    heading = (content.title, content.citation, content.prefix)
    return Paper(folder.name, folder, *heading, figures, tables, claims)


def _check_drawn(name: str, given: Sequence[str], file: Path, where: str) -> None:
    function = named_function(name, file.parent)
    functions, kind = public_functions(function.file), f"function of {function.file.name}"
    check_function(function.name, given, functions, where, kind)


def _check_caption(caption: str, where: str) -> None:
    try:
        fields = [
            f"{name}!{how}" if how else f"{name}:{format}" if format else name
            for _, name, format, how in string.Formatter().parse(caption)
            if name is not None
        ]
    except ValueError as error:
        raise InputError(f"{where}: the caption has {error}; write {{{{ for a brace") from error
    for name in fields:
        is_setting = re.fullmatch(rf"({'|'.join(CAPTION_SECTIONS)})\[\w+\]", name)
        if name not in CAPTION_FIELDS and not is_setting:
            raise unknown_name(name, CAPTION_FIELDS, "field of the caption", where)


def read_published(file: Path) -> list[dict[str, Any]]:
    """Read ``published.csv`` of a paper's folder, values that authors have published.

    Returns
    -------
    list of dict
        With the keys `COLUMNS`: names of a model entry and of an estimator; the number of the hidden state,
        or of the block; the value and how far the reading of a printed figure may be off, in its own units;
        where it was published, and of what sample.

    Raises
    ------
    InputError
        One sentence that names the file and the line.
    """
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            reader = csv.DictReader(lines)
            rows: list[dict[str, Any]] = list(reader)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{file} cannot be read ({error}); published values belong there"
        ) from error
    if reader.fieldnames != COLUMNS:
        raise InputError(
            f"{file} must have the columns {', '.join(COLUMNS)}; correct its first line"
        )
    for line, row in enumerate(rows, 2):
        for name, kind in NUMBERS.items():
            try:
                row[name] = kind(row[name])
            except (TypeError, ValueError):
                raise InputError(
                    f"{file}, line {line}: `{name}` is {row[name]!r}, which is no number; correct it"
                ) from None
    return rows
