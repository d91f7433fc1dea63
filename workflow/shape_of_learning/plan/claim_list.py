"""Claims of a paper: what its ``claims.yaml`` says, checked before any job."""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from shape_of_learning.claims.claim import COMPARISONS, DECIDED, Claim, read_condition
from shape_of_learning.files import read_yaml
from shape_of_learning.validation import (
    Number,
    Section,
    Words,
    format_value,
    make_validation_error,
    must_be,
    suggest_name,
    validate_yaml,
)

CLAIMS, STATISTICS = "claims.yaml", "statistics.py"
SHARED_STATISTICS = Path(__file__).parents[1] / "claims" / STATISTICS


def list_functions(file: Path) -> dict[str, ast.FunctionDef]:
    """The public functions of a module by name, which is too slow to import for a plan."""
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    return {n.name: n for n in nodes if isinstance(n, ast.FunctionDef) and n.name[0] != "_"}


Text = Annotated[str, Field(min_length=1)]
Target = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*\Z"), must_be("a name in small letters")]
NAMED_COMPARISONS = " or ".join(f"`{name}`" for name in COMPARISONS)
In = Annotated[
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
    share: In | None = Field(None, alias="in")

    @model_validator(mode="after")
    def _check_comparison(self) -> "CriterionEntry":
        if len(self.comparisons) != 1:
            raise make_validation_error(f"needs exactly one of {NAMED_COMPARISONS}")
        return self

    @property
    def comparisons(self) -> list[str]:
        """The comparisons that are written."""
        return [name for name in COMPARISONS if getattr(self, name) is not None]

    @property
    def is_hurdle(self) -> bool:
        """Whether it asks only that something is not shown."""
        return self.not_above is not None or self.not_below is not None


class RuleEntry(CriterionEntry):
    """A rule: one criterion, or a list of them; :mod:`shape_of_learning.claims.criteria` says what they mean."""

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
    def _check_that_it_shows_something(self) -> "RuleEntry":
        criteria = self.all_of or self.any_of or [self]
        hurdles = [criterion.is_hurdle for criterion in criteria]
        if all(hurdles) or (self.any_of is not None and any(hurdles)):
            raise make_validation_error(
                "can be met by `not_above` or `not_below` alone, which is likelier the noisier the numbers are; add "
                "another criterion by `all_of`"
            )
        return self


def _list_rules(written: Any) -> Any:
    return written if isinstance(written, list) else [written]


Rules = Annotated[list[RuleEntry], Field(min_length=1), BeforeValidator(_list_rules)]


class Seen(Section):
    """Which part of a training must have been seen."""

    from_step: int | None = Field(None, ge=0)
    begin: Number | None = Field(None, gt=0, le=1, alias="from")
    to: Number | None = Field(None, gt=0, le=1)


class ClaimEntry(Section):
    """An entry of ``claims.yaml``: what a paper claims and what decides it.

    :class:`.Claim` says what the keys mean.
    """

    sentence: Text
    where: Text
    statistic: str
    estimators: Annotated[Words, Field(min_length=1)] | None = None
    other_estimators: list[Words] = []
    robustness: dict[str, Words] = {}
    arguments: dict[str, Any] = {}
    numbers: dict[str, Text] = {}
    conclusion: dict[Literal["supported", "contradicted"], Text] = {}
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
        taken = [argument.arg for argument in arguments.args[1:]]  # the first is the run's numbers
        needed = taken[: len(taken) - len(arguments.defaults)]
        given = {*self.arguments, *(["estimators"] if self.estimators else [])}
        if wrong := sorted(given.symmetric_difference(needed) - given.intersection(taken)):
            of = f"`{self.statistic}`, which takes {' and '.join(taken) or 'nothing'}"
            raise make_validation_error(
                f"gives or lacks `{wrong[0]}` of {of}; correct its `arguments`"
            )
        return self

    @model_validator(mode="after")
    def _check_models_and_estimators(self) -> "ClaimEntry":
        substitutes = [*self.other_estimators, *self.robustness.values()]
        if any(len(names) != len(self.estimators or ()) for names in substitutes):
            raise make_validation_error(
                "has `other_estimators` or `robustness` with another number of estimators than `estimators`, whose "
                "places they take; name one for each"
            )
        if not isinstance(self.models, str) and (self.min_models or 0) > len(self.models):
            raise make_validation_error(
                f"has `min_models: {self.min_models}`, but `models` names {len(self.models)}; lower it"
            )
        return self


class ClaimsFile(Section):
    """A ``claims.yaml``, whose names are those of claims."""

    claims: dict[Target, ClaimEntry]


def read_claims(file: Path) -> dict[str, Claim]:
    """Read the claims of a paper, by name; there may be no file.

    Raises
    ------
    InputError
        One sentence that names the file and the key: a claim with an unknown key or a value that cannot be.
    """
    if not file.exists():
        return {}
    written = read_yaml(file)
    own = file.with_name(STATISTICS)
    statistics = list_functions(SHARED_STATISTICS) | (list_functions(own) if own.exists() else {})
    validate_yaml(ClaimsFile, {"claims": written}, str(file), statistics)
    paper = file.parent.name
    claims = {}
    for name, entry in written.items():
        conditions = {verdict: read_condition(entry[verdict]) for verdict in DECIDED}
        claims[name] = Claim(**{"name": name, "paper": paper, **entry, **conditions})
    return claims
