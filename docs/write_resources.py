"""Write docs/resources.md, by the functions that the rules ask: `make docs/resources.md`."""

import sys
from pathlib import Path
from types import SimpleNamespace

import yaml
from snakemake.resources import GroupResources

from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.plan import resources as needs
from shape_of_learning.plan.models import Model, read_entries, read_models

REPOSITORY = Path(__file__).parents[1]
MB_PER_GB = 1000
PAGE = """\
# What each model needs

What the rules ask of a scheduler on the first try, per checkpoint, for the sample of `config/config.yaml`
({windows} windows of {characters} characters). `make docs/resources.md` writes this page with the functions
of `workflow/shape_of_learning/plan/resources.py`, from which the rules take `mem_mb`, `runtime` and `gpu`;
a test compares the two. Sizes are in GB of 10^9 bytes.

| column | meaning |
|---|---|
| download | weights on the disk; with `keep_checkpoints: false` only until they have been run |
| dump | hidden states of all layers on the disk; with `embeddings.keep: false` only until measured |
| GPU | memory of the forward pass, 16 windows at a time; `forward.batch_size: auto` uses what else is free |
| GPUs | how many cards of 80 GB are asked for |
| host, minutes | `mem_mb` and `runtime` of the forward pass on a GPU, and without one on {threads} cores |
| measured | `mem_mb` and `runtime` of all measurements of one checkpoint, one group, {cores} jobs at a time |

All of it is a bound on purpose: a vocabulary of {vocabulary:,} where the entry does not say which one it is,
tokens of {per_token} characters, weights of four bytes in a download, and times for an old core
({core:.0f} GFLOP/s), a card without tensor cores ({gpu:.0f} TFLOP/s) and a shared disk ({disk:.0f} MB/s).
ALBERT, which uses one block again and again, takes far less. Each further try asks for as much again.
{measured}
| model | download | dump | GPU | GPUs | host | minutes | no GPU: host | minutes | measured | minutes |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
{rows}
"""
# Largest resident memory of each job alone (`/usr/bin/time`), Linux, CPU, two threads, random weights of the
# shapes, 128 windows of Wikipedia. What is asked for contains the margin and Snakemake's own processes.
MEASURED = """
Measured on two cores with random weights of these shapes, against what is asked for there (GB):

| shape | forward pass | asked | dump | counted | anisotropy | asked | neighbours | asked |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
| Pythia-70M | 1.2 | 2.9 | 0.27 | 0.32 | 0.14 | 1.0 | 0.23 | 1.0 |
| Pythia-410M | 3.8 | 9.4 | 1.9 | 2.3 | 0.19 | 1.0 | 0.38 | 1.0 |
"""


def group(work: needs.Work, kinds: list[str], cores: int) -> tuple[int, int]:
    """Memory (MB) and minutes that Snakemake adds up for all measurements of one checkpoint.

    `kinds` are what each estimator is taken of.
    """
    searches = [
        (
            needs.asked_mb(needs.neighbours_memory_mb(work)),
            needs.asked_minutes_in_group(needs.neighbours_minutes(work), starts=layer == 0),
        )
        for layer in range(work.layers + 1)
    ]
    measures = [
        (
            kind,
            needs.asked_mb(needs.measure_memory_mb(work, kind)),
            needs.asked_minutes_in_group(needs.measure_minutes(work, kind), starts=True),
        )
        for kind in kinds
    ]
    levels = (
        [*searches, *(asked for kind, *asked in measures if kind == "vectors")],
        [asked for kind, *asked in measures if kind == "neighbours"],
    )
    jobs = [
        [
            SimpleNamespace(
                pipe_group=None, resources={"_cores": 1, "mem_mb": memory, "runtime": minutes}
            )
            for memory, minutes in level
        ]
        for level in levels
    ]
    limits = {"_cores": cores, "mem_mb": None, "runtime": None}
    constraints = {name: SimpleNamespace(value=limit) for name, limit in limits.items()}
    asked = GroupResources.basic_layered(jobs, constraints, run_local=False)
    return asked["mem_mb"], asked["runtime"]


def row(model: Model, settings: dict, cores: int) -> str:
    """One model's line of the table."""
    work = needs.Work.of(model, settings)
    threads = settings["forward"]["threads"]
    kinds = [MEASURES[name].of for name in settings["measurement"]["estimators"]]
    memory, minutes = group(work, kinds, cores)
    gigabytes = [
        needs.download_mb(work),
        needs.dump_mb(work),
        needs.gpu_memory_mb(work) * needs.MARGIN,
        needs.asked_mb(needs.forward_memory_mb(work, threads, on_gpu=True)),
        needs.asked_mb(needs.forward_memory_mb(work, threads)),
        memory,
    ]
    download, dump, gpu, host, alone, measured = (f"{value / MB_PER_GB:.1f}" for value in gigabytes)
    on_gpu = needs.asked_minutes(needs.forward_minutes(work, on_gpu=True))
    on_cpu = needs.asked_minutes(needs.forward_minutes(work, threads=threads, on_gpu=False))
    return (
        f"| {model.name} | {download} | {dump} | {gpu} | {needs.gpus(work)} | {host} | {on_gpu} "
        f"| {alone} | {on_cpu} | {measured} | {minutes} |"
    )


def page() -> str:
    """The whole page."""
    settings = yaml.safe_load((REPOSITORY / "config/config.yaml").read_text())
    profile = yaml.safe_load((REPOSITORY / "workflow/profiles/slurm/profile.yaml").read_text())
    entries = read_entries(REPOSITORY / "config/models")
    published = [name for name, (_, entry) in entries.items() if "repository" in entry]
    models = read_models(entries, published).values()
    by_size = sorted(models, key=lambda model: (needs.Work.of(model, settings).weights, model.name))
    return PAGE.format(
        windows=settings["sampling"]["windows"],
        characters=settings["sampling"]["window_characters"],
        threads=settings["forward"]["threads"],
        cores=profile["cores"],
        vocabulary=needs.LARGEST_VOCABULARY,
        per_token=needs.CHARACTERS_PER_TOKEN,
        core=needs.CORE_FLOPS / 1e9,
        gpu=needs.GPU_FLOPS / 1e12,
        disk=needs.BYTES_PER_SECOND / 1e6,
        measured=MEASURED,
        rows="\n".join(row(model, settings, profile["cores"]) for model in by_size),
    )


if __name__ == "__main__":
    sys.stdout.write(page())
