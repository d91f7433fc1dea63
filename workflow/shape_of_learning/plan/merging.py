"""What a configuration consists of: defaults, what the user says, and the folder of the run."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.plan.schema import shown
from shape_of_learning.storage.yaml_file import read_yaml, refuse_what_grows

# What is in results/, so that no run may be called so.
FOLDERS = (
    "readme.md",
    *(
        "benchmarks",
        "checkpoints",
        "choices",
        "claims",
        "corpus",
        "embeddings",
        "figures",
        "logs",
        "losses",
    ),
    *("finetuned", "left_out", "measurements", "neighbours", "pretrained", "spectra", "tables"),
    *("provenance", "tasks", "weight_points", "weights"),
)


def with_defaults(given: Mapping[str, Any], defaults: Path) -> dict[str, Any]:
    """Complete what the user says by what a file says.

    Parameters
    ----------
    given : mapping
        The user's configuration; of a section it need not state more than what differs.
    defaults : Path
        YAML with all keys.

    Returns
    -------
    dict
        Sections are merged key by key; lists are replaced.
    """
    refuse_what_grows(given, "configuration")
    return _merged(read_yaml(defaults), given)


def check_configuration_file(file: Path) -> None:
    """Refuse a file of the user's in which a key occurs twice, or is no text.

    Raises
    ------
    InputError
        One sentence that names the file and the line.
    """

    def pairs(found: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in found]
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(f"{file}: the key {twice[0][:100]!r} occurs twice; remove one")

    if not file.is_file():  # a pipe, which Snakemake has emptied, or a file of another repository
        return
    try:
        json.loads(file.read_bytes(), object_pairs_hook=pairs)
    except InputError:
        raise
    except (OSError, ValueError, RecursionError):  # it is no JSON, as hardly any is
        read_yaml(file)


def results_folder(run: Any) -> str:
    """Name the folder of a run's results.

    Parameters
    ----------
    run : str or None
        Key `run` of the configuration.

    Returns
    -------
    str
        ``"results"``, or a folder in it.

    Raises
    ------
    InputError
        Where the name is none that a folder in ``results/`` can have beside those of the rules.
    """
    if run is None:
        return "results"
    if not isinstance(run, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", run):
        raise InputError(
            f"configuration key `run` is {shown(run)}, but names a folder in results/: use up to 100 "
            "letters, digits, `.`, `_` and `-`, begin with a letter or digit, and put a number in quotes"
        )
    if run.casefold() in FOLDERS:
        raise InputError(
            f"configuration key `run` is {run!r}, but results/{run} is there for something "
            "else; choose another name"
        )
    return f"results/{run}"


def _merged(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(defaults[key], value)
        for key, value in given.items()
        if isinstance(value, Mapping) and isinstance(defaults.get(key), Mapping)
    }
    return {**defaults, **given, **both}
