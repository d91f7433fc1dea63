"""What a run that submits jobs to SLURM must know of the one before it."""

import subprocess


def jobs_of_an_earlier_run():
    """Numbers of this folder's jobs that are waiting or at work, such as a killed Snakemake leaves behind."""
    logs = Path(".snakemake/slurm_logs").resolve()  # where the plugin has each folder's jobs write
    listed = ["squeue", "--me", "--noheader", "--Format=JobID:|,STDOUT:"]
    rows = subprocess.run(listed, capture_output=True, text=True).stdout.splitlines()
    jobs = [row.split("|", 1) for row in rows]
    return [number for number, log in jobs if Path(log).is_relative_to(logs)]


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
