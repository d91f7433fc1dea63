"""Read the figures, tables and claims of each folder of ``workflow/papers``, and choose the models that they show."""

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from shape_of_learning.claims.claim import COMPARISONS, DECIDED, Claim, read_condition
from shape_of_learning.errors import InputError
from shape_of_learning.files import read_yaml
from shape_of_learning.metrics.measure_entry import WEIGHTS
from shape_of_learning.metrics.registry import find_measure, list_measure_names
from shape_of_learning.plan.entries import Entry, WrittenEntries
from shape_of_learning.plan.settings import Figures
from shape_of_learning.validation import (
    Number,
    Section,
    Words,
    format_value,
    make_unknown_name_error,
    make_validation_error,
    must_be,
    suggest_name,
    unique,
    validate_yaml,
)

CLAIMS, STATISTICS = "claims.yaml", "statistics.py"
SHARED_STATISTICS = Path(__file__).parents[1] / "claims" / STATISTICS


def list_functions(file: Path) -> dict[str, ast.FunctionDef]:
    """List the public functions of a module by name, without the slow import."""
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    return {n.name: n for n in nodes if isinstance(n, ast.FunctionDef) and n.name[0] != "_"}


Text = Annotated[str, Field(min_length=1)]
Target = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*\Z"), must_be("a name in small letters")]
NAMED_COMPARISONS = " or ".join(f"`{name}`" for name in COMPARISONS)
UnitShare = Annotated[
    Literal["all", "any", "most", "together"]
    | Annotated[int, Field(ge=1)]
    | Annotated[float, Field(gt=0, lt=1)],
    must_be("`all`, `any`, `most`, `together`, a number of units, or a share above 0 and below 1"),
]


class CriterionEntry(Section):
    """A criterion: exactly one comparison of a number with a bound."""

    number: str | None = None
    above: Number | None = None
    below: Number | None = None
    at_least: Number | None = None
    at_most: Number | None = None
    not_above: Number | None = None
    not_below: Number | None = None
    share: UnitShare | None = Field(None, alias="in")

    @model_validator(mode="after")
    def _check_comparison(self) -> "CriterionEntry":
        if len(self.comparisons) != 1:
            raise make_validation_error(f"needs exactly one of {NAMED_COMPARISONS}")
        return self

    @property
    def comparisons(self) -> list[str]:
        """The comparisons that the entry has."""
        return [name for name in COMPARISONS if getattr(self, name) is not None]

    @property
    def is_hurdle(self) -> bool:
        """Whether the criterion only asks that a number is not shown to be above or below a bound."""
        return self.not_above is not None or self.not_below is not None


class RuleEntry(CriterionEntry):
    """A rule: one criterion or a list of criteria, explained in :mod:`shape_of_learning.claims.criteria`."""

    all_of: list[CriterionEntry] | None = Field(None, min_length=2)
    any_of: list[CriterionEntry] | None = Field(None, min_length=2)

    @model_validator(mode="after")
    def _check_comparison(self) -> "RuleEntry":
        lists = [name for name in ("all_of", "any_of") if getattr(self, name) is not None]
        if len(self.comparisons + lists) != 1:
            raise make_validation_error(
                f"needs exactly one of {NAMED_COMPARISONS} or `all_of` or `any_of`"
            )
        if lists and self.number is not None:
            raise make_validation_error(
                "has a `number` beside criteria that have their own; move it into them"
            )
        if any(criterion.share is not None for criterion in self.any_of or ()):
            raise make_validation_error(
                "has an `in` within `any_of`; write rules as a list, one of which must hold"
            )
        return self

    @model_validator(mode="after")
    def _check_hurdles(self) -> "RuleEntry":
        criteria = self.all_of or self.any_of or [self]
        hurdles = [criterion.is_hurdle for criterion in criteria]
        if all(hurdles) or (self.any_of is not None and any(hurdles)):
            raise make_validation_error(
                "can be met by `not_above` or `not_below` alone, which noisy numbers meet most easily; add another "
                "criterion by `all_of`"
            )
        return self


