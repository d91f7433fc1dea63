"""What the records of a training of one's own say of its steps, as a table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.checkpoint_record import read_record
from shape_of_learning.errors import InputError

COLUMNS = (
    *("model", "revision", "step", "twin_of", "regulariser", "strength", "origin"),
    *("origin_revision", "task", "seed", "held_out_loss", "regularisation", "metric", "score"),
)


def training_row(folder: Path) -> tuple[object, ...]:
    """Read the row of one saved step, of columns :data:`COLUMNS`; what it does not have is None.

    Raises
    ------
    InputError
        If its record is missing or damaged.
    """
    record = read_record(folder)
    if record is None:
        raise InputError(
            f"{folder} is gone, or its checkpoint.json is damaged; delete the folder above it and run again"
        )
    recipe, task, origin = (_part(record, key) for key in ("recipe", "task", "origin"))
    row = {
        **record,
        **{key: recipe.get(key) for key in ("twin_of", "regulariser", "strength", "seed")},
        "origin": origin.get("model"),
        "origin_revision": origin.get("revision"),
        "task": task.get("name"),
        "metric": task.get("metric"),
        "held_out_loss": record.get("loss"),
    }
    return tuple(row.get(column) for column in COLUMNS)


def _part(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return record.get(key) or {}
