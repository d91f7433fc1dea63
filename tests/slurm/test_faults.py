"""Faults of clusters, made on purpose, leave the numbers of an undisturbed run."""

import subprocess

import pytest

pytestmark = pytest.mark.slurm

# Two forward passes, then groups of measurements.
TABLE = "results/tables/estimates/small-decoder.csv"


def has_same_table(checkout, local_run) -> bool:
    return (checkout.folder / TABLE).read_bytes() == (local_run.folder / TABLE).read_bytes()


def is_group(job) -> bool:
    return job.comment.startswith("layers")


def test_a_run_survives_a_cancelled_job_and_a_lost_node(checkout_with_weights, local_run, slurm):
    process = checkout_with_weights.start(targets=(TABLE,))
    forward = checkout_with_weights.wait_for(
        lambda job: job.state == "RUNNING" and not is_group(job)
    )
    subprocess.run(["scancel", str(forward.number)], check=True)
    group = checkout_with_weights.wait_for(lambda job: job.state == "RUNNING" and is_group(job))
    slurm.set_state(group.node, "down")
    try:
        slurm.start_at_once(group.number)
        checkout_with_weights.finish(process)
    finally:
        slurm.set_state(group.node, "resume")
    assert has_same_table(checkout_with_weights, local_run)
    jobs = checkout_with_weights.list_jobs()
    assert [job.number for job in jobs if job.state == "CANCELLED"] == [forward.number]
    [repeated_job] = [
        job for job in jobs if job.number != forward.number and job.comment == forward.comment
    ]
    assert repeated_job.state == "COMPLETED"
    # SLURM itself puts a job of a lost node back into the queue.
    [requeued_job] = [job for job in jobs if job.number == group.number]
    assert (requeued_job.state, requeued_job.restarts) == ("COMPLETED", 1)
    assert requeued_job.node != group.node


def test_a_job_that_exceeds_its_memory_is_repeated_with_more(checkout_with_weights, local_run):
    loss = "results/losses/small-decoder/step0.csv"
    # On the command line, the key replaces the profile's, with the partition that it holds.
    resources = ("dump_embeddings:mem_mb=300 * attempt", "dump_embeddings:slurm_partition=gpu")
    # Snakemake and PyTorch take more than the first try has and less than the third, 500 to 650 MB.
    checkout_with_weights.run("--set-resources", *resources, targets=(loss,))
    tries = checkout_with_weights.list_jobs()
    assert len(tries) > 1
    assert [job.megabytes for job in tries] == [300 * n for n in range(1, len(tries) + 1)]
    assert [job.state == "COMPLETED" for job in tries] == [False] * (len(tries) - 1) + [True]
    assert (checkout_with_weights.folder / loss).read_bytes() == (
        local_run.folder / loss
    ).read_bytes()


def test_a_killed_snakemake_can_be_restarted_after_its_jobs_are_cancelled(
    checkout_with_weights, local_run, slurm
):
    process = checkout_with_weights.start(targets=(TABLE,))
    group = checkout_with_weights.wait_for(lambda job: job.state == "RUNNING" and is_group(job))
    process.kill()
    process.wait()
    jobs_at_kill = checkout_with_weights.list_jobs()
    finished_comments = {job.comment for job in jobs_at_kill if job.state == "COMPLETED"}
    assert finished_comments
    # docs/how_to/cluster.md says so: running jobs would write the same files as restarted ones.
    subprocess.run(["scancel", "--user=root"], check=True)
    checkout_with_weights.wait_for(
        lambda job: job.number == group.number and job.state == "CANCELLED"
    )
    checkout_with_weights.run("--unlock")
    checkout_with_weights.run(targets=(TABLE,))
    assert has_same_table(checkout_with_weights, local_run)
    later_comments = {job.comment for job in checkout_with_weights.list_jobs()[len(jobs_at_kill) :]}
    assert not later_comments & finished_comments, "what had ended is done again"
    assert not checkout_with_weights.find_partial_files()
