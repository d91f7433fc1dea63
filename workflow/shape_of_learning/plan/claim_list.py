"""Claims of a paper: what its ``claims.yaml`` says, checked before any job."""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, model_validator

from shape_of_learning.claims.claim import Claim
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
In = Annotated[
    Literal["all", "any", "most"]
    | Annotated[int, Field(ge=1)]
    | Annotated[float, Field(gt=0, lt=1)],
    must_be("`all`, `any`, `most`, a number of them, or a share above 0 and below 1"),
]


class Condition(Section):
    """A condition of a rule; :mod:`shape_of_learning.claims.rules` says what they mean."""

    of: str | None = None
    above: Number | None = None
    below: Number | None = None
    at_least: Number | None = None
    at_most: Number | None = None
    not_above: Number | None = None
    not_below: Number | None = None
    all_of: "list[Condition] | None" = Field(None, min_length=2)
    any_of: "list[Condition] | None" = Field(None, min_length=2)
    number: In | None = Field(None, alias="in")
    holds: "Condition | None" = None

    @model_validator(mode="after")
    def _is_one(self) -> "Condition":
        kinds = [key for key in type(self).model_fields if key not in ("of", "number")]
        if len([key for key in kinds if getattr(self, key) is not None]) != 1:
            raise make_validation_error(
                f"needs exactly one of {' or '.join(f'`{kind}`' for kind in kinds)}"
            )
        if (self.number is None) != (self.holds is None):
            raise make_validation_error(
                "has one of `in` and `holds`, which need each other; add the other"
            )
        if self.of is not None and self.inner:
            raise make_validation_error(
                "has an `of` beside conditions that have their own; move it into them"
            )
        if self.holds is not None and self.holds.counts:
            remedy = "put them side by side in `all_of` or `any_of`"
            raise make_validation_error(f"counts by `in` within another `in`; {remedy}")
        return self

    @property
    def inner(self) -> "list[Condition]":
        """The conditions that it is made of."""
        return self.all_of or self.any_of or ([self.holds] if self.holds is not None else [])

    @property
    def counts(self) -> bool:
        """Whether it counts units, itself or within."""
        return self.holds is not None or any(each.counts for each in self.inner)

    @property
    def shows_something(self) -> bool:
        """Whether more is asked than that something is not shown."""
        if self.inner:
            shows = [each.shows_something for each in self.inner]
            return all(shows) if self.any_of is not None else any(shows)
        return self.not_above is None and self.not_below is None


class Rule(Section):
    """What decides a claim; else it is undecided."""

    supported: Condition
    contradicted: Condition

    @model_validator(mode="after")
    def _asks_something(self) -> "Rule":
        for verdict in ("supported", "contradicted"):
            if not getattr(self, verdict).shows_something:
                raise make_validation_error(
                    f"can be met for `{verdict}` by `not_above` or `not_below` alone, which is likelier the "
                    "noisier the numbers are; add another condition by `all_of`"
                )
        return self


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
    others: list[Words] = []
    also: dict[str, Words] = {}
    arguments: dict[str, Any] = {}
    parts: dict[str, Text] = {}
    reads: Annotated[Words, Field(min_length=1)] | None = None
    models: Annotated[
        Literal["decoders", "encoders", "all", "fine_tunings", "twins"]
        | Annotated[Words, Field(min_length=1)],
        must_be(
            "a list of names of models, or one of `decoders`, `encoders`, `all`, `fine_tunings`, `twins`"
        ),
    ]
    needs: int | None = Field(None, ge=1)
    asked_of: Literal["decoders", "encoders", "all"] | None = None
    checkpoints: Literal["last", "training"] | None = None
    seen: Seen = Seen()
    on_estimators: bool = False
    of_blocks: bool = False
    matters: Text | None = None
    changed: dict[Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d\Z")], Text] = {}
    rule: Rule

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
        if any(len(of) != len(self.estimators or ()) for of in [*self.others, *self.also.values()]):
            raise make_validation_error(
                "has `others` or `also` of another number of estimators than `estimators`, whose places they "
                "take; name one for each"
            )
        if not isinstance(self.models, str) and (self.needs or 0) > len(self.models):
            raise make_validation_error(
                f"has `needs: {self.needs}`, but `models` names {len(self.models)}; lower it"
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
    return {name: Claim(name=name, paper=paper, **entry) for name, entry in written.items()}
