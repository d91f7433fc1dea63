"""YAML files, read so that nothing in them is silently lost."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from shape_of_learning.errors import InputError

MOST_BYTES = 10_000_000
MOST_VALUES = 200_000  # after each alias has been replaced by what it stands for

# The C parser reads the whole list of models in milliseconds; the Python one would be felt at every start.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):
    """Refuses a key that a mapping has twice, of which YAML keeps the last, and keys that are no text."""

    def flatten_mapping(self, node: Any) -> None:
        """Merge what ``<<`` names; called before a mapping is made, and once more for each that names it."""
        if not hasattr(node, "has_been_checked"):
            _check_keys(node)
            node.has_been_checked = True
        super().flatten_mapping(node)


def _check_keys(node: Any) -> None:
    seen = set()
    for key, _ in node.value:
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        if key.tag != "tag:yaml.org,2002:str":
            name = repr(key.value) if isinstance(key, yaml.ScalarNode) else "a list or mapping"
            raise _at(key, f"the key {name[:100]} is no text; put it in quotes")
        if key.value in seen:
            raise _at(key, f"the key {key.value[:100]!r} occurs twice; remove one")
        seen.add(key.value)


class _RefusedError(ValueError):
    """What is wrong, with its remedy."""


def _at(node: Any, problem: str) -> _RefusedError:
    return _RefusedError(f"line {node.start_mark.line + 1}: {problem}")


def parsed_yaml(text: str) -> Any:
    """Parse YAML, of whatever size; YAMLError, ValueError or RecursionError where it is none."""
    return yaml.load(text, _Loader)


def read_yaml(file: Path) -> Any:
    """Read a YAML file.

    Raises
    ------
    InputError
        If it cannot be read, is no YAML in UTF-8, is larger than any configuration, has a key that is no text
        or that its mapping has twice, or aliases that make it endless.
    """
    try:
        if file.stat().st_size > MOST_BYTES:
            raise InputError(f"{file} has more than {MOST_BYTES:,} bytes; name another file")
        value = parsed_yaml(file.read_text(encoding="utf-8-sig"))
    except _RefusedError as error:
        raise InputError(f"{file}, {error}") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); correct it") from error
    except InputError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"{file} is not valid YAML in UTF-8: {reason}; correct it") from error
    refuse_what_grows(value, str(file))
    return value


def refuse_what_grows(value: Any, where: str) -> None:
    """Refuse what aliases make endless, or so large that it stands for an attack.

    Parameters
    ----------
    value : object
        Dictionaries, lists and what is in them.
    where : str
        How the error names it.

    Raises
    ------
    InputError
    """
    sizes: dict[int, int] = {}

    def size(part: Any) -> int:
        if not isinstance(part, Mapping | list | tuple):
            return 1
        if id(part) not in sizes:
            sizes[id(part)] = MOST_VALUES + 1  # for a part of itself
            inside = part.values() if isinstance(part, Mapping) else part
            sizes[id(part)] = 1 + sum(map(size, inside))
        return sizes[id(part)]

    try:
        is_large = size(value) > MOST_VALUES
    except RecursionError:
        is_large = True
    if is_large:
        raise InputError(
            f"{where} has more values than any configuration needs; remove its aliases"
        )
