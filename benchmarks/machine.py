"""What machine a table was measured on, and with which versions."""

import os
import platform
import shutil
import subprocess
from collections.abc import Collection
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.contest import ROOT
from shape_of_learning.storage.csv_table import read_rows, write_table

PACKAGES = (
    "numpy", "scipy", "torch", "transformers", "h5py", "snakemake", "mwparserfromhell",
    "scikit-dimension", "llm-microscope",
)  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """One row of ``machine.csv``.

    Attributes
    ----------
    processor : str
        And the GPUs, if there are any.
    load : float
        Jobs at work in the minute before the table was begun.
    commit : str
        Of this repository; ``+`` if files differ from it.
    """

    table: str
    date: str
    processor: str
    cores: int
    memory_gb: float
    load: float
    system: str
    python: str
    packages: str
    commit: str

    def write(self, path: Path, table: str) -> None:
        """Put the row of `table` into the file at `path`, where it replaces an older one."""
        columns = tuple(field.name for field in fields(self))
        rows = read_rows(path, columns, digest=False) if path.exists() else []
        kept = [row for row in rows if row[0] != table]
        own = [table, *map(str, astuple(self)[1:])]
        write_table(path, columns, sorted([*kept, own]), digest=False)


def machines(path: Path, tables: Collection[str]) -> str:
    """Say in Markdown what machines `tables` were measured on, the same ones together."""
    columns = tuple(field.name for field in fields(Machine))
    cells = read_rows(path, columns, digest=False)
    rows = [dict(zip(columns, row, strict=True)) for row in cells]
    told: dict[str, list[str]] = {}
    for row in (row for row in rows if row["table"] in tables):
        machine = (
            f"{row['processor']}, {row['cores']} cores, {row['memory_gb']} GB, {row['system']}, "
            f"Python {row['python']}, {row['packages']}"
        )
        when = f"{row['table']} ({row['date']}, commit {row['commit']}, load before {row['load']})"
        told.setdefault(machine, []).append(when)
    return "\n".join(f"- {machine}: {', '.join(tables)}" for machine, tables in told.items())


def record_machine() -> Machine:
    """Look at the machine as it is now."""
    return Machine(
        table="",
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        processor=", ".join([_processor(), *_gpus()]),
        cores=os.cpu_count() or 0,
        memory_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        load=round(os.getloadavg()[0], 2),
        system=platform.system(),
        python=platform.python_version(),
        packages=", ".join(filter(None, map(_with_version, PACKAGES))),
        commit=_commit(),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    cpu = dict(line.split(":", 1) for line in lines if ":" in line)
    named = {key.strip(): value.strip() for key, value in cpu.items()}
    # A virtual machine may name no model; family and model say which generation it is.
    generation = f"family {named.get('cpu family')}, model {named.get('model')}"
    return f"{named.get('model name', platform.machine())} ({generation})"


def _gpus() -> list[str]:
    """Name, memory and driver of each GPU."""
    if not shutil.which("nvidia-smi"):
        return []
    asking = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    said = subprocess.run(asking, capture_output=True, text=True, check=False)
    return [] if said.returncode else said.stdout.splitlines()


def _with_version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""


def _commit() -> str:
    def git(*arguments: str) -> str:
        run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
        return run.stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain") else "")
