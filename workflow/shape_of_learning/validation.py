"""What is written by hand, checked by pydantic: each refusal is one sentence that a user can act on."""

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

SHOWN_CHARACTERS = 100  # of a value that is refused
MOST_NAMES = 12  # that are shown of those that are known


class Section(BaseModel):
    """Keys and values that somebody has written: no others, and nothing is taken for another type."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, regex_engine="python-re"
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, given: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        closed = isinstance(given, dict) and cls.model_config["extra"] == "forbid"
        for name in given if closed else ():
            if name not in known:
                raise PydanticCustomError("unknown_key", "{name}", {"name": name, "known": known})
        return given


Kind = TypeVar("Kind", bound=Section)


def must_be(words: str) -> WrapValidator:
    """Annotate a type with words for all that it refuses: it must be this."""

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
    """Build the error of a validator: what is wrong with the key, such as ``is 3, but ...; lower it``."""
    return PydanticCustomError("refused", "{it}", {"it": predicate})


# What YAML 1.2 takes for a number, and the YAML of Snakemake for text.
EXPONENTIAL = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d{1,3}")


def read_number(value: Any) -> Any:
    """Make a number of what YAML leaves as text, such as ``1e-4``; leave all else as it is."""
    if isinstance(value, str) and EXPONENTIAL.fullmatch(value):
        return float(value)
    return value


# Of a float whose bounds stand before it, so that schemas have them.
with_exponent = BeforeValidator(read_number)
Number = Annotated[float, with_exponent]


def _refuse_repetition(values: list[Any]) -> list[Any]:
    seen = set()
    for value in values:
        key = value if isinstance(value, Hashable) else repr(value)
        if key in seen:
            raise make_validation_error(f"names {format_value(value)} twice; remove one")
        seen.add(key)
    return values


unique = AfterValidator(_refuse_repetition)
# A name of a folder, of a wildcard and of a shell's argument.
Name = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z"),
    must_be("up to 100 letters, digits, `.`, `_` and `-`, and begin with a letter or digit"),
]
Names = Annotated[list[Name], unique]
Words = Annotated[list[str], unique]


def validate_yaml(kind: type[Kind], value: Any, where: str, context: Any = None) -> Kind:
    """Check what YAML holds; `context` is for the validators of `kind`.

    Raises
    ------
    InputError
        One sentence: `where`, which names the file or the entry, the first offending key, and what to do.
    """
    try:
        return kind.model_validate(value, context=context)
    except ValidationError as error:
        first = min(error.errors(), key=lambda each: [str(part) for part in each["loc"]])
        raise InputError(hide_secrets(f"{where}: {_format_error(dict(first))}")) from None


def _format_error(error: dict[str, Any]) -> str:
    key = cut(".".join(str(part) for part in error["loc"] if part != "[key]"))
    named = f"`{key}`" if key else "the entry"
    kind, value, said = error["type"], error["input"], error["msg"]
    if kind == "unknown_key":
        name, inside = error["ctx"]["name"], f" in {named}" if key else ""
        return f"unknown key `{cut(name)}`{inside}; {suggest_name(name, error['ctx']['known'])}"
    if kind == "refused":
        return f"{named} {said}"
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if kind == "missing":
        return f"key {named} is missing; add it"
    return f"{named} is {format_value(value)}: {said[:1].lower()}{said[1:]}{_suggest_remedy(value, kind)}"


def _suggest_remedy(value: Any, kind: str) -> str:
    """How to write what is of the wrong type."""
    if kind == "list_type" and isinstance(value, str):
        return f"; write [{cut(value)}]"
    if kind == "string_type" and isinstance(value, int | float | date):
        return "; put it in quotes"
    if kind == "int_type" and isinstance(value, str) and EXPONENTIAL.fullmatch(value):
        return "; write it without an exponent"
    is_quoted = isinstance(value, str) and re.fullmatch(r"[\d.e+-]+|true|false|null", value)
    if kind != "string_type" and is_quoted:
        return "; leave out quotes, and inside of braces use a --configfile, since --config makes text there"
    return ""


def make_unknown_name_error(name: str, known: Iterable[str], kind: str, where: str) -> InputError:
    """Build the error for a name that is not among the `known` ones."""
    return InputError(f"{where}: unknown {kind} `{cut(name)}`; {suggest_name(name, sorted(known))}")


def suggest_name(name: str, known: list[str]) -> str:
    """The nearest of the names that are known, or all of them."""
    near = get_close_matches(str(name)[:SHOWN_CHARACTERS], known, n=1)
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    listed = f"{', '.join(known[:MOST_NAMES])}{more}"
    return f"did you mean `{near[0]}`?" if near else f"known: {listed}"


def format_value(value: Any) -> str:
    """A value as it is shown in a sentence: on one line, and not in pages."""
    return cut(_SHORT.repr(value))


class _Short(reprlib.Repr):
    """Writes no more of a value than a sentence can show, however large it is."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxset = self.maxdict = 50
        self.maxstring = self.maxother = 4 * SHOWN_CHARACTERS

    def repr_int(self, number: int, level: int) -> str:
        is_long = number.bit_length() > 4 * SHOWN_CHARACTERS
        return "a number of very many digits" if is_long else repr(number)


_SHORT = _Short()


def cut(text: object) -> str:
    """Text on one line, and not in pages."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    return plain if len(plain) <= SHOWN_CHARACTERS else f"{plain[:SHOWN_CHARACTERS]}..."
