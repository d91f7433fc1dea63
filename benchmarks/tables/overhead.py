"""What Snakemake adds: the demo, a dry run of the whole paper, and both when everything is up to date.

`outside jobs` is the share of the two cores' time, while the demo runs, that no job had: planning,
scheduling, and cores that waited for the jobs that others depend on. `CPU s` and `peak GB` are those of
Snakemake's own process. The paper is planned offline from lock files as a first planning leaves them; it is
up to date when all its files are there, empty, and Snakemake has recorded that it made them. The shares are
those of one more planning under Python's profiler: almost all of it is Snakemake's own, a millisecond or
more for each job.
"""

import json
from dataclasses import replace
from pathlib import Path

from benchmarks.contest import CORES, REPEATS, Measured, Run, summary
from benchmarks.planning_profile import shares_of_planning
from benchmarks.targets import Target
from benchmarks.workflow_runs import (
    checked_out,
    core_seconds,
    lock_everything,
    pretend_done,
    share_without_jobs,
    snakemake,
)

TITLE = "Workflow overhead"
DEMO, DEMO_AGAIN = "demo", "demo, up to date"
PLAN, PLAN_AGAIN = "snakemake -n of the paper", "snakemake -n of the paper, up to date"
OUTSIDE = "outside jobs, %"
OWN = (DEMO, DEMO_AGAIN, PLAN, PLAN_AGAIN)
DEMO_OPTIONS = ("--configfile", "config/demo.yaml", "--cores", str(CORES))


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """Plan and run."""
    times = min(repeats or REPEATS, REPEATS)
    rows = []
    if tiny:
        clone = checked_out(folder / "demo")
        planned = [own_process(snakemake(clone, "-n", *DEMO_OPTIONS)) for _ in range(times)]
        shares = shares_of_planning(clone, "-n", *DEMO_OPTIONS)
        planned = [replace(run, values=shares) for run in planned]
        return [summary("", "snakemake -n of the demo", planned, 1)]
    clones = [checked_out(folder / f"demo_{time}") for time in range(times)]
    rows.append(summary("", DEMO, [demo_run(clone) for clone in clones], CORES))
    clone = clones[0]
    again = [own_process(snakemake(clone, "-n", *DEMO_OPTIONS)) for _ in range(times)]
    rows.append(summary("", DEMO_AGAIN, again, 1))
    clone = checked_out(folder / "paper")
    revisions = lock_everything(clone)
    planned = [own_process(snakemake(clone, "-n", "--quiet", "rules")) for _ in range(times)]
    total = next(line for line in planned[0].said.splitlines() if line.startswith("total"))
    values = {
        "jobs": int(total.split()[1]),
        "checkpoints": revisions,
        **shares_of_planning(clone, "-n", "--quiet", "rules"),
    }
    rows.append(summary("", PLAN, [replace(run, values=values) for run in planned], 1))
    pretend_done(clone)
    again = [own_process(snakemake(clone, "-n", "--quiet", "rules")) for _ in range(times)]
    if "Nothing to be done" not in again[0].said:
        raise RuntimeError(f"the paper is not up to date:\n{again[0].said[-2000:]}")
    rows.append(summary("", PLAN_AGAIN, again, 1))
    return rows


def demo_run(clone: Path) -> Run:
    """Make the demo from nothing; its values say how much of the time no job had."""
    ran = own_process(snakemake(clone, *DEMO_OPTIONS, "--benchmark-extended", "--quiet", "rules"))
    jobs, busy = core_seconds(clone)
    return replace(ran, values={"jobs": jobs, OUTSIDE: share_without_jobs(ran.seconds, busy)})


def own_process(run: Run) -> Run:
    """What Snakemake's own process took, as it says itself."""
    return replace(run, **json.loads(run.said.splitlines()[-1]))


TARGETS = [
    Target("demo, cores without a job", 25, lambda r: r["", DEMO].values[OUTSIDE], " %"),
    *(
        target
        for name in (PLAN, PLAN_AGAIN)
        for target in (
            Target(f"{name}, time", 30, lambda r, name=name: r["", name].seconds, " s"),
            Target(f"{name}, memory", 600, lambda r, name=name: 1000 * r["", name].peak_gb, " MB"),
        )
    ),
]
AGREEMENTS = []
