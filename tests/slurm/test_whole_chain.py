"""The whole chain on two tiny models through the committed profile, on a real SLURM of one host."""

from collections import Counter

import pytest

pytestmark = pytest.mark.slurm


def test_a_cluster_and_one_machine_make_the_same_files(whole_run, local_run):
    paths = [*(local_run.folder / "results/figures").iterdir()]
    paths += (local_run.folder / "results/tables").rglob("*.*")
    assert {path.name for path in paths} > {"figure_1.pdf", "figure_5.png", "measurements.csv"}
    for path in paths:
        other = whole_run.folder / path.relative_to(local_run.folder)
        assert other.read_bytes() == path.read_bytes(), path.name


def test_only_forward_passes_have_a_gpu(whole_run):
    for job in whole_run.list_jobs():
        is_forward_pass = job.comment.startswith("dump_embeddings_")
        assert job.has_gpu == is_forward_pass, job
        assert (job.node == "g1") == is_forward_pass, job
        assert job.partition == ("gpu" if is_forward_pass else "cpu"), job


def test_measurements_are_grouped_and_only_computing_rules_are_submitted(whole_run):
    jobs = [job.comment.split("_wildcards_")[0] for job in whole_run.list_jobs()]
    groups = [comment for comment in jobs if comment.startswith("layers")]
    # Two layers of two families of four checkpoints: sixteen jobs, in groups of what is ready.
    assert 1 <= len(groups) <= 4, jobs
    other_jobs = Counter(comment for comment in jobs if comment not in groups)
    assert other_jobs.keys() >= {"clean_corpus", "pretrain_model", "dump_embeddings"}
    assert not other_jobs.keys() & {"fetch_corpus", "write_python_topics", "measure"}
    assert other_jobs["dump_embeddings"] == 4


def test_no_partial_files_and_no_embeddings_are_left(whole_run):
    assert not whole_run.find_partial_files()
    assert not [*(whole_run.folder / "results/embeddings").rglob("*.h5")]