Rules = Annotated[
    list[RuleEntry],
    Field(min_length=1),
    BeforeValidator(lambda rules: rules if isinstance(rules, list) else [rules]),
]


class Seen(Section):
    """The part of a training that a run must have measured."""

    from_step: int | None = Field(None, ge=0)
    begin: Number | None = Field(None, gt=0, le=1, alias="from")
    to: Number | None = Field(None, gt=0, le=1)


class ClaimEntry(Section):
    """An entry of ``claims.yaml``: a claim of a paper and its criteria.

    :class:`.Claim` explains the keys.
    """

    sentence: Text
    where: Text
    statistic: str
    estimators: Annotated[Words, Field(min_length=1)] | None = None
    other_estimators: list[Words] = []
    robustness: dict[str, Words] = {}
    arguments: dict[str, Any] = {}
    numbers: dict[str, Text] = {}
    conclusion: dict[Literal["supported", "contradicted"], Text | dict[str, Text]] = {}
    reads: Annotated[Words, Field(min_length=1)] | None = None
    models: Annotated[
        Literal["decoders", "encoders", "all", "fine_tunings", "twins"]
        | Annotated[Words, Field(min_length=1)],
        must_be(
            "a list of names of models, or one of `decoders`, `encoders`, `all`, `fine_tunings`, `twins`"
        ),
    ]
    min_models: int | None = Field(None, ge=1)
    applies_to: Literal["decoders", "encoders", "all"] | None = None
    checkpoints: Literal["last", "training"] | None = None
    seen: Seen = Seen()
    on_estimators: bool = False
    of_blocks: bool = False
    matters: Text | None = None
    changed: dict[Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d\Z")], Text] = {}
    supported: Rules
    contradicted: Rules

    @model_validator(mode="after")
    def _check_statistic(self, info: ValidationInfo) -> "ClaimEntry":
        statistics: Mapping[str, ast.FunctionDef] = info.context or {}
        if self.statistic not in statistics:
            raise make_validation_error(
                f"has the statistic {format_value(self.statistic)}, which is in neither the paper's {STATISTICS} nor "
                f"shape_of_learning.claims.statistics; {suggest_name(self.statistic, [*statistics])}"
            )
        arguments = statistics[self.statistic].args
        parameters = [
            argument.arg for argument in arguments.args[1:]
        ]  # the first is the run's numbers
        required_parameters = parameters[: len(parameters) - len(arguments.defaults)]
        argument_names = {*self.arguments, *(["estimators"] if self.estimators else [])}
        if wrong := sorted(
            argument_names.symmetric_difference(required_parameters)
            - argument_names.intersection(parameters)
        ):
            gives, remedy = (
                ("gives", "remove") if wrong[0] in argument_names else ("does not give", "add")
            )
            takes = f"`{self.statistic}`, which takes {' and '.join(parameters) or 'nothing'}"
            raise make_validation_error(f"{gives} `{wrong[0]}` to {takes}; {remedy} it")
        return self

    @model_validator(mode="after")
    def _check_conclusions(self) -> "ClaimEntry":
        for verdict, words in self.conclusion.items():
            rules = getattr(self, verdict)
            criteria = [c for rule in rules for c in rule.all_of or rule.any_of or [rule]]
            names = {criterion.number for criterion in criteria}
            if isinstance(words, dict) and (wrong := sorted(words.keys() ^ names)):
                raise make_validation_error(
                    f"has no conclusion, or no criterion, for `{wrong[0]}` of `{verdict}`; write one for each number"
                )
        return self

    @model_validator(mode="after")
    def _check_models_and_estimators(self) -> "ClaimEntry":
        substitutes = [*self.other_estimators, *self.robustness.values()]
        if any(len(names) != len(self.estimators or ()) for names in substitutes):
            raise make_validation_error(
                "has `other_estimators` or `robustness` with another number of estimators than `estimators`; name a "
                "substitute for each"
            )
        if not isinstance(self.models, str) and (self.min_models or 0) > len(self.models):
            raise make_validation_error(
                f"has `min_models: {self.min_models}`, but `models` names {len(self.models)}; lower it"
            )
        return self


class ClaimsFile(Section):
    """A ``claims.yaml``: claims by name."""

    claims: dict[Target, ClaimEntry]


def read_claims(file: Path) -> dict[str, Claim]:
    """Read the claims of a paper, by name; empty if the paper has no such file.

    Raises
    ------
    InputError
        If a claim has an unknown key or an invalid value. The sentence names the file and the key.
    """
    if not file.exists():
        return {}
    entries = read_yaml(file)
    statistics = list_functions(SHARED_STATISTICS)
    own_file = file.with_name(STATISTICS)
    if own_file.exists():
        statistics |= list_functions(own_file)
    validate_yaml(ClaimsFile, {"claims": entries}, str(file), statistics)
    paper = file.parent.name
    claims = {}
    for name, entry in entries.items():
        conditions = {verdict: read_condition(entry[verdict]) for verdict in DECIDED}
        claims[name] = Claim(**{"name": name, "paper": paper, **entry, **conditions})
    return claims


ALL = "all"  # models or estimators
SHARED_MODULES = "shape_of_learning.figures"
SHARED_FIGURES = Path(__file__).parents[1] / "figures"


class TargetEntry(Section):
    """The keys that figures and tables share.

    Attributes
    ----------
    caption
        the text below; a figure's may hold ``{measures}`` and ``{models}``, which stand for their labels, and settings
        such as ``{sampling[windows]}``
    reads
        tables that the target reads besides estimates, ``tables/{name}/{model}.csv`` of each model
    checkpoints
        `training`: all checkpoints, only of models with training steps; `all`: all checkpoints of any model; `last`:
        the last checkpoint of each model
    most_models
        the largest number of models that fit; empty for any number
    role
        the role of the models that the target can show; empty for both roles
    draws
        the only kind of models that the target can show: fine-tunings, measured at their first and last steps, or
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
        """Whether the target shows all checkpoints of a model, and not only the last one."""
        return self.checkpoints != "last"

    @property
    def is_of_entries(self) -> bool:
        """Whether the target shows only keys of the entries of models."""
        return False


class FigureEntry(TargetEntry):
    """A figure.

    Attributes
    ----------
    draw
        ``function`` of the paper's ``figures.py``, or ``module.function`` of another module of its folder or of
        :mod:`shape_of_learning.figures`
    estimators
        the measures that the figure draws; empty for a figure of losses only; `all`: the measures of layers in
        ``measurement.estimators``
    options
        arguments of the function
    settings
        keys of ``figures`` in the configuration whose values are further arguments
    sample
        a description of the windows and their text, if the figure does not use those of ``sampling``; it may hold
        settings as `caption` does
    """

    draw: str
    estimators: Annotated[Literal["all"] | Words, must_be("`all` or a list of measures, each once")]
    options: dict[str, Any] = {}
    settings: Annotated[list[Literal["average_over"]], unique] = []
    sample: str = ""


class TableEntry(TargetEntry):
    """A table. Key `write` names a function as `draw` does. A table without `reads` shows entries with `table_1`."""

    write: str

    @property
    def is_of_entries(self) -> bool:
        """Whether the table shows only keys of the entries of models."""
        return not self.reads


class PaperFile(Section):
    """A ``paper.yaml``.

    `protocol` describes all figures of the paper, and may hold settings as captions do. `curves` names tables whose
    curves the explorer shows, and their columns that stand for columns of estimates. `jobs` has the words for jobs of
    the paper's ``rules.smk`` that the terminal shows.
    """

    title: Text
    citation: Text
    protocol: str = ""
    prefix: Annotated[str, Field(pattern=r"^([a-z][a-z0-9]*_)?\Z"), must_be("empty, or end in `_`")]
    figures: dict[Target, FigureEntry]
    tables: dict[Target, TableEntry] = {}
    curves: dict[Target, dict[str, str]] = {}
    jobs: dict[Target, str] = {}


class Paper(PaperFile):
    """A paper.

    Figures and tables are named by their targets, which begin with the paper's prefix, and sections of the
    configuration by their keys.
    """

    name: str
    claims: dict[str, Claim]
    sections: dict[str, type[Section]] = {}


def read_papers(folder: Path) -> list[Paper]:
    """Read the ``paper.yaml`` of every folder in `folder`, in the order of their names.

    Raises
    ------
    InputError
        If a paper has an invalid key or value, or if two papers have the same target, claim or section. The sentence
        names the file and the key.
    """
    papers = [_read_paper(file) for file in sorted(folder.glob("*/paper.yaml"))]
    owners: dict[str, str] = {}
    for paper in papers:
        for name in (*paper.figures, *paper.tables, *paper.claims, *paper.sections):
            if name in owners:
                raise InputError(
                    f"papers `{owners[name]}` and `{paper.name}` both have a target, claim or section "
                    f"`{name}`; give one another `prefix` in its paper.yaml, or rename the claim or section"
                )
            owners[name] = paper.name
    return papers


def collect_figures(papers: Sequence[Paper]) -> dict[str, FigureEntry]:
    """Collect the figures of all papers."""
    return {target: figure for paper in papers for target, figure in paper.figures.items()}


def collect_tables(papers: Sequence[Paper]) -> dict[str, TableEntry]:
    """Collect the tables of all papers."""
    return {target: table for paper in papers for target, table in paper.tables.items()}


def collect_sections(papers: Sequence[Paper]) -> dict[str, type[Section]]:
    """Collect the sections that papers add to the configuration."""
    return {key: section for paper in papers for key, section in paper.sections.items()}


def check_names(paper: Paper, measures: Collection[str], models: Collection[str]) -> None:
    """Raise InputError for figures and claims on unknown measures or models."""
    estimators_by_place: dict[str, Any] = {
        f"paper.yaml, figure `{name}`": figure.estimators for name, figure in paper.figures.items()
    }
    estimators_by_place |= {
        f"{CLAIMS}, claim `{name}`": claim.all_estimators for name, claim in paper.claims.items()
    }
    for where, estimators in estimators_by_place.items():
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
    figures = {
        content.prefix + name: figure.model_copy(
            update={"draw": _find_function(figure.draw, file.parent)}
        )
        for name, figure in content.figures.items()
    }
    tables = {
        content.prefix + name: table.model_copy(
            update={"write": _find_function(table.write, file.parent)}
        )
        for name, table in content.tables.items()
    }
    additions = {
        "figures": figures,
        "tables": tables,
        "claims": read_claims(file.with_name(CLAIMS)),
        "name": file.parent.name,
        "sections": _read_sections(file.with_name("settings.py")),
    }
    return Paper.model_construct(**{**dict(content), **additions})


def _read_sections(file: Path) -> dict[str, type[Section]]:
    """Return the classes of a paper's `settings.py`, by their keys; empty if the paper has no such file."""
    if not file.exists():
        return {}
    module = import_module(f"papers.{file.parent.name}.settings")
    sections = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    return {re.sub(r"\B(?=[A-Z])", "_", section.__name__).lower(): section for section in sections}


def _find_function(name: str, folder: Path) -> str:
    """Return ``module:name`` of a function in the files of a paper, or in a module that papers share."""
    module, _, name = name.rpartition(".")
    own_file = folder / f"{module or 'figures'}.py"
    is_own = own_file.exists() or not module
    file = own_file if is_own else SHARED_FIGURES / f"{module}.py"
    functions = list_functions(file) if file.exists() else {}
    if name not in functions:
        where = f"{folder / 'paper.yaml'}, which names a function of {file}"
        raise make_unknown_name_error(name, functions, "function", where)
    return (
        f"papers.{folder.name}.{own_file.stem}:{name}"
        if is_own
        else f"{SHARED_MODULES}.{module}:{name}"
    )


class Notice(NamedTuple):
    """A message that a run leaves out a model, a figure, a table, or a part of one."""

    words: str
    target: str = ""  # the figure or table
    is_left_out: bool = False  # whether the whole target is left out; `words` is the reason
    is_chosen: bool = False  # whether the configuration asks for it, so that no note is printed

    def __str__(self) -> str:
        return " ".join(filter(None, (self.target, "is left out:" * self.is_left_out, self.words)))


def check_targets(
    models_by_target: Mapping[str, Any], targets: Collection[str], entries: WrittenEntries
) -> None:
    """Refuse keys of section ``figures`` that no paper has, and models without an entry.

    Raises
    ------
    InputError
        If there is such a key or model. The sentence names the key.
    """
    for target, models in models_by_target.items():
        if target not in targets:
            raise make_unknown_name_error(
                target, (*targets, *Figures.model_fields), "key", "key `figures`"
            )
        for name in models if isinstance(models, list) else ():
            if name not in entries:
                raise make_unknown_name_error(
                    name, entries, "model", f"configuration key `figures.{target}`"
                )


def choose_papers(
    names: Sequence[str] | None, models_by_target: Mapping[str, Any], papers: Sequence[Paper]
) -> list[Paper]:
    """Choose the papers whose figures and tables a run has.

    Parameters
    ----------
    names : sequence of str or None
        Key ``papers`` of the configuration; None for the papers with a target in `models_by_target`.
    models_by_target : mapping
        The models of figures in section ``figures``.
    papers : sequence of Paper

    Raises
    ------
    InputError
        If a paper is unknown.
    """
    if names is None:
        return [
            paper for paper in papers if {*paper.figures, *paper.tables} & models_by_target.keys()
        ]
    papers_by_name = {paper.name: paper for paper in papers}
    for name in names:
        if name not in papers_by_name:
            raise make_unknown_name_error(
                name, papers_by_name, "paper", "configuration key `papers`"
            )
    return [papers_by_name[name] for name in names]


def choose_figure_measures(
    figures: Mapping[str, FigureEntry], estimators: Sequence[str]
) -> dict[str, FigureEntry]:
    """Replace `all` measures of figures by the measures of layers in ``measurement.estimators``."""
    measure_names = list_measure_names()
    layer_estimators = [
        n for n in estimators if n in measure_names and find_measure(n).family != WEIGHTS
    ]
    every = {"estimators": layer_estimators}
    return {
        target: figure.model_copy(update=every) if figure.estimators == ALL else figure
        for target, figure in figures.items()
    }


def sort_by_family_and_size(models: Iterable[Entry]) -> list[Entry]:
    """Sort models as figures do: families in the order of their first models, smaller models first."""
    model_list = list(models)
    families = list(dict.fromkeys(model.family for model in model_list))

    def place(model: Entry) -> tuple[int, int]:
        layers, width = model.shape.layers or 0, model.shape.hidden_size or 0
        # The product is about a twelfth of the number of parameters.
        return families.index(model.family), layers * width**2

    return sorted(model_list, key=place)


def choose_target_models(
    models_by_target: Mapping[str, Any],
    targets: Mapping[str, TargetEntry],
    models: Mapping[str, Entry],
    notices: list[Notice],
) -> dict[str, tuple[str, ...]]:
    """List the models of each figure or table; add notices on models and targets that are left out.

    Parameters
    ----------
    models_by_target : mapping
        The models of figures in section ``figures``. If it names no model of the run for a target, the target shows all
        models that it can, or as many as fit.
    targets : mapping of str to TargetEntry
    models : mapping of str to Entry
        The models of this run.
    notices : list of Notice
        The function appends to this list.

    Raises
    ------
    InputError
        If two models of a figure have the same label, or if more models are named than fit.
    """
    shown_models = {}
    for target, entry in targets.items():
        choice = models_by_target.get(target, ALL)
        is_open = target not in models_by_target or (
            choice not in (ALL, []) and models.keys().isdisjoint(choice)
        )
        choice = ALL if is_open else choice
        run_names = [name for name in (models if choice == ALL else choice) if name in models]
        kind = _describe_demand(entry)
        names = [name for name in run_names if _can_show(entry, models[name])]
        if entry.draws == "twins":
            names = _find_twins(names, models)
        curves = _list_curves(models[name] for name in names)
        kept_curves = curves[: entry.most_models]
        if is_open and len(kept_curves) < len(curves):
            words = ", ".join(f"`{curve}`" for curve in kept_curves)
            notices.append(
                Notice(f"draws only {words}; key `figures.{target}` can choose others", target)
            )
            names = [name for name in names if _list_curves([models[name]])[0] in kept_curves]
        if names:
            _check_drawn(target, [models[name] for name in names], entry)
            shown_models[target] = tuple(names)
        request = "no models" if choice == ALL else f"none of {', '.join(f'`{n}`' for n in choice)}"
        other_names = ", ".join(f"`{name}`" for name in run_names if name not in names)
        if names and other_names and choice != ALL:
            notices.append(Notice(f"is drawn without {other_names}: it shows models{kind}", target))
        elif choice == []:
            why = f"key `figures.{target}` is an empty list"
            notices.append(Notice(why, target, is_left_out=True, is_chosen=True))
        elif not names:
            why = f"key `models` names {request}{kind}"
            notices.append(Notice(why, target, is_left_out=True))
    return shown_models


def _describe_demand(entry: TargetEntry) -> str:
    """Describe the models that a figure or table can show, for a notice."""
    words = f" that are {entry.role}s" if entry.role else ""
    if entry.draws == "twins":
        return f"{words} together with a twin, both at the last step"
    if entry.draws == "fine_tunings":
        return f"{words} with `finetuning`, measured at the first and the last step"
    if entry.is_of_entries:
        return f"{words} whose entry has `table_1`"
    return f"{words} with training steps" if entry.checkpoints == "training" else words


def _can_show(entry: TargetEntry, model: Entry) -> bool:
    """Return whether a figure or table can show a model; whether it has a twin is checked elsewhere."""
    if entry.role and model.shape.role not in ("", entry.role):
        return False
    if entry.draws == "fine_tunings":
        return model.kind == "finetuning" and {0, model.last_step} <= {
            checkpoint.step for checkpoint in model.checkpoints
        }
    if entry.draws is None and entry.is_of_entries:
        return model.table_columns is not None
    return model.has_training_steps or entry.checkpoints != "training"


def _find_twins(names: list[str], models: Mapping[str, Entry]) -> list[str]:
    """Choose the models whose twin is also in the list, both trained to the last step."""
    recipes = {
        name: models[name].recipe
        for name in names
        if models[name].kind == "pretraining"
        and models[name].checkpoints[-1].step == models[name].last_step
    }
    pairs = [(name, recipe.get("twin_of")) for name, recipe in recipes.items()]
    paired_names = {name for pair in pairs if pair[1] in recipes for name in pair}
    return [name for name in names if name in paired_names]


def _list_curves(models: Iterable[Entry]) -> list[str]:
    """List the curves of models; the seeds of an entry share a curve."""
    return list(dict.fromkeys(model.seeds_of or model.name for model in models))


def _check_drawn(target: str, models: Sequence[Entry], entry: TargetEntry) -> None:
    """Refuse more models than fit into a figure, and two models with the same label."""
    limit = entry.most_models
    curves = _list_curves(models)
    if limit is not None and len(curves) > limit:
        example = ", ".join(curves[:limit])
        raise InputError(
            f"{target} has room for {limit} of the {len(curves)} models that it would draw; say which in "
            f"configuration key `figures.{target}`, such as [{example}]"
        )
    names_by_label: dict[str, str] = {}
    for model in models if isinstance(entry, FigureEntry) else ():
        if model.label in names_by_label:
            raise InputError(
                f"models `{names_by_label[model.label]}` and `{model.name}` of {target} both have the label "
                f"`{model.label}`; give one another `label` in its entry"
            )
        names_by_label[model.label] = model.name
