"""Where the time of planning goes, by Python's profiler within Snakemake's own process.

It slows many small calls down more than few large ones: the shares say what is large, not how many seconds.
"""

import pstats
from pathlib import Path

from benchmarks.contest import ROOT
from benchmarks.workflow_runs import snakemake

# Functions of Snakemake, with all that they call; shell commands and resources are looked up for printing.
PARTS = {
    "reading the rules, %": ("workflow.py", "include"),
    "building the graph of jobs, %": ("dag.py", "init"),
    "printing the jobs, %": ("jobs.py", "log_info"),
    "of it their shell commands, %": ("jobs.py", "shellcmd"),
    "of it their resources, %": ("rules.py", "expand_resources"),
}
OWN = "functions of this workflow, %"


def shares_of_planning(folder: Path, *arguments: str) -> dict[str, float]:
    """Run Snakemake under the profiler; return the share of each part in the time, in percent.

    Raises
    ------
    KeyError
        If Snakemake has no function of a part's name any more.
    """
    written = folder / "planning.profile"
    snakemake(folder, *arguments, profile=written)
    # (file, line, function): (calls, calls from outside, seconds alone, seconds with what it calls, callers)
    functions = pstats.Stats(str(written)).stats
    total = sum(alone for _, _, alone, _, _ in functions.values())
    with_calls = {
        (Path(file).name, name): seconds
        for (file, _, name), (_, _, _, seconds, _) in functions.items()
        if Path(file).parent.name == "snakemake"
    }
    own = sum(
        alone
        for (file, _, _), (_, _, alone, _, _) in functions.items()
        if any(Path(file).is_relative_to(place / "workflow") for place in (folder, ROOT))
    )
    parts = {part: with_calls[function] for part, function in PARTS.items()}
    return {part: 100 * seconds / total for part, seconds in (parts | {OWN: own}).items()}
