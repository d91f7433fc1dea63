"""Records of a published data set, as examples."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.tasks.examples import Example

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Fields:
    """In which columns of a record the texts and the label are."""

    text: str
    text_2: str | None
    label: str


def examples_of(
    records: Iterable[Record], fields: Fields, split: str, where: str
) -> Iterator[Example]:
    """Yield the examples of records; the group of each is a digest of its texts, so that equal ones share it.

    Raises
    ------
    InputError
        If a record lacks a column or a text, or its label is no number.
    """
    for number, record in enumerate(records, start=1):
        for key, column in (
            ("text", fields.text),
            ("text_2", fields.text_2),
            ("label", fields.label),
        ):
            if column is not None and column not in record:
                near = get_close_matches(column, record, n=1)
                hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(record)}"
                raise InputError(
                    f"{where}: there is no column `{column}`, which its entry gives as `{key}`; {hint}"
                )
        texts = [_line(record[fields.text])]
        if fields.text_2 is not None:
            texts.append(_line(record[fields.text_2]))
        if not all(texts):
            raise InputError(f"{where}: record {number} has an empty text; correct `text`")
        label = _number(record[fields.label])
        if label is None:
            raise InputError(
                f"{where}: the label of record {number} is {str(record[fields.label])[:60]!r}, which is no "
                "number; correct `label`"
            )
        group = hashlib.sha256("\x1f".join(texts).lower().encode()).hexdigest()[:16]
        yield Example(split, label, group, *texts)


def _line(text: Any) -> str:
    """Return a text on one line."""
    return " ".join(str(text).split()) if isinstance(text, str) else ""


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
