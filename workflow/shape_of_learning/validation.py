"""Validate YAML files by pydantic, with errors of one sentence that tells the user what to do."""

import re
import reprlib
from collections.abc import Hashable, Iterable
from datetime import date
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from shape_of_learning.errors import InputError, hide_secrets

MAX_CHARACTERS = 100  # of a value in an error
MAX_NAMES = 12  # in a list of valid names


class Section(BaseModel):
    """A section of a YAML file: unknown keys and values of another type are errors."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, regex_engine="python-re"
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, values: Any) -> Any:
        keys = [field.alias or name for name, field in cls.model_fields.items()]
        if isinstance(values, dict) and cls.model_config["extra"] == "forbid":
            for name in values:
                if name not in keys:
                    raise PydanticCustomError("unknown_key", "{name}", {"name": name, "keys": keys})
        return values


ValidSection = TypeVar("ValidSection", bound=Section)


def must_be(words: str) -> WrapValidator:
    """Annotate a type with a description of valid values, for the error about an invalid value."""

    def check(value: Any, check_type: Any) -> Any:
        try:
            return check_type(value)
        except ValidationError:
            remedy = _suggest_remedy(value, "string_type")
            raise make_validation_error(
                f"must be {words}, but is {format_value(value)}{remedy}"
            ) from None

    return WrapValidator(check)


def make_validation_error(predicate: str) -> PydanticCustomError:
    """Build the error of a validator from its predicate, such as ``is 3, but ...; lower it``."""
    return PydanticCustomError("refused", "{predicate}", {"predicate": predicate})


# YAML 1.2 reads this as a number, but YAML 1.1, which Snakemake reads, as text.
EXPONENTIAL = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d{1,3}")


def read_number(value: Any) -> Any:
    """Convert text such as ``1e-4``, which YAML 1.1 does not read as a number; return other values unchanged."""
    if isinstance(value, str) and EXPONENTIAL.fullmatch(value):
        return float(value)
    return value


# In a type with bounds, `Field` must come before it, so that schemas state the bounds.
number_reader = BeforeValidator(read_number)
Number = Annotated[float, number_reader]


def _refuse_repetition(values: list[Any]) -> list[Any]:
    keys = set()
    for value in values:
        key = value if isinstance(value, Hashable) else repr(value)
        if key in keys:
            raise make_validation_error(f"names {format_value(value)} twice; remove one")
        keys.add(key)
    return values


unique = AfterValidator(_refuse_repetition)
# A name that is safe as a folder, as a wildcard and in a shell.
Name = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z"),
    must_be("up to 100 letters, digits, `.`, `_` and `-`, and begin with a letter or digit"),
]
Names = Annotated[list[Name], unique]
Words = Annotated[list[str], unique]


def validate_yaml(
    kind: type[ValidSection], value: Any, where: str, context: Any = None
) -> ValidSection:
    """Validate a value read from YAML; the validators of `kind` get `context`.

    Raises
    ------
    InputError
        If a key is invalid. The sentence has `where`, the first invalid key, and what to do.
    """
    try:
        return kind.model_validate(value, context=context)
    except ValidationError as error:
        first = min(error.errors(), key=lambda details: [str(part) for part in details["loc"]])
        raise InputError(hide_secrets(f"{where}: {_format_error(dict(first))}")) from None


def _format_error(error: dict[str, Any]) -> str:
    key = cut(".".join(str(part) for part in error["loc"] if part != "[key]"))
    subject = f"`{key}`" if key else "the entry"
    kind, value, message = error["type"], error["input"], error["msg"]
    if kind == "unknown_key":
        name = error["ctx"]["name"]
        place = f" in {subject}" if key else ""
        return f"unknown key `{cut(name)}`{place}; {suggest_name(name, error['ctx']['keys'])}"
    if kind == "refused":
        return f"{subject} {message}"
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if kind == "missing":
        return f"key {subject} is missing; add it"
    message = f"{message[:1].lower()}{message[1:]}"
    return f"{subject} is {format_value(value)}: {message}{_suggest_remedy(value, kind)}"


def _suggest_remedy(value: Any, kind: str) -> str:
    """Tell how to write a value of the wrong type correctly; empty if that is unknown."""
    if kind == "list_type" and isinstance(value, str):
        return f"; write [{cut(value)}]"
    if kind == "string_type" and isinstance(value, int | float | date):
        return "; put it in quotes in a --configfile, since --config makes it a number"
    if kind == "int_type" and isinstance(value, str) and EXPONENTIAL.fullmatch(value):
        return "; write it without an exponent"
    if kind == "bool_type" and value in ("true", "false"):
        return f"; remove the quotes, or write {value.title()} after --config"
    is_quoted = isinstance(value, str) and re.fullmatch(r"[\d.e+-]+|true|false|null", value)
    if kind != "string_type" and is_quoted:
        return "; remove the quotes; within braces --config makes text, so use a --configfile there"
    return ""


def make_unknown_name_error(name: str, names: Iterable[str], kind: str, where: str) -> InputError:
    """Build the error for a name that is not among the valid `names`."""
    return InputError(f"{where}: unknown {kind} `{cut(name)}`; {suggest_name(name, sorted(names))}")


def suggest_name(name: str, names: list[str]) -> str:
    """Suggest the most similar of the valid names, or list them."""
    if matches := get_close_matches(str(name)[:MAX_CHARACTERS], names, n=1):
        return f"did you mean `{matches[0]}`?"
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"known: {', '.join(names[:MAX_NAMES])}{more}"


def format_value(value: Any) -> str:
    """Format a value for a sentence, on one line and cut."""
    return cut(_SHORT.repr(value))


class _Short(reprlib.Repr):
    """A repr that is short even for a large value."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxset = self.maxdict = 50
        self.maxstring = self.maxother = 4 * MAX_CHARACTERS

    def repr_int(self, number: int, level: int) -> str:
        is_long = number.bit_length() > 4 * MAX_CHARACTERS
        return "a number of very many digits" if is_long else repr(number)


_SHORT = _Short()


def cut(text: object) -> str:
    """Return a text on one line, cut after :data:`MAX_CHARACTERS`."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    return plain if len(plain) <= MAX_CHARACTERS else f"{plain[:MAX_CHARACTERS]}..."


def read_whole_number(key: str, value: Any, minimum: int) -> int:
    """Return a whole number of Python, NumPy or PyTorch; InputError if it is not whole, or less than `minimum`."""
    try:
        number = value.item() if hasattr(value, "item") else value
        if int(number) == number >= minimum:
            return int(number)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # torch raises several
        pass
    raise InputError(f"`{key}` is {value!r:.80}; give a whole number from {minimum} on")
