"""What a run that submits jobs to SLURM must know of the one before it."""

import subprocess


def jobs_of_an_earlier_run():
    """Numbers of this folder's jobs that are waiting or at work, such as a killed Snakemake leaves behind."""
    listed = ["squeue", "--me", "--noheader", "--format=%i|%k|%Z"]
    rows = subprocess.run(listed, capture_output=True, text=True).stdout.splitlines()
    jobs = [row.split("|") for row in rows]
    # The plugin comments its jobs: rule_{name}_wildcards_{values}.
    return [j[0] for j in jobs if j[1].startswith("rule_") and j[-1] == os.getcwd()]


def refuse_to_work_beside_an_earlier_run():
    """Stop if jobs of this folder are in SLURM's queue before this run has submitted any.

    They would write the same files, and what they finish would be made twice.
    """
    if workflow.executor_plugin.name != "slurm":
        return
    if jobs := jobs_of_an_earlier_run():
        verb = "jobs of an earlier run are" if len(jobs) > 1 else "job of an earlier run is"
        stop(
            f"{len(jobs)} SLURM {verb} still at work in this folder; wait for the end, so that the work "
            f"counts, or cancel with `scancel {' '.join(jobs)}`, and start again"
        )
