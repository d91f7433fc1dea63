"""Write docs/performance.md from the tables of `make bench`: `make docs/performance.md`."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from benchmarks.contest import CORES, Measured
from benchmarks.machine import machines
from benchmarks.results import RESULTS, Results
from benchmarks.table_list import TABLES
from benchmarks.targets import Target

# Cores that others used meanwhile, from which on a time is not what the machine can do.
BUSY = 0.1
PAGE = """\
# Performance

Measured by `make bench`, which installs the peers into an environment of its own, and written by it from
`benchmarks/results/*.csv`; `make bench TABLE="estimators neighbours"` measures some tables anew. Nothing on
this page is typed by hand, and none of it is a timed test.

Every run is a process of its own and contenders take turns; what counts is the median, without the start
of the interpreter and without imports unless a row is about a whole program; `CPU s` is the whole process's.
All get {cores} cores, or one where the text says so. GB are 10^9 bytes of resident memory. `others` is the
number of cores that anything else on the machine used meanwhile, by the system's own count; rows with more
than {busy} are marked as busy and worth measuring again. A commit with a + had changes.

A table that is no longer true, since what it measures has changed, is taken away until it is measured again.
Of these there are: {awaited}.

{machines}

## Targets

{targets}

{sections}"""
SECTION = """\
## {title}

{text}

{rows}
{agreement}
![{title}](../benchmarks/results/{name}.png)
"""


def number(value: float | None, unit: str = "") -> str:
    """Three digits, or more before the point."""
    if value is None:
        return ""
    if value == 0:
        return f"0{unit}"
    digits = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{digits}{unit}"


def markdown(header: list[str], rows: list[list[str]], numeric: int) -> str:
    """A table whose columns from `numeric` on are aligned to the right."""
    rule = ["---" if column < numeric else "---:" for column in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, rule, *rows])


def target_row(target: Target, results: Results) -> list[str]:
    """One line of the summary."""
    measured = target.measured(results)
    if target.bound is None:
        bound, verdict = "", ""
    else:
        bound = (
            f"{'at least' if target.at_least else 'at most'} {number(target.bound, target.unit)}"
        )
        verdict = "" if measured is None else "yes" if target.met(measured) else "**no**"
    said = "not measured" if measured is None else number(measured, target.unit)
    return [target.what, bound, said, verdict]


def result_row(row: Measured) -> list[str]:
    """One line of a table."""
    counted = "; ".join(f"{key} {number(value)}" for key, value in row.values.items())
    return [
        row.size,
        row.contender,
        *map(number, (row.seconds, row.least_seconds, row.cpu_seconds, row.peak_gb)),
        str(row.repeats or ""),
        "" if row.load is None else f"{row.load:.2f}" + (" **busy**" if row.load > BUSY else ""),
        "; ".join(filter(None, [counted, row.note])),
    ]


def agreement(table: ModuleType, results: Results) -> str:
    """Sentences on values that two contenders must find alike."""
    found = [(each, each.difference(results)) for each in table.AGREEMENTS]
    lines = [
        f"- {each.value}: {each.one} and {each.other} differ by {difference:.1e}; "
        f"{each.tolerance:.0e} is allowed{f' ({each.reason})' if each.reason else ''}"
        for each, difference in found
        if difference is not None
    ]
    return (
        "\nLargest relative differences, from the same runs:\n\n" + "\n".join(lines) + "\n"
        if lines
        else ""
    )


def section(name: str, table: ModuleType, results: Results) -> str:
    """One table with its text and plot."""
    header = ["on", "contender", "s", "least s", "CPU s", "peak GB", "runs", "others", "values"]
    return SECTION.format(
        title=table.TITLE,
        text=table.__doc__.strip(),
        rows=markdown(header, list(map(result_row, results.rows)), 2),
        agreement=agreement(table, results),
        name=name,
    )


def page(folder: Path) -> str:
    """The whole page."""
    sections, targets, awaited = [], [], []
    for name in TABLES:
        path = folder / f"{name}.csv"
        table = import_module(f"benchmarks.tables.{name}")
        if not path.exists():
            awaited.append(table.TITLE)
            continue
        results = Results.read(path)
        sections.append(section(name, table, results))
        targets += [[table.TITLE, *target_row(target, results)] for target in table.TARGETS]
    return PAGE.format(
        cores=CORES,
        busy=BUSY,
        awaited=", ".join(awaited) or "none",
        machines=machines(folder / "machine.csv", TABLES),
        targets=markdown(["", "what", "target", "measured", "met"], targets, 9),
        sections="\n".join(sections),
    )


if __name__ == "__main__":
    sys.stdout.write(page(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS))
