"""Claims of a paper: what its ``claims.yaml`` says, checked before any job."""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from shape_of_learning.claims.claim import STATISTICS, Claim
from shape_of_learning.errors import InputError
from shape_of_learning.files import read_yaml
from shape_of_learning.plan.functions import Signature, check_function, public_functions
from shape_of_learning.plan.refusals import (
    Section,
    Words,
    cut,
    must_be,
    refused,
    shown,
    unknown_name,
    validated,
)

CLAIMS = "claims.yaml"
ROOM = Path(__file__).parents[1] / "claims"
KINDS_OF_CONDITIONS = (
    *("above", "below", "at_least", "at_most", "not_above", "not_below"),
    *("all_of", "any_of", "holds"),
)
In = Annotated[
    Literal["all", "any", "most"]
    | Annotated[int, Field(ge=1)]
    | Annotated[float, Field(gt=0, lt=1)],
    must_be("`all`, `any`, `most`, a number of them, or a share above 0 and below 1"),
]
# Annotations of arguments of statistics, and what YAML may have there.
KINDS = {"int": (int,), "float": (int, float), "bool": (bool,), "str": (str,)}
WORDS = {
    **{"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a word"},
    **{"Sequence[str]": "a list of words", "Sequence[int]": "a list of whole numbers"},
    "Sequence[float]": "a list of numbers",
}


class Condition(Section):
    """A condition of a rule; :mod:`shape_of_learning.claims.rules` says what they mean."""

    of: str | None = None
    above: float | None = None
    below: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    not_above: float | None = None
    not_below: float | None = None
    all_of: "list[Condition] | None" = Field(None, min_length=2)
    any_of: "list[Condition] | None" = Field(None, min_length=2)
    number: In | None = Field(None, alias="in")
    holds: "Condition | None" = None

    @model_validator(mode="after")
    def _is_one(self) -> "Condition":
        said = [key for key in KINDS_OF_CONDITIONS if getattr(self, key) is not None]
        if len(said) != 1:
            raise refused(
                f"needs exactly one of {' or '.join(f'`{k}`' for k in KINDS_OF_CONDITIONS)}"
            )
        if (self.number is None) != (self.holds is None):
            raise refused("has one of `in` and `holds`, which need each other; add the other")
        if self.of is not None and self.inner:
            raise refused("has an `of` beside conditions that have their own; move it into them")
        if self.holds is not None and self.holds.counts:
            where = "put them side by side in `all_of` or `any_of`"
            raise refused(f"counts by `in` within another `in`; {where}")
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
        if self.any_of is not None:
            return all(each.shows_something for each in self.any_of)
        if self.inner:
            return any(each.shows_something for each in self.inner)
        return self.not_above is None and self.not_below is None


class Rule(Section):
    """What decides a claim; else it is undecided."""

    supported: Condition
    contradicted: Condition

    @model_validator(mode="after")
    def _asks_something(self) -> "Rule":
        for verdict in ("supported", "contradicted"):
            if not getattr(self, verdict).shows_something:
                raise refused(
                    f"can be met for `{verdict}` by `not_above` or `not_below` alone, which is likelier the "
                    "noisier the numbers are; add another condition by `all_of`"
                )
        return self


class ClaimEntry(Section):
    """An entry of ``claims.yaml``: what a paper claims and what decides it.

    :class:`.Claim` says what the keys mean.
    """

    sentence: Annotated[str, Field(min_length=1)]
    where: Annotated[str, Field(min_length=1)]
    statistic: str
    estimators: Annotated[Words, Field(min_length=1)] | None = None
    arguments: dict[str, Any] = {}
    reads: Annotated[Words, Field(min_length=1)] | None = None
    models: Annotated[
        Literal["decoders", "encoders", "all", "fine_tunings", "twins"]
        | Annotated[Words, Field(min_length=1)],
        must_be(
            "a list of names of models, or one of `decoders`, `encoders`, `all`, `fine_tunings`, `twins`"
        ),
    ]
    needs: int | None = Field(None, ge=1)
    checkpoints: Literal["last", "training"] | None = None
    rule: Rule

    @model_validator(mode="after")
    def _has_enough_models(self) -> "ClaimEntry":
        if not isinstance(self.models, str) and (self.needs or 0) > len(self.models):
            raise refused(
                f"has `needs: {self.needs}`, but `models` names {len(self.models)}; lower it"
            )
        return self


