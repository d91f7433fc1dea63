"""Whether a table may be without values."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from shape_of_learning.errors import InputError


def require_some_value(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    """Refuse the measurements of a checkpoint that say nothing though there was something to measure.

    Parameters
    ----------
    path : Path
        The table, for the message.
    rows : iterable of mapping of str to str
        Its cells by column, among them ``n``, ``n_unique`` and ``value``.

    Raises
    ------
    InputError
        If the table has no row, or all values are empty though most vectors of a batch are distinct. Where
        hidden states hold NaN or infinity, ``n_unique`` is 1 and nothing can be said; nor may it be where few
        vectors are distinct, fewer than a measure has neighbours.
    """
    measured = list(rows)
    distinct = any(2 * int(row["n_unique"]) > int(row["n"]) for row in measured)
    if any(row["value"] for row in measured) or (measured and not distinct):
        return
    held = "no value, though its vectors are distinct" if measured else "no row"
    raise InputError(
        f"{path} holds {held}; delete it and run again, and if it stays so take the measure out of "
        "`measurement.estimators`"
    )
