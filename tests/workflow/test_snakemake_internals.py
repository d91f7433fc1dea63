"""What is asked of Snakemake beside its documentation is still what it is taken for.

Of `asks_squeue` tests/slurm says it; of paths in a module test_deployment.py; of conda files test_names.py.
"""

import pytest

from checkouts import REPOSITORY, Checkout

INTERNALS = REPOSITORY / "workflow/rules/common/snakemake_internals.smk"
SNAKEFILE = f"""
import re, sys
from pathlib import Path

WORKFLOW = Path("nowhere")

include: {str(INTERNALS)!r}

print("main process:", is_main_process(), file=sys.stderr)
print("submits jobs:", submits_jobs(), file=sys.stderr)
print("limits resources:", limits_resources(), file=sys.stderr)
print("gpus:", set_by_profile("made", "gpu"), file=sys.stderr)
print("results:", path_variable("results"), file=sys.stderr)
print("path:", own_path("<results>/x"), file=sys.stderr)
print("configuration files:", *configuration_files(), file=sys.stderr)
print("rules:", folder_that_asks(), file=sys.stderr)

rule other:
    output: "other"
    shell: "touch {{output}}"

rule made:
    output: "made"
    resources: gpu=1
    run: Path(output[0]).touch()

make_default("made")

onstart:
    print("this comes first", file=sys.stderr)

def start():
    print("executor:", executor(), file=sys.stderr)
    print("limited:", workflow.scheduler.job_rate_limiter is not None, file=sys.stderr)
    let_the_scheduler_rest()

at_start(start)
"""


@pytest.fixture
def folder(tmp_path) -> Checkout:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    return Checkout(tmp_path)


def test_a_run_on_one_machine(folder):
    said = folder.snakemake("--cores", "1")
    assert (folder.folder / "made").exists()  # the default target, not the first
    assert not (folder.folder / "other").exists()
    for answer in (
        "main process: True",
        "main process: False",  # in the job, which reads the rules again
        "submits jobs: False",
        "limits resources: False",
        "gpus: None",
        "results: results",
        "path: results/x",
        "this comes first",
        "executor: local",
        "limited: True",  # else there is nothing to take out any more
    ):
        assert f"{answer}\n" in said
    assert f"rules: ('{folder.folder}', None, None)" in said


def test_resources_of_the_command_line_are_seen(folder):
    said = folder.snakemake(
        *("--cores", "1", "--dry-run", "--resources", "mem_mb=3", "--set-resources", "made:gpu=2")
    )
    assert "limits resources: True" in said
    assert "gpus: 2" in said


def test_files_of_the_configuration_are_known(folder):
    for name in ("a.yaml", "b.yaml"):
        folder.write(name, {"x": 1})
    said = folder.snakemake("--cores", "1", "--dry-run", "--configfile", "a.yaml", "b.yaml")
    assert f"configuration files: {folder.folder}/a.yaml {folder.folder}/b.yaml" in said


def test_a_cluster_is_seen(folder):
    assert "submits jobs: True" in folder.snakemake("--jobs", "2", "--dry-run")


def test_a_version_that_was_not_tried_is_refused_in_one_sentence(folder):
    snakefile = folder.folder / "Snakefile"
    snakefile.write_text("import snakemake\nsnakemake.__version__ = '9.28.0'\n" + SNAKEFILE)
    said = folder.snakemake("--dry-run", "--cores", "1", succeeds=False)
    assert "was not tried with Snakemake 9.28.0; install one before 9.28" in said
    assert "Traceback" not in said
