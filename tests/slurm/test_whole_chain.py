"""The demo's chain through the committed profile, on a real SLURM of one host."""

from collections import Counter

import pytest

pytestmark = pytest.mark.slurm


def test_the_cluster_makes_what_one_machine_makes(whole_run, local_run):
    made = [*(local_run.folder / "results/figures").iterdir()]
    made += (local_run.folder / "results/tables").rglob("*.*")
    assert {path.name for path in made} > {"figure_1.pdf", "figure_5.png", "measurements.csv"}
    for path in made:
        other = whole_run.folder / path.relative_to(local_run.folder)
        assert other.read_bytes() == path.read_bytes(), path.name


def test_forward_passes_have_a_gpu_and_nothing_else_does(whole_run):
    for job in whole_run.jobs():
        is_forward_pass = job.comment.startswith("dump_embeddings_")
        assert job.has_gpu == is_forward_pass, job
        assert (job.node == "g1") == is_forward_pass, job
        assert job.partition == ("gpu" if is_forward_pass else "cpu"), job


def test_measurements_are_grouped_and_nothing_else_is_submitted_but_what_computes(whole_run):
    jobs = [job.comment.split("_wildcards_")[0] for job in whole_run.jobs()]
    measured = [comment for comment in jobs if comment.startswith("layers")]
    # Two layers of two families of four checkpoints: sixteen jobs, in groups of what is ready.
    assert 1 <= len(measured) <= 4, jobs
    others = Counter(comment for comment in jobs if comment not in measured)
    assert others.keys() >= {"clean_corpus", "pretrain_model", "dump_embeddings"}
    assert not others.keys() & {"fetch_corpus", "write_python_topics", "measure"}
    assert others["dump_embeddings"] == 4


def test_nothing_unfinished_and_no_embeddings_are_left(whole_run):
    assert not whole_run.partial_files()
    assert not [*(whole_run.folder / "results/embeddings").rglob("*.h5")]
