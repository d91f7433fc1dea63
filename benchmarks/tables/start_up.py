"""Start-up of the jobs that measure: the scripts on a layer of 300 vectors, with next to nothing to do.

Modules are those that are loaded when the script ends. One thread, as of a job.
"""

from dataclasses import replace
from pathlib import Path

from benchmarks.contest import Contender, Measured, contest, run_command, run_contender
from benchmarks.ours import NEIGHBOURS
from benchmarks.scripts import SCRIPTS, script
from benchmarks.targets import Target
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.script_arguments.protocol import SamplingProtocol

TITLE = "Start-up of a job"
ROWS, WIDTH = 300, 16
SIZE = f"{ROWS} x {WIDTH}"
# Job: the script that it runs.
JOBS = {
    "find_neighbours": "find_neighbours",
    "measure, anisotropy": "measure",
    "measure, two_nn": "measure",
}
OWN = tuple(JOBS)
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
    run_contender(Contender("layer", "benchmarks.dumping:writing", layer))
    neighbours = folder / "neighbours" / "layer_0.h5"
    neighbours.parent.mkdir()
    usual = ["--selection", Selection().to_json(), "--batch-vectors", ROWS]
    # The layer is written with a window for each row.
    usual += ["--protocol", SamplingProtocol(ROWS, 0, 0).to_json()]
    search = ["--embeddings", folder / "layer_0.h5", "--model", "m"]
    arguments = {
        "find_neighbours": [*search, "--neighbours", NEIGHBOURS, "--output", neighbours],
        "measure, anisotropy": measuring("anisotropy", folder, folder / "anisotropy.csv"),
        "measure, two_nn": measuring("two_nn", neighbours.parent, folder / "two_nn.csv"),
    }
    full = {name: list(map(str, [*usual, *own])) for name, own in arguments.items()}
    bare = Contender(
        "python itself", command=[script("", [])[0], "-c", "pass"], size=SIZE, threads=1
    )
    jobs = [
        Contender(name, command=script(JOBS[name], full[name]), size=SIZE, threads=1)
        for name in JOBS
    ]
    measured = contest([bare, *jobs], repeats)
    return [
        replace(row, values=modules(row.contender, full[row.contender]))
        if row.contender in JOBS
        else row
        for row in measured
    ]


def measuring(name: str, folder: Path, output: Path) -> list[object]:
    """Arguments of the script for one layer and one measure."""
    measure = MEASURES[name].chosen(name, {}).to_json()
    left_out = output.with_stem(f"left_out_{name}")
    files = ["--output", output, "--left-out", left_out]
    return ["--folder", folder, "--layers", 0, "--measure", measure, *files]


def modules(name: str, arguments: list[str]) -> dict[str, float]:
    """Count the modules that a script loads, and those of them that it must not."""
    command = [script("", [])[0], "-c", COUNTING, str(SCRIPTS / f"{JOBS[name]}.py"), *arguments]
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
