"""Table 1: the models and how they were trained."""

import csv
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shape_of_learning.errors import InputError
from shape_of_learning.figures.captions import short_number
from shape_of_learning.storage.files import atomic_write

Entry = Mapping[str, str | int | float]


@dataclass(frozen=True)
class Column:
    """A column: its heading in Markdown and how a value is printed there."""

    heading: str
    printed: Callable[[float], str]


def _whole(number: float) -> str:
    return f"{number:,}"


def _scientific(number: float) -> str:
    mantissa, exponent = f"{number:.3e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


# The model's name comes first and is the one text.
COLUMNS = {
    "layers": Column("Layers", _whole),
    "hidden_size": Column("Hidden size", _whole),
    "attention_heads": Column("Attention heads", _whole),
    "vocabulary": Column("Vocabulary", _whole),
    "batch_size": Column("Global batch size (sequences)", _whole),
    "learning_rate": Column("Learning rate", _scientific),
    "training_tokens": Column("Training tokens", short_number),
}


def read_entries(text: str) -> list[Entry]:
    """Parse and check the entries of the table.

    Parameters
    ----------
    text : str
        A JSON list, or the path of a file that holds one. Each entry is an object with ``model``,
        its name as printed, and the keys of :data:`COLUMNS`.

    Returns
    -------
    list of dict

    Raises
    ------
    InputError
        If it is no such list, or an entry lacks a key, has an unknown one or a value that is no
        positive number.
    """
    source = "the entries of Table 1"
    if not text.lstrip().startswith("["):
        source = text
        try:
            text = Path(source).read_text(encoding="utf-8")
        except OSError as error:
            reason = error.strerror
            raise InputError(f"{source}: {reason}; give a JSON list or a file of one") from error
    try:
        entries = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{source}: no valid JSON, {error}") from error
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{source}: a JSON list of at least one model is needed")
    for entry in entries:
        _check(entry, source)
    return entries


def write_table(entries: Sequence[Entry], csv_file: Path, markdown: Path) -> None:
    """Write the table as CSV, numbers as they are, and as Markdown, numbers for people.

    Parameters
    ----------
    entries : sequence of dict
        From :func:`read_entries`, one row each, in their order.
    csv_file, markdown : Path
        Files to write.
    """
    with atomic_write(csv_file) as partial, partial.open("w", encoding="utf-8") as file:
        rows = csv.DictWriter(file, ["model", *COLUMNS], lineterminator="\n")
        rows.writeheader()
        rows.writerows(entries)
    lines = [["Model", *(column.heading for column in COLUMNS.values())]]
    lines.append([":--"] + ["--:"] * len(COLUMNS))
    for entry in entries:
        name = str(entry["model"]).replace("|", r"\|")
        lines.append([name, *(column.printed(entry[key]) for key, column in COLUMNS.items())])
    with atomic_write(markdown) as partial:
        text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
        partial.write_text(text, encoding="utf-8")


def _check(entry: object, source: str) -> None:
    if not isinstance(entry, dict) or not isinstance(entry.get("model"), str):
        raise InputError(f"{source}: every entry is an object that names its model, not {entry!r}")
    where = f"{source}, {entry['model']}"
    if unknown := set(entry) - {"model", *COLUMNS}:
        raise InputError(
            f"{where}: {', '.join(sorted(unknown))} is no column; known are {', '.join(COLUMNS)}"
        )
    for key in COLUMNS:
        value = entry.get(key)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            raise InputError(
                f"{where}: {key} is {value!r}, but a positive number belongs there; "
                "correct the model's entry"
            )
