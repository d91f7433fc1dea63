"""JSON-schema validation whose errors are one sentence that a user can act on."""

import math
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from shape_of_learning.errors import InputError, without_secrets
from shape_of_learning.storage.yaml_file import read_yaml, refuse_what_grows

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
SHOWN_CHARACTERS = 100  # of a value that is refused
MOST_NAMES = 12  # that are shown of those that are known


def _pattern(
    _: Any, pattern: str, instance: Any, schema: dict[str, Any]
) -> Iterator[ValidationError]:
    """Let `$` be the very end, as JSON schema has it: Python's also stands before a last line break."""
    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield ValidationError(f"{shown(instance)} is not of the form that is asked for")


_CHECKER = Draft202012Validator.TYPE_CHECKER.redefine_many(
    {
        # JSON takes 256.0 for an integer; a command line does not.
        "integer": lambda _, value: type(value) is int,
        # YAML, but not JSON, has .nan and .inf.
        "number": lambda _, value: type(value) in (int, float) and math.isfinite(value),
    }
)
_Validator = extend(Draft202012Validator, {"pattern": _pattern}, type_checker=_CHECKER)


def validate(value: Any, schema: str, where: str) -> None:
    """Check `value` against ``workflow/schemas/{schema}.schema.yaml``.

    Parameters
    ----------
    value : object
        What YAML holds: dictionaries, lists, strings, numbers.
    schema : str
        ``"config"`` or ``"model"``.
    where : str
        How the error names the thing, such as ``"configuration"``.

    Raises
    ------
    InputError
        One sentence that names the offending key.
    """
    refuse_what_grows(value, where)
    errors = _Validator(read_yaml(SCHEMAS / f"{schema}.schema.yaml")).iter_errors(value)
    first = next(iter(sorted(errors, key=lambda error: list(map(str, error.absolute_path)))), None)
    if first is not None:
        raise InputError(without_secrets(f"{where}: {_sentence(first)}"))


def unknown_name(name: str, known: Iterable[str], kind: str, where: str) -> InputError:
    """Build the error for a name that is not among the `known` ones."""
    known = sorted(known)
    near = get_close_matches(str(name)[:SHOWN_CHARACTERS], known, n=1)
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    listed = f"{', '.join(known[:MOST_NAMES])}{more}"
    hint = f"did you mean `{near[0]}`?" if near else f"known: {listed}"
    return InputError(f"{where}: unknown {kind} `{_cut(str(name))}`; {hint}")


def shown(value: Any) -> str:
    """A value as it is shown in a sentence: on one line, and not in pages."""
    return _cut(repr(value))


def _cut(text: str) -> str:
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return plain if len(plain) <= SHOWN_CHARACTERS else f"{plain[:SHOWN_CHARACTERS]}..."


def _sentence(error: ValidationError) -> str:
    key = _cut(".".join(str(part) for part in error.absolute_path))
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {})
        name = next(name for name in error.instance if name not in known)
        inside = f" in `{key}`" if key else ""
        near = get_close_matches(str(name)[:SHOWN_CHARACTERS], known, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"allowed: {', '.join(known)}"
        return f"unknown key `{_cut(str(name))}`{inside}; {hint}"
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"key `{'.'.join(filter(None, [key, missing[0]]))}` is missing; add it"
    if error.validator in ("anyOf", "pattern") and "description" in error.schema:
        return f"`{key}` must be {error.schema['description']}, but is {shown(error.instance)}"
    if error.validator == "dependentRequired":
        name, needs = next(
            (name, needs)
            for name, needs in error.validator_value.items()
            if name in error.instance and not set(needs) <= set(error.instance)
        )
        return f"`{name}` needs `{needs[0]}` in the same entry; add it, or remove `{name}`"
    if error.validator in ("oneOf", "anyOf") and all(
        "required" in o for o in error.validator_value
    ):
        choices = " or ".join(f"`{o['required'][0]}`" for o in error.validator_value)
        number = "exactly one" if error.validator == "oneOf" else "at least one"
        return f"{f'`{key}`' if key else 'the entry'} needs {number} of {choices}"
    if error.validator == "enum":
        allowed = ", ".join(f"`{choice}`" for choice in error.validator_value)
        return f"`{key}` is {shown(error.instance)}, but must be one of {allowed}"
    named = f"`{key}`: " if key else ""
    if error.validator == "type":
        kinds = [kinds] if isinstance(kinds := error.validator_value, str) else kinds
        types = " or ".join(f"'{kind}'" for kind in kinds)
        return f"{named}{shown(error.instance)} is not of type {types}; {_remedy(error)}"
    if error.validator == "uniqueItems":
        twice = next(each for each in error.instance if error.instance.count(each) > 1)
        return f"{named}{shown(twice)} is listed twice; remove one"
    if error.validator == "minItems" and not error.instance:
        return f"{named}the list is empty; name at least one"
    message = error.message.replace(repr(error.instance), shown(error.instance))
    return f"{named}{_cut_sentence(message)}; see config/README.md"


def _remedy(error: ValidationError) -> str:
    """How to write what is of the wrong type."""
    kinds = error.validator_value
    if kinds == "array" and isinstance(error.instance, str):
        return f"write [{_cut(error.instance)}]"
    if kinds == "string" and isinstance(error.instance, int | float):
        return "put it in quotes"
    if isinstance(error.instance, str) and re.fullmatch(
        r"[\d.e+-]+|true|false|null", error.instance
    ):
        return "leave out quotes, and inside of braces use a --configfile, since --config makes text there"
    return "see config/README.md"


def _cut_sentence(text: str) -> str:
    return text if len(text) <= 3 * SHOWN_CHARACTERS else f"{text[: 3 * SHOWN_CHARACTERS]}..."
