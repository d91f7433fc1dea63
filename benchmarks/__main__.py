"""Measure tables and draw them: ``python -m benchmarks [--tiny] [TABLE ...]``.

Each table is written to ``results/{table}.csv`` as soon as it is measured, with a plot beside it and a line
on the machine in ``machine.csv``. docs/write_performance.py makes a page of what there is. A table that is
not of speed has neither, and a page of its own.
"""

import argparse
import logging
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from benchmarks.machine import record_machine
from benchmarks.results import RESULTS, Results, write_results
from benchmarks.table_list import PAGES, TABLES
from benchmarks.targets import require_agreement
from shape_of_learning.errors import InputError
from shape_of_learning.script_arguments.running import run

logger = logging.getLogger("shape_of_learning")


def main(
    tables: list[str], tiny: bool, repeats: int | None, folder: Path | None, output: Path
) -> None:
    """Measure `tables`, all if none is named."""
    if unknown := set(tables) - {*TABLES, *PAGES}:
        names = ", ".join((*TABLES, *PAGES))
        raise InputError(f"there is no table {min(unknown)}; choose among {names}")
    for name in tables or (*TABLES, *PAGES):
        logger.info("%s", name)
        table = import_module(f"benchmarks.tables.{name}")
        record = record_machine()
        with tempfile.TemporaryDirectory(dir=folder, prefix="benchmark-") as scratch:
            measured = table.measure(Path(scratch), tiny, repeats)
        path = output / f"{name}.csv"
        write_results(path, measured)
        if name in TABLES:
            record.write(output / "machine.csv", name)
        if name in TABLES or hasattr(table, "draw"):
            # In a process of its own: what this one has in memory counts for all that it starts.
            subprocess.run([sys.executable, "-m", "benchmarks.plots", name, str(path)], check=True)
        require_agreement(table.AGREEMENTS, Results(measured))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join((*TABLES, *PAGES)))
    parser.add_argument("--tiny", action="store_true", help="only show that everything runs")
    parser.add_argument("--repeats", type=int, help="at most; the median counts")
    parser.add_argument("--folder", type=Path, help="for temporary files, up to 8 GB")
    parser.add_argument("--output", type=Path, default=RESULTS)
    run(main, parser, console=logging.INFO)
