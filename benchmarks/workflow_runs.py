"""The workflow as a contender: planned, run, and looked at again, in a copy of what a clone has."""

import csv
import hashlib
import shutil
import sys
from pathlib import Path

import yaml

from benchmarks.contest import CORES, ROOT, Run, run_command
from shape_of_learning.checkpoints.lock import Lock, LockedRevision, write_lock
from shape_of_learning.checkpoints.weight_listing import WeightFile, WeightListing
from shape_of_learning.plan.model_list import Model, read_entries, read_models

CLONED = ("Snakefile", "workflow", "config", "envs", "profiles")
# Gated models are planned, too; nothing is asked of the Hub.
VARIABLES = {"HF_TOKEN": "planning-needs-none", "HF_HUB_OFFLINE": "1"}
MAKE_FOLDERS = ("dump_embeddings", "fetch_checkpoint")
# Each wave of jobs costs a look at all others, so there should be few.
TOUCHED_AT_ONCE = 100_000


def checked_out(folder: Path) -> Path:
    """Copy what a clone would have into a new folder."""
    folder.mkdir()
    for name in CLONED:
        source = ROOT / name
        if source.is_dir() and not source.is_symlink():
            ignored = shutil.ignore_patterns("__pycache__", "locks")
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name, follow_symlinks=False)
    return folder


def snakemake(folder: Path, *arguments: str, profile: Path | None = None) -> Run:
    """Run Snakemake, under the profiler if that writes a `profile`; all that it says is kept."""
    profiler = ["-m", "cProfile", "-o", str(profile)] if profile else []
    command = [sys.executable, *profiler, "-m", "benchmarks.snakemake_process", *arguments]
    # One stream, so that what is said of the process comes last.
    joined = ["sh", "-c", 'exec "$@" 2>&1', "sh", *command]
    return run_command(joined, folder=folder, environment=VARIABLES, threads=1)


def lock_everything(folder: Path) -> int:
    """Write locks of all models, as a first planning with a Hub leaves them; return their revisions."""
    settings = yaml.safe_load((folder / "config/config.yaml").read_text())
    models = read_models(read_entries(folder / "config/models"), settings["models"])
    revisions = 0
    for model in models.values():
        lock = _lock(model)
        write_lock(folder / f"config/locks/{model.name}.yaml", lock)
        revisions += len(lock.revisions)
    return revisions


def _lock(model: Model) -> Lock:
    revisions = {}
    for each in model.checkpoints:
        # Weights that differ between any two, lest they are taken for repeated ones.
        digest = hashlib.sha256(f"{each.repository}@{each.revision}".encode()).hexdigest()
        listed = WeightListing(
            digest[:40], {"model.safetensors": WeightFile(1, f"sha256:{digest}")}
        )
        revisions[each.name] = LockedRevision(
            each.repository, each.revision, each.subfolder, listed
        )
    tokenizer = LockedRevision(model.tokenizer, "main", listed=WeightListing("0" * 40))
    return Lock(revisions=revisions, tokenizer=tokenizer if model.tokenizer else None)


def pretend_done(folder: Path) -> None:
    """Make an empty file of each output, and have Snakemake record that it made them."""
    listing = snakemake(folder, "--summary").said
    for line in listing.splitlines():
        path, *rest = line.split("\t")
        if len(rest) < 2 or rest[1] == "rule":
            continue
        output = folder / path
        if rest[1] in MAKE_FOLDERS and output.suffix != ".csv":
            output.mkdir(parents=True, exist_ok=True)
        else:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.touch()
    snakemake(folder, "--touch", "--cores", str(TOUCHED_AT_ONCE), "--quiet", "all")


def core_seconds(folder: Path) -> tuple[int, float]:
    """Count the jobs that a run with `--benchmark-extended` had; add up their seconds times their cores."""
    total, jobs = 0.0, 0
    for table in (folder / "results/benchmarks").rglob("*.tsv"):
        with table.open(newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                total += float(row["s"]) * int(row["threads"])
                jobs += 1
    return jobs, total


def share_without_jobs(wall: float, busy: float) -> float:
    """Share of all cores' time in which they had no job, in percent."""
    return 100 * (1 - busy / (CORES * wall))
