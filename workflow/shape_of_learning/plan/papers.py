"""Papers: what each folder of ``workflow/papers`` says that its paper shows."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from shape_of_learning.claims.claim import Claim
from shape_of_learning.errors import InputError
from shape_of_learning.files import read_yaml
from shape_of_learning.plan.claim_list import CLAIMS, Target, Text, list_functions, read_claims
from shape_of_learning.validation import (
    Section,
    Words,
    make_unknown_name_error,
    must_be,
    unique,
    validate_yaml,
)

ALL = "all"  # estimators
SHARED_MODULES = "shape_of_learning.figures"
SHARED = Path(__file__).parents[1] / "figures"


class Specification(Section):
    """What figures and tables have in common.

    Attributes
    ----------
    caption
        of a figure may hold ``{measures}`` and ``{models}``, which stand for their labels, and settings such
        as ``{sampling[windows]}``
    reads
        tables that it reads besides estimates, ``tables/{name}/{model}.csv`` of each model
    checkpoints
        `training`: all of a model, of models with training steps; `all`: all of any model; `last`: each
        model's last one
    most_models
        how many there is room for; empty if for any number
    role
        of the models that it can draw; empty for both
    draws
        the only kind of models that it can draw: fine-tunings, measured at their first and last steps, or
        trainings together with a twin
    """

    caption: Text
    reads: Annotated[list[Target], unique] = []
    checkpoints: Literal["last", "all", "training"] = "last"
    most_models: int | None = Field(None, ge=1)
    role: Literal["decoder", "encoder"] | None = None
    draws: Literal["fine_tunings", "twins"] | None = None

    @property
    def draws_every_checkpoint(self) -> bool:
        """Whether it draws all checkpoints of a model, and not just the last one."""
        return self.checkpoints != "last"

    @property
    def is_of_entries(self) -> bool:
        """Whether it shows nothing but what the entries of models say."""
        return False


class FigureSpecification(Specification):
    """A figure.

    Attributes
    ----------
    draw
        ``function``, of the paper's ``figures.py``, or ``module.function``, of another module of its
        folder or of :mod:`shape_of_learning.figures`
    estimators
        what is drawn; none: just the loss; `all`: what is of layers in ``measurement.estimators``
    options
        arguments of the function
    settings
        further ones, by the keys of ``figures`` in the configuration that hold them
    sample
        which windows of which text it is of, if not those of ``sampling``; it may hold settings as `caption` does
    """

    draw: str
    estimators: Annotated[Literal["all"] | Words, must_be("`all` or a list of measures, each once")]
    options: dict[str, Any] = {}
    settings: Annotated[list[Literal["average_over"]], unique] = []
    sample: str = ""


class TableSpecification(Specification):
    """A table; `write` is a function as `draw` is. One that reads no others is of the entries with `table_1`."""

    write: str

    @property
    def is_of_entries(self) -> bool:
        """Whether it shows nothing but what the entries of models say."""
        return not self.reads


class PaperFile(Section):
    """A ``paper.yaml``; `protocol` holds for all of its figures, and settings as captions do."""

    title: Text
    citation: Text
    protocol: str = ""
    prefix: Annotated[str, Field(pattern=r"^([a-z][a-z0-9]*_)?\Z"), must_be("empty, or end in `_`")]
    figures: dict[Target, FigureSpecification]
    tables: dict[Target, TableSpecification] = {}


class Paper(PaperFile):
    """A paper; figures and tables by names of targets, which begin with its prefix, claims by their own."""

    name: str
    claims: dict[str, Claim]


def read_papers(folder: Path) -> list[Paper]:
    """Read the ``paper.yaml`` of every folder in `folder`, in the order of their names.

    Raises
    ------
    InputError
        One sentence that names the file and the key: a key or a value that a paper cannot have, or a target
        or a claim that another paper has.
    """
    papers = [_read_paper(file) for file in sorted(folder.glob("*/paper.yaml"))]
    owners: dict[str, str] = {}
    for paper in papers:
        for name in (*paper.figures, *paper.tables, *paper.claims):
            if name in owners:
                raise InputError(
                    f"papers `{owners[name]}` and `{paper.name}` both have the target or claim `{name}`; give "
                    "one another `prefix` in its paper.yaml, or rename the claim"
                )
            owners[name] = paper.name
    return papers


def collect_figures(papers: Sequence[Paper]) -> dict[str, FigureSpecification]:
    """Collect the figures of all papers."""
    return {target: figure for paper in papers for target, figure in paper.figures.items()}


def collect_tables(papers: Sequence[Paper]) -> dict[str, TableSpecification]:
    """Collect the tables of all papers."""
    return {target: table for paper in papers for target, table in paper.tables.items()}


def check_names(paper: Paper, measures: Collection[str], models: Collection[str]) -> None:
    """Refuse figures and claims on measures and models that there are not; InputError as above."""
    named: dict[str, Any] = {
        f"paper.yaml, figure `{name}`": each.estimators for name, each in paper.figures.items()
    }
    named |= {
        f"{CLAIMS}, claim `{name}`": each.all_estimators for name, each in paper.claims.items()
    }
    for where, estimators in named.items():
        for estimator in () if estimators == ALL else estimators:
            if estimator not in measures:
                raise make_unknown_name_error(
                    estimator, measures, "estimator", f"{paper.name}/{where}"
                )
    for name, claim in paper.claims.items():
        for model in [] if isinstance(claim.models, str) else claim.models:
            if model not in models:
                raise make_unknown_name_error(
                    model, models, "model", f"{paper.name}/{CLAIMS}, claim `{name}`"
                )


def _read_paper(file: Path) -> Paper:
    content = validate_yaml(PaperFile, read_yaml(file), str(file))
    figures, tables, claims = {}, {}, read_claims(file.with_name(CLAIMS))
    for name, figure in content.figures.items():
        read = {"draw": _find_function(figure.draw, file.parent)}
        figures[content.prefix + name] = figure.model_copy(update=read)
    for name, table in content.tables.items():
        read = {"write": _find_function(table.write, file.parent)}
        tables[content.prefix + name] = table.model_copy(update=read)
    read = {"figures": figures, "tables": tables, "claims": claims, "name": file.parent.name}
    return Paper.model_construct(**{**dict(content), **read})


def _find_function(name: str, folder: Path) -> str:
    """``module:name`` of a function of a paper's own files, or of a module that all papers share."""
    module, _, name = name.rpartition(".")
    own = folder / f"{module or 'figures'}.py"
    is_own = own.exists() or not module
    file = own if is_own else SHARED / f"{module}.py"
    known = list_functions(file) if file.exists() else {}
    if name not in known:
        where = f"{folder / 'paper.yaml'}, which names a function of {file}"
        raise make_unknown_name_error(name, known, "function", where)
    return (
        f"papers.{folder.name}.{own.stem}:{name}" if is_own else f"{SHARED_MODULES}.{module}:{name}"
    )
