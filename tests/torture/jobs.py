"""One job of each rule, started as its rule does and ended at the worst moments."""

import json
import multiprocessing
import os
import re
import runpy
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from checkouts import Checkout
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.selections import Selection

SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"
# Imported once for all jobs, which are forked from the process that has.
SHARED = ("torch", "h5py", "pandas", "seaborn", "matplotlib.backends.backend_pdf")
SHARED += tuple(f"transformers.models.{name}.modeling_{name}" for name in ("bert", "gpt_neox"))
AS_IT_BEGINS = ("open", "os.mkdir", "os.rename")
AS_ALL_IS_WRITTEN = ("os.rename",)


@dataclass(frozen=True)
class Job:
    """A script, its arguments, and the files that it makes."""

    script: str
    arguments: list[str]
    outputs: list[Path]


def one_of_each_script(checkout: Checkout, arguments: list[str]) -> dict[str, Job]:
    """The first job of each script, as Snakemake itself lists them once all are done."""
    table = checkout.snakemake("--detailed-summary", *arguments)
    outputs: dict[str, list[Path]] = {}
    for row in table.splitlines():
        cells = row.split("\t")
        if len(cells) > 6 and "$SCRIPTS/" in cells[5]:
            outputs.setdefault(cells[5], []).append(Path(cells[0]))
    jobs: dict[str, Job] = {}
    for command, made in outputs.items():
        _, script, *rest = shlex.split(command[command.index("python ") :])
        name = Path(script).name  # after $SCRIPTS, which the shell of a job knows
        jobs.setdefault(Path(name).stem, Job(str(SCRIPTS / name), rest, made))
    return jobs


def without_a_dump(dump: Job) -> Job:
    """The job that measures a checkpoint in memory, of the one that dumps its hidden states."""
    table, loss = "results/in_memory/mom.csv", "results/in_memory.csv"
    tensors = "results/in_memory.tensors.csv"
    measurement = {
        "measures": [MEASURES["mom"].chosen("mom", {}).to_json()],
        "selection": Selection().to_json(),
        "batch_vectors": 600,
        "neighbours": 128,
    }
    arguments = dump.arguments.copy()
    for name, path in (("--output", table), ("--loss", loss), ("--tensors", tensors)):
        arguments[arguments.index(name) + 1] = path
    left_out = "results/in_memory/left_out/mom.csv"
    script = str(Path(dump.script).with_name("measure_checkpoint.py"))
    more = ["--measurement", json.dumps(measurement), "--left-out", left_out]
    return Job(
        script, [*more, *arguments], [Path(table), Path(left_out), Path(loss), Path(tensors)]
    )


def start(job: Job, folder: Path, *, waits_at: tuple[str, ...] = ()):
    """Start a job in `folder`.

    With `waits_at` it waits for its end at the first of these events that has to do with an unfinished file:
    Python's own audit events, before what they are named for happens.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(SHARED)
    process = context.Process(target=_run, args=(job, folder, waits_at))
    process.start()
    return process


def wait_until_it_waits(process, folder: Path, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not _mark(folder, process.pid).exists():
        assert process.is_alive(), f"it has ended with {process.exitcode}"
        assert time.monotonic() < deadline, "it never writes to an unfinished file"
        time.sleep(0.01)


def _mark(folder: Path, process: int) -> Path:
    return folder / f"waits-{process}"


def _run(job: Job, folder: Path, waits_at: tuple[str, ...]) -> None:
    os.chdir(folder)
    os.setsid()
    # What is started from here, as the corpus is cleaned, finds the library as in a job.
    sys.argv = [job.script, *job.arguments]
    unfinished = re.compile(r"(^|/)\.[^/]*\.partial(/|$)")

    def wait(event: str, arguments: tuple) -> None:
        if event in waits_at and unfinished.search(str(arguments[0])):
            _mark(folder, os.getpid()).touch()
            # Many short ones: a signal that comes as one begins is seen only when that one is over.
            for _ in range(6000):
                time.sleep(0.1)

    sys.addaudithook(wait)
    runpy.run_path(job.script, run_name="__main__")
