"""JSON-schema validation whose errors are one sentence that a user can act on."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from shape_of_learning.errors import InputError, without_secrets

# JSON takes 256.0 for an integer; a command line does not.
_Validator = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)
# The C parser reads the whole list of models in milliseconds; the Python one would be felt at every start.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"


def read_yaml(file: Path) -> Any:
    """Read a file; raises InputError if it is no YAML."""
    try:
        return yaml.load(file.read_text(encoding="utf-8"), _Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{file} is not valid YAML: {reason}; correct it") from error


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
    errors = _Validator(read_yaml(SCHEMAS / f"{schema}.schema.yaml")).iter_errors(value)
    first = next(iter(sorted(errors, key=lambda error: list(map(str, error.absolute_path)))), None)
    if first is not None:
        raise InputError(without_secrets(f"{where}: {_sentence(first)}"))


def unknown_name(name: str, known: Iterable[str], kind: str, where: str) -> InputError:
    """Build the error for a name that is not among the `known` ones."""
    known = sorted(known)
    near = get_close_matches(str(name), known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}"
    return InputError(f"{where}: unknown {kind} `{name}`; {hint}")


def _sentence(error: ValidationError) -> str:
    key = ".".join(str(part) for part in error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {})
        name = next(name for name in error.instance if name not in known)
        inside = f" in `{key}`" if key else ""
        near = get_close_matches(str(name), known, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"allowed: {', '.join(known)}"
        return f"unknown key `{name}`{inside}; {hint}"
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"key `{'.'.join(filter(None, [key, missing[0]]))}` is missing; add it"
    if error.validator in ("anyOf", "pattern") and "description" in error.schema:
        return f"`{key}` must be {error.schema['description']}, but is {error.instance!r}"
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
        return f"`{key}` is {error.instance!r}, but must be one of {allowed}"
    named = f"`{key}`: " if key else ""
    return f"{named}{error.message}; see config/README.md"
