"""Tables of results: ``benchmarks/results/{table}.csv``, written and read."""

import json
from collections.abc import Sequence
from dataclasses import astuple, fields, replace
from pathlib import Path

from benchmarks.contest import Measured
from shape_of_learning.storage.csv_table import read_rows, write_table

RESULTS = Path(__file__).parent / "results"
COLUMNS = tuple(field.name for field in fields(Measured))


def write_results(path: Path, measured: Sequence[Measured]) -> None:
    """Write one table."""
    rows = [replace(row, values=json.dumps(dict(row.values))) for row in measured]
    write_table(path, COLUMNS, map(astuple, rows), digest=False)


class Results:
    """The rows of a table by size and contender."""

    def __init__(self, measured: Sequence[Measured]):
        self.rows = list(measured)
        self._by_name = {(row.size, row.contender): row for row in measured}

    @classmethod
    def read(cls, path: Path) -> "Results":
        """Read what :func:`write_results` wrote."""
        rows = read_rows(path, COLUMNS, digest=False)
        return cls([_row(dict(zip(COLUMNS, cells, strict=True))) for cells in rows])

    def __getitem__(self, key: tuple[str, str]) -> Measured:
        """The row of a size and a contender.

        Raises
        ------
        KeyError
            If it has not been measured.
        """
        row = self._by_name[key]
        if not row.repeats:
            raise KeyError(key)
        return row

    def sizes(self) -> list[str]:
        """Each size once."""
        return list(dict.fromkeys(row.size for row in self.rows))

    def faster(self, size: str, ours: str, other: str) -> float:
        """How many times as long the other takes."""
        return self[size, other].seconds / self[size, ours].seconds


def _row(cells: dict[str, str]) -> Measured:
    numbers = {
        name: float(cells[name]) if cells[name] else None
        for name in ("seconds", "least_seconds", "cpu_seconds", "peak_gb", "load")
    }
    return Measured(
        size=cells["size"],
        contender=cells["contender"],
        **numbers,
        threads=int(cells["threads"]) if cells["threads"] else None,
        repeats=int(cells["repeats"]),
        values=json.loads(cells["values"]),
        note=cells["note"],
    )
