"""Papers: what each folder of ``workflow/papers`` says that its paper shows."""

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shape_of_learning.claims.claim import Claim
from shape_of_learning.errors import InputError
from shape_of_learning.plan.claim_list import CLAIMS, read_claims
from shape_of_learning.plan.functions import check_function, named_function, public_functions
from shape_of_learning.plan.published import read_published
from shape_of_learning.plan.schema import unknown_name, validate
from shape_of_learning.storage.yaml_file import read_yaml

ALL = ("all",)  # estimators
CAPTION_FIELDS = ("measures", "models")
# Of the configuration, whose keys a caption may name: {sampling[windows]}.
CAPTION_SECTIONS = ("block_editing", "corpus", "sampling")


@dataclass(frozen=True)
class FigureSpecification:
    """A figure.

    Attributes
    ----------
    folder : Path
        Of its paper.
    draw : str
        ``function``, of the paper's ``figures.py``, or ``module.function``, of another module of its folder
        or of :mod:`shape_of_learning.figures`.
    estimators : tuple of str
        What is drawn; none: just the loss; :data:`ALL`: what is of layers in ``measurement.estimators``.
    any_measures : bool
        Whether ``figures.measures`` in the configuration may name others.
    most_models : int or None
        How many there is room for; None if for any number.
    needs_training_steps : bool
        Whether it draws all checkpoints of a model and leaves out models without training steps, or each
        model's last one.
    options : mapping
        Arguments of the function.
    settings : tuple of str
        Further ones, by the keys of ``figures`` in the configuration that hold them.
    caption : str
        May hold ``{measures}`` and ``{models}``, which stand for their labels, and settings such as
        ``{sampling[windows]}``.
    reads : tuple of str
        Tables that it reads besides estimates, ``tables/{name}/{model}.csv`` of each model.
    role : str or None
        Of the models that it can draw; None for both.
    draws : {"fine_tunings", "twins"} or None
        The only kind of models that it can draw.
    published : sequence of mapping
        What :func:`.read_published` says of its estimators, an argument of its function, too; of models
        without such values it draws nothing.
    """

    folder: Path
    draw: str
    estimators: tuple[str, ...]
    most_models: int | None
    needs_training_steps: bool
    options: Mapping[str, Any]
    settings: tuple[str, ...]
    caption: str
    reads: tuple[str, ...] = ()
    role: str | None = None
    draws: str | None = None
    any_measures: bool = False
    published: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class TableSpecification:
    """A table of the models whose entry has `table_1`; `write` is a function as `draw` is.

    One that `reads` tables, ``tables/{name}/{model}.csv`` of each model, is of any, or of what it `draws`.
    """

    folder: Path
    write: str
    caption: str
    reads: tuple[str, ...] = ()
    draws: str | None = None


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
        One sentence that names the file and the key: a paper that the schema does not allow, a function that
        its ``figures.py`` lacks or that takes other arguments, or a target that another paper has.
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
    if not re.fullmatch(r"[A-Za-z0-9_]+", file.parent.name):
        raise InputError(
            f"{file.parent} is no name of a paper: use letters, digits and `_`; rename the folder"
        )
    content = read_yaml(file)
    validate(content, "paper", str(file))
    figures, tables = {}, {}
    for name, entry in content["figures"].items():
        where = f"{file}, key `figures.{name}`"
        figure = FigureSpecification(
            folder=file.parent,
            draw=entry["draw"],
            estimators=ALL if entry["estimators"] == "all" else tuple(entry["estimators"]),
            most_models=entry.get("most_models"),
            needs_training_steps=entry["checkpoints"] == "training",
            options=entry.get("options", {}),
            settings=tuple(entry.get("settings", ())),
            caption=entry["caption"],
            reads=tuple(entry.get("reads", ())),
            role=entry.get("role"),
            draws=entry.get("draws"),
            any_measures=entry.get("any_measures", False),
            published=_published(file, entry),
        )
        published = ["published"] if figure.published else []
        given = (*figure.options, *figure.settings, *published)
        _check_drawn(figure.draw, given, file, where)
        _check_caption(figure.caption, where)
        figures[content["prefix"] + name] = figure
    for name, entry in content.get("tables", {}).items():
        where = f"{file}, key `tables.{name}`"
        _check_drawn(entry["write"], (), file, where)
        tables[content["prefix"] + name] = TableSpecification(
            file.parent,
            entry["write"],
            entry["caption"],
            tuple(entry.get("reads", ())),
            entry.get("draws"),
        )
    claims = read_claims(file.with_name(CLAIMS))
    heading = (content["title"], content["citation"], content["prefix"])
    return Paper(file.parent.name, file.parent, *heading, figures, tables, claims)


def _check_drawn(name: str, given: Sequence[str], file: Path, where: str) -> None:
    function = named_function(name, file.parent)
    functions, kind = public_functions(function.file), f"function of {function.file.name}"
    check_function(function.name, given, functions, where, kind)


def _published(file: Path, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Published values of a figure's estimators, if it shows any."""
    if not entry.get("published", False):
        return []
    rows = read_published(file.with_name("published.csv"))
    return [row for row in rows if row["estimator"] in entry["estimators"]]


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
