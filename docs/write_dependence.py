"""Write docs/dependence.md from the table `dependence` of `make bench`: `make docs/dependence.md`."""

import sys
from pathlib import Path

from benchmarks.machine import machines
from benchmarks.results import RESULTS, Results
from benchmarks.table_list import STATISTICS
from benchmarks.tables import dependence
from write_performance import markdown

PAGE = """\
# {title}

{text}

Measured by `make bench TABLE=dependence`, and written by it from `benchmarks/results/dependence.csv`.

{machines}

{rows}

![{title}](../benchmarks/results/dependence.png)
"""


def cell(results: Results, size: str, name: str) -> str:
    """A value and, where there are several draws, its standard deviation."""
    try:
        values = results[size, name].values
    except KeyError:
        return ""
    return f"{values['dimension']:.1f}" + (f" ± {values['sd']:.1f}" if "sd" in values else "")


def page(folder: Path) -> str:
    """The whole page: a line per cloud, a column per estimator, five and then Gride."""
    results, tables = Results.read(folder / "dependence.csv"), []
    for names in (dependence.ESTIMATORS, dependence.GRIDE):
        rows = [[size, *(cell(results, size, name) for name in names)] for size in results.sizes()]
        tables.append(markdown(["of", *names], rows, 1))
    notes = [row.note for row in results.rows if row.note]
    return PAGE.format(
        title=dependence.TITLE,
        text=dependence.__doc__.strip(),
        machines=machines(folder / "machine.csv", STATISTICS),
        rows="\n\n".join([*tables, *notes]),
    )


if __name__ == "__main__":
    sys.stdout.write(page(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS))
