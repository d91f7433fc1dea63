"""Start-up of the jobs that measure: the scripts on a layer of 300 vectors, with next to nothing to do.

Modules are those that are loaded when the script ends. One thread, as of a job.
"""

from dataclasses import replace
from pathlib import Path

from benchmarks.contest import Contender, Measured, contest, run_command, run_contender
from benchmarks.scripts import SCRIPTS, script
from benchmarks.targets import Target

TITLE = "Start-up of a job"
ROWS, WIDTH = 300, 16
SIZE = f"{ROWS} x {WIDTH}"
JOBS = ("measure_isotropy", "find_neighbours", "measure_intrinsic_dimension")
OWN = JOBS
SHOWN = "cpu_seconds"
HEAVY = ("torch", "transformers")
MODULES = "modules"
# Runs a script as `python script` does, then says what is loaded.
COUNTING = """\
import runpy, sys
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print(*sys.modules)
"""


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """Run each script on almost nothing, and once more to see its modules."""
    layer = {"folder": folder, "tokens": ROWS, "width": WIDTH}
    run_contender(Contender("layer", "benchmarks.streaming:writing", layer))
    neighbours = str(folder / "neighbours.h5")
    reads = ["--embeddings", str(folder), "--layer", "0", "--batch-vectors", str(ROWS)]
    arguments = {
        "measure_isotropy": [*reads, "--estimator", "anisotropy"],
        "find_neighbours": [
            *reads, "--model", "m", "--revision", "r", "--neighbours", "100", "--seed", "0",
        ],
        "measure_intrinsic_dimension": ["--neighbours", neighbours, "--estimator", "two_nn"],
    }  # fmt: skip
    output = {name: str(folder / f"{name}.csv") for name in JOBS} | {"find_neighbours": neighbours}
    full = {name: [*arguments[name], "--output", output[name]] for name in JOBS}
    bare = Contender(
        "python itself", command=[script("", [])[0], "-c", "pass"], size=SIZE, threads=1
    )
    jobs = [
        Contender(name, command=script(name, full[name]), size=SIZE, threads=1) for name in JOBS
    ]
    measured = contest([bare, *jobs], repeats)
    return [
        replace(row, values=modules(row.contender, full[row.contender]))
        if row.contender in JOBS
        else row
        for row in measured
    ]


def modules(name: str, arguments: list[str]) -> dict[str, float]:
    """Count the modules that a script loads, and those of them that it must not."""
    command = [script("", [])[0], "-c", COUNTING, str(SCRIPTS / f"{name}.py"), *arguments]
    loaded = run_command(command).said.split()
    return {MODULES: len(loaded), **{heavy: float(heavy in loaded) for heavy in HEAVY}}


TARGETS = [
    *(
        Target(f"{name}, processor time", 0.5, lambda r, name=name: r[SIZE, name].cpu_seconds, " s")
        for name in JOBS
    ),
    Target(
        "jobs that import torch or transformers",
        0,
        lambda r: sum(r[SIZE, name].values[heavy] for name in JOBS for heavy in HEAVY),
        "",
    ),
]
AGREEMENTS = []
