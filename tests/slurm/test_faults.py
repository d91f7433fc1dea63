"""What goes wrong on clusters, done on purpose: the numbers are those of an undisturbed run."""

import subprocess

import pytest

pytestmark = pytest.mark.slurm

# Two forward passes, then groups of measurements.
TABLE = "results/tables/estimates/small-decoder.csv"


def same_table(checkout, local_run) -> bool:
    return (checkout.folder / TABLE).read_bytes() == (local_run.folder / TABLE).read_bytes()


def is_group(job) -> bool:
    return job.comment.startswith("layers")


def test_a_cancelled_job_and_a_lost_node_are_survived(pretrained, local_run, slurm):
    process = pretrained.start(targets=(TABLE,))
    forward = pretrained.wait_for(lambda job: job.state == "RUNNING" and not is_group(job))
    subprocess.run(["scancel", str(forward.number)], check=True)
    group = pretrained.wait_for(lambda job: job.state == "RUNNING" and is_group(job))
    slurm.set_state(group.node, "down")
    try:
        slurm.start_at_once(group.number)
        pretrained.finish(process)
    finally:
        slurm.set_state(group.node, "resume")
    assert same_table(pretrained, local_run)
    jobs = pretrained.jobs()
    assert [job.number for job in jobs if job.state == "CANCELLED"] == [forward.number]
    [again] = [
        job for job in jobs if job.number != forward.number and job.comment == forward.comment
    ]
    assert again.state == "COMPLETED"
    # SLURM itself puts a job of a lost node back into the queue.
    [moved] = [job for job in jobs if job.number == group.number]
    assert (moved.state, moved.restarts) == ("COMPLETED", 1)
    assert moved.node != group.node


def test_a_job_that_takes_more_memory_than_it_asked_for_gets_more(pretrained, local_run):
    loss = "results/losses/small-decoder/step0.csv"
    # On the command line, the key replaces the profile's, with the partition that it holds.
    given = ("dump_embeddings:mem_mb=300 * attempt", "dump_embeddings:slurm_partition=gpu")
    # Snakemake and PyTorch take more than the first try has and less than the third, 500 to 650 MB.
    pretrained.run("--set-resources", *given, targets=(loss,))
    tries = pretrained.jobs()
    assert len(tries) > 1
    assert [job.megabytes for job in tries] == [300 * n for n in range(1, len(tries) + 1)]
    assert [job.state == "COMPLETED" for job in tries] == [False] * (len(tries) - 1) + [True]
    assert (pretrained.folder / loss).read_bytes() == (local_run.folder / loss).read_bytes()


def test_a_killed_snakemake_is_started_again_once_its_jobs_are_cancelled(
    pretrained, local_run, slurm
):
    process = pretrained.start(targets=(TABLE,))
    group = pretrained.wait_for(lambda job: job.state == "RUNNING" and is_group(job))
    process.kill()
    process.wait()
    at_kill = pretrained.jobs()
    dumped = {job.comment for job in at_kill if job.state == "COMPLETED"}
    assert dumped
    # As docs/how_to/cluster.md says: what still runs would write beside what is started again.
    subprocess.run(["scancel", "--user=root"], check=True)
    pretrained.wait_for(lambda job: job.number == group.number and job.state == "CANCELLED")
    pretrained.run("--unlock")
    pretrained.run(targets=(TABLE,))
    assert same_table(pretrained, local_run)
    since = {job.comment for job in pretrained.jobs()[len(at_kill) :]}
    assert not since & dumped, "what had ended is done again"
    assert not pretrained.partial_files()
