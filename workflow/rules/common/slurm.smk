"""What a run that submits jobs to SLURM must know of the one before it."""

import subprocess

# The plugin's looks at the queue are up to 180 seconds apart, and SLURM needs a while to answer.
SECONDS_TO_REMEMBER_JOBS = 240


def answer_of(*command):
    """What a command of SLURM's prints; stops with its error, since to go on without an answer would be to guess."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        fail(f"`{command[0]}` does not answer ({error}); start this where SLURM's commands work")
    if ran.returncode:
        fail(f"`{command[0]}` fails: {' '.join(ran.stderr.split())[-300:]}")
    return ran.stdout


def jobs_of_an_earlier_run():
    """Numbers of this folder's jobs that are waiting or at work, such as a killed Snakemake leaves behind."""
    logs = Path(".snakemake/slurm_logs").resolve()  # where the plugin has each folder's jobs write
    rows = answer_of("squeue", "--me", "--noheader", "--Format=JobID:|,STDOUT:").splitlines()
    jobs = [row.split("|", 1) for row in rows]
    return [number for number, log in jobs if Path(log).is_relative_to(logs)]


def refuse_to_lose_sight_of_jobs():
    """Stop if SLURM forgets ended jobs before the plugin has looked, which would then wait for them for ever."""
    if executor() != "slurm":
        return
    age = re.search(
        r"^MinJobAge\s*=\s*(\d+)", answer_of("scontrol", "show", "config"), re.MULTILINE
    )
    if asks_squeue() and age and int(age[1]) < SECONDS_TO_REMEMBER_JOBS:
        fail(
            f"SLURM forgets a job {age[1]} seconds after its end (MinJobAge), but {SECONDS_TO_REMEMBER_JOBS} are "
            "needed; ask the administrator for more, or use `--slurm-status-command sacct`, with which jobs that "
            "somebody cancels are waited for in vain"
        )


def refuse_to_work_beside_an_earlier_run():
    """Stop if jobs of this folder are in SLURM's queue before this run has submitted any.

    They would write the same files, and what they finish would be made twice.
    """
    if executor() != "slurm":
        return
    if jobs := jobs_of_an_earlier_run():
        verb = "jobs of an earlier run are" if len(jobs) > 1 else "job of an earlier run is"
        fail(
            f"{len(jobs)} SLURM {verb} still at work in this folder; wait for the end, so that the work "
            f"counts, or cancel with `scancel {' '.join(jobs)}`, and start again"
        )