def read_claims(file: Path) -> dict[str, Claim]:
    """Read the claims of a paper, by name; there may be no file.

    Raises
    ------
    InputError
        One sentence that names the file and the key: a claim with an unknown key or a value that cannot be,
        or a statistic that does not exist or takes other arguments.
    """
    if not file.exists():
        return {}
    content = read_yaml(file)
    if not isinstance(content, dict):
        raise InputError(f"{file} must map names to claims; see docs/claims.md")
    modules = {module: public_functions(ROOM / f"{module}.py") for module in STATISTICS}
    return {name: _claim(name, entry, modules, file) for name, entry in content.items()}


def _claim(
    name: str,
    entry: Mapping[str, Any],
    modules: Mapping[str, Mapping[str, Signature]],
    file: Path,
) -> Claim:
    functions = {each: of for module in modules.values() for each, of in module.items()}
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise InputError(
            f"{file}: `{cut(name)}` is no name of a claim; use small letters, digits and `_`"
        )
    validated(ClaimEntry, entry, f"{file}, claim `{name}`")
    where = f"{file}, key `{name}.statistic`"
    statistic, arguments = entry["statistic"], entry.get("arguments", {})
    estimators = ["estimators"] if "estimators" in entry else []
    check_function(statistic, (*estimators, *arguments), functions, where, "statistic")
    given = {*estimators, *arguments}
    if lacking := [each for each in functions[statistic].needed if each not in given]:
        key = lacking[0] if lacking[0] == "estimators" else f"arguments.{lacking[0]}"
        raise InputError(f"{file}, key `{name}`: `{statistic}` needs `{key}`; add it")
    _check_values(name, entry, functions[statistic].kinds, file)
    is_of_training = statistic in modules["training_statistics"]
    if is_of_training and entry.get("checkpoints") != "training":
        raise InputError(
            f"{file}, key `{name}`: `{statistic}` is of a training; add `checkpoints: training`"
        )
    return Claim(name=name, **entry)


def _check_values(
    name: str, entry: Mapping[str, Any], kinds: Mapping[str, str], file: Path
) -> None:
    """Refuse another number of estimators than a statistic is of, and arguments of another kind."""
    listed, of = entry.get("estimators", ()), kinds.get("estimators", "")
    if of.startswith("tuple[") and len(listed) != (number := of.count("str")):
        raise InputError(
            f"{file}, key `{name}.estimators` names {len(listed)}, but `{entry['statistic']}` is of "
            f"{number}; correct the list"
        )
    for argument, value in entry.get("arguments", {}).items():
        where = f"{file}, key `{name}.arguments.{argument}`"
        if argument == "estimators":
            raise InputError(f"{where}: estimators stand beside `arguments`; move it there")
        if not _is_of_kind(value, kinds.get(argument, "")):
            raise InputError(
                f"{where} is {shown(value)}, but must be {WORDS.get(kinds[argument], kinds[argument])}"
            )


def _is_of_kind(value: Any, kind: str) -> bool:
    if kind.startswith("Sequence["):
        of = kind.removeprefix("Sequence[").removesuffix("]")
        return isinstance(value, list) and all(_is_of_kind(each, of) for each in value)
    return kind not in KINDS or type(value) in KINDS[kind]


def check_claims(
    claims: Mapping[str, Claim], file: Path, measures: Collection[str], models: Iterable[str]
) -> None:
    """Refuse claims on what cannot be measured, and on models that have no entry.

    Parameters
    ----------
    claims : mapping of str to Claim
    file : Path
        That says them.
    measures, models : iterable of str
        Names that there are.

    Raises
    ------
    InputError
        One sentence that names the file and the key.
    """
    entries = set(models)
    for name, claim in claims.items():
        for estimator in claim.estimators:
            if estimator not in measures:
                raise unknown_name(
                    estimator, measures, "estimator", f"{file}, key `{name}.estimators`"
                )
        for model in () if isinstance(claim.models, str) else claim.models:
            if model not in entries:
                raise unknown_name(model, entries, "model", f"{file}, key `{name}.models`")
