"""Papers: what each folder of ``workflow/papers`` says that its paper shows."""

import ast
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.plan.schema import unknown_name, validate
from shape_of_learning.storage.yaml_file import read_yaml

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
        Function of the paper's ``figures.py``.
    estimators : tuple of str
        What is drawn; none: just the loss.
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


@dataclass(frozen=True)
class TableSpecification:
    """A table of the models whose entry has `table_1`; `write` is a function of ``figures.py``.

    One that `reads` tables, ``tables/{name}/{model}.csv`` of each model, is of any, or of what it `draws`.
    """

    folder: Path
    write: str
    caption: str
    reads: tuple[str, ...] = ()
    draws: str | None = None


@dataclass(frozen=True)
class Paper:
    """A paper; figures and tables by the names of their targets, which begin with its prefix."""

    name: str
    title: str
    citation: str
    prefix: str
    figures: Mapping[str, FigureSpecification]
    tables: Mapping[str, TableSpecification]


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
    functions = _functions(file.with_name("figures.py"))
    figures, tables = {}, {}
    for name, entry in content["figures"].items():
        where = f"{file}, key `figures.{name}`"
        figure = FigureSpecification(
            folder=file.parent,
            draw=entry["draw"],
            estimators=tuple(entry["estimators"]),
            most_models=entry.get("most_models"),
            needs_training_steps=entry["checkpoints"] == "training",
            options=entry.get("options", {}),
            settings=tuple(entry.get("settings", ())),
            caption=entry["caption"],
            reads=tuple(entry.get("reads", ())),
            role=entry.get("role"),
            draws=entry.get("draws"),
        )
        _check_function(figure.draw, (*figure.options, *figure.settings), functions, where)
        _check_caption(figure.caption, where)
        figures[content["prefix"] + name] = figure
    for name, entry in content.get("tables", {}).items():
        _check_function(entry["write"], (), functions, f"{file}, key `tables.{name}`")
        tables[content["prefix"] + name] = TableSpecification(
            file.parent,
            entry["write"],
            entry["caption"],
            tuple(entry.get("reads", ())),
            entry.get("draws"),
        )
    return Paper(
        file.parent.name,
        content["title"],
        content["citation"],
        content["prefix"],
        figures,
        tables,
    )


def _functions(file: Path) -> dict[str, list[str]]:
    """Public functions of a module and the names of their arguments, without importing it."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(
            f"{file} cannot be read ({error}); a paper's functions belong there"
        ) from error
    return {
        each.name: [argument.arg for argument in (*each.args.args, *each.args.kwonlyargs)]
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")
    }


def _check_function(
    name: str, options: Sequence[str], functions: Mapping[str, list[str]], where: str
) -> None:
    if name not in functions:
        raise unknown_name(name, functions, "function of figures.py", where)
    for option in options:
        if option not in functions[name][1:]:
            raise unknown_name(option, functions[name][1:], f"argument of `{name}`", where)


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
