"""The files of the model list: entries as they are written, and one for each of their seeds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.files import read_yaml

Entries = dict[str, tuple[str, Any]]  # name -> file, entry


def read_entries(folder: Path) -> Entries:
    """Read all YAML files of `folder`, ``*.yaml`` and ``*.yml``: model name -> (file, entry as written).

    Raises
    ------
    InputError
        For a file that is no mapping and for a name that two files have.
    """
    entries: Entries = {}
    for file in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        content = read_yaml(file)
        if content is None:  # nothing but comments
            continue
        if not isinstance(content, dict):
            raise InputError(
                f"{file} must map model names to entries; see docs/how_to/own_model.md"
            )
        for name, entry in content.items():
            if name in entries:
                raise InputError(
                    f"model `{name}` is defined in {entries[name][0]} and in {file}; rename one"
                )
            entries[name] = str(file), entry
    return entries


def _fill_in_seed(value: Any, seed: str) -> Any:
    """Fill in a seed wherever an entry has a place for it."""
    if isinstance(value, dict):
        return {
            _fill_in_seed(key, seed): _fill_in_seed(inner, seed) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_fill_in_seed(inner, seed) for inner in value]
    return value.replace("{seed}", seed) if isinstance(value, str) else value


def expand_seeds(entries: Entries, settings: Mapping[str, Any]) -> tuple[Entries, dict[str, Any]]:
    """Make of an entry with `seeds` one for each, and name these where settings name it.

    Raises
    ------
    InputError
        If `seeds` is no list of different whole numbers, or nothing in the entry has `{seed}`.
    """
    seeds: dict[str, list[str]] = {}
    expanded: Entries = {}
    for name, (file, entry) in entries.items():
        if not isinstance(entry, dict) or "seeds" not in entry:
            expanded[name] = file, entry
            continue
        numbers, training = entry["seeds"], entry.get("training")
        of_training = training.get("revision") if isinstance(training, dict) else None
        places = (entry.get("repository"), of_training)
        is_list = isinstance(numbers, list) and all(type(number) is int for number in numbers)
        has_seed = any("{seed}" in str(place) for place in places)
        if not is_list or len({*numbers}) < max(len(numbers), 2) or not has_seed:
            raise InputError(
                f"model `{name}` in {file}: `seeds` must be a list of two or more different whole numbers, and "
                "`repository` or `training.revision` have `{seed}`; correct the entry"
            )
        for seed in numbers:
            own = {**_fill_in_seed(entry, str(seed)), "seeds_of": name}
            own |= {"label": f"{entry.get('label', name)}, seed {seed}"}
            if f"{name}-{seed}" in entries:
                raise InputError(
                    f"model `{name}-{seed}` is an entry, and a seed of `{name}` in {file}; rename one"
                )
            expanded[f"{name}-{seed}"] = file, {k: v for k, v in own.items() if k != "seeds"}
            seeds.setdefault(name, []).append(f"{name}-{seed}")

    def rename_models(value: Any) -> Any:
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return [e for each in value for e in seeds.get(each, [each])]
        if isinstance(value, dict):
            return {e: rename_models(v) for k, v in value.items() for e in seeds.get(k, [k])}
        return value

    keys = ("models", "figures", "training_steps")
    return expanded, {k: rename_models(v) if k in keys else v for k, v in settings.items()}
