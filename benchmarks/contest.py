"""Contenders measured side by side: a process for each run, in turns, medians.

Every run of a contender is a process of its own, so that its peak of memory is its own and nobody is warmed
up by another; contenders take turns, so that a change of the machine's speed meets all of them.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# The targets are for two cores, so all that can take threads is given two, also where there are more.
CORES = 2
REPEATS = 5
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
PROC_STAT = Path("/proc/stat")


@dataclass(frozen=True)
class Contender:
    """One way to do a thing.

    Attributes
    ----------
    name : str
        As the table calls it.
    function : str
        ``module:function``. Called with the `arguments` it prepares everything, and returns what is timed: a
        function without arguments that returns a dictionary of values.
    arguments : mapping
        JSON values and paths.
    size : str
        On what; rows of one size are compared.
    command : sequence of str
        Instead of a function: a program, which is timed from start to end.
    threads : int
        For matrix products and the like.
    repeats : int
        Runs, of which the median counts.
    needs : str
        Package without which the contender is left out, with a note.
    environment : str
        Folder within the environment that runs this, where the package has an environment of its own.
    on_gpu : bool
        Whether it sees the GPU, if there is one. What is about the CPU must not.
    """

    name: str
    function: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    size: str = ""
    command: Sequence[str] = ()
    threads: int = CORES
    repeats: int = REPEATS
    needs: str = ""
    environment: str = ""
    on_gpu: bool = False

    @property
    def python(self) -> Path:
        """The interpreter that runs it."""
        own = Path(sys.prefix) / self.environment / "bin" / "python"
        return own if self.environment else Path(sys.executable)

    @property
    def is_installed(self) -> bool:
        """Whether what it needs is there."""
        if self.environment:
            return self.python.exists()
        return not self.needs or find_spec(self.needs) is not None


@dataclass(frozen=True)
class Measured:
    """One row of a table.

    Attributes
    ----------
    size, contender : str
        What was done on what.
    seconds, least_seconds : float
        Median and least wall time of the repeats, start of the interpreter and preparations left out.
    cpu_seconds : float
        Median of processor time, of the whole process and its children.
    peak_gb : float
        Greatest resident memory of the process, in 10^9 bytes; where it has children, of the largest one.
    threads, repeats : int
    load : float
        Cores that others used on average during the runs: beyond some 0.1 the times are not to be trusted.
    values : dict of str to float
        What it computed, or counted.
    note : str
        What a reader must know.
    """

    size: str
    contender: str
    seconds: float | None = None
    least_seconds: float | None = None
    cpu_seconds: float | None = None
    peak_gb: float | None = None
    threads: int | None = None
    repeats: int = 0
    load: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Run:
    """One process: wall and processor time, memory, and what it said."""

    seconds: float
    cpu_seconds: float
    peak_gb: float
    load: float | None
    said: str = ""
    values: Mapping[str, float] = field(default_factory=dict)


def contest(contenders: Iterable[Contender], repeats: int | None = None) -> list[Measured]:
    """Measure all contenders in turns; `repeats` is a bound for all of them."""
    present, lacking = [], []
    for contender in contenders:
        (present if contender.is_installed else lacking).append(contender)
    done: list[list[Run]] = [[] for _ in present]
    turns = max((contender.repeats for contender in present), default=0)
    for turn in range(turns if repeats is None else min(turns, repeats)):
        for contender, runs in zip(present, done, strict=True):
            if turn < contender.repeats:
                runs.append(run_contender(contender))
                said = f"{contender.size:>16}  {contender.name:32}{runs[-1].seconds:12.4f} s"
                print(f"{said}{runs[-1].peak_gb:9.3f} GB", file=sys.stderr, flush=True)
    measured = [
        summary(c.size, c.name, runs, c.threads) for c, runs in zip(present, done, strict=True)
    ]
    return measured + [
        Measured(c.size, c.name, note=f"not measured: {c.needs} is not installed") for c in lacking
    ]


def run_contender(contender: Contender) -> Run:
    """Run a contender once."""
    if contender.command:
        command = list(contender.command)
        return run_command(command, threads=contender.threads, on_gpu=contender.on_gpu)
    arguments = json.dumps(dict(contender.arguments), default=str)
    module = ["-m", "benchmarks.in_process", contender.function, arguments]
    command = [str(contender.python), *module]
    run = run_command(command, threads=contender.threads, on_gpu=contender.on_gpu)
    answer = json.loads(run.said.splitlines()[-1])
    return Run(answer["seconds"], run.cpu_seconds, run.peak_gb, run.load, values=answer["values"])


def run_command(
    command: list[str],
    *,
    threads: int = CORES,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    on_gpu: bool = False,
) -> Run:
    """Run a program and see what it takes; its standard output is kept, its errors are shown.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    variables = {
        **os.environ,
        **dict.fromkeys(THREAD_VARIABLES, str(threads)),
        **(environment or {}),
    }
    if not on_gpu:
        variables["CUDA_VISIBLE_DEVICES"] = ""
    variables["PYTHONPATH"] = f"{ROOT / 'workflow'}{os.pathsep}{ROOT}"
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"
    busy = _busy_seconds()
    start = time.perf_counter()
    process = subprocess.Popen(
        command, env=variables, cwd=folder, stdout=subprocess.PIPE, text=True
    )
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    cpu = usage.ru_utime + usage.ru_stime
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise RuntimeError(f"{' '.join(command)} failed:\n{said[-2000:]}")
    others = None if busy is None else max(0.0, (_busy_seconds() - busy - cpu) / seconds)
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return Run(seconds, cpu, usage.ru_maxrss * unit / 1e9, others, said)


def summary(size: str, name: str, runs: list[Run], threads: int) -> Measured:
    """Medians of repeated runs; also of their values, some of which are rates."""
    values = {key: [run.values[key] for run in runs] for key in runs[0].values}
    loads = [run.load for run in runs if run.load is not None]
    return Measured(
        size=size,
        contender=name,
        seconds=statistics.median(run.seconds for run in runs),
        least_seconds=min(run.seconds for run in runs),
        cpu_seconds=statistics.median(run.cpu_seconds for run in runs),
        peak_gb=max(run.peak_gb for run in runs),
        threads=threads,
        repeats=len(runs),
        load=statistics.median(loads) if loads else None,
        values={key: statistics.median(each) for key, each in values.items()},
    )


def _busy_seconds() -> float | None:
    """Processor time that this machine has spent on anybody since its start; None if it does not say."""
    if not PROC_STAT.exists():
        return None
    # user, nice, system, idle, iowait, irq, softirq, steal
    ticks = [int(number) for number in PROC_STAT.read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
