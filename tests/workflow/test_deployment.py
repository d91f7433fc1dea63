"""The workflow as a module of another workflow, beside other code, in environments that it refuses, and in an image."""

import shutil
from pathlib import Path

import snakemake

import tiny_runs
from checkouts import Checkout, check_out, make_environment

CORES = ("--cores", "2")
SNAKEFILE = """
configfile: "demo.yaml"
module shape:
    snakefile: {!r}
    config: config
use rule * from shape
"""


def test_a_deployed_module_is_planned_as_a_clone_and_its_own_entries_go_first(tmp_path: Path):
    clone = check_out(tmp_path / "shape of learning")
    # The folder has only a model, a corpus and a configuration.
    (tmp_path / "deployed/config/models").mkdir(parents=True)
    deployment = Checkout(tmp_path / "deployed")
    tiny_runs.set_up(deployment)
    (deployment.folder / "Snakefile").write_text(
        SNAKEFILE.format(str(clone.folder / "workflow/Snakefile"))
    )
    demo = (clone.folder / "config/demo.yaml").read_text()  # missing keys have their defaults
    (deployment.folder / "demo.yaml").write_text(demo)
    planned_jobs = clone.plan_jobs("--configfile", "config/demo.yaml", *CORES)
    assert deployment.plan_jobs(*CORES) == planned_jobs
    deployment.write("config/models/own.yaml", {"demo-decoder": tiny_runs.MODEL})
    deployment.write(
        "demo.yaml", {"models": ["demo-decoder"], "corpus": {"source": "python_topics"}}
    )
    output = deployment.snakemake(*CORES, "--dry-run")
    assert "/demo-decoder/step1" in output
    assert "/demo-decoder/step128" not in output


def test_jobs_run_the_code_of_their_clone_where_other_code_is_installed(tmp_path: Path):
    clone = check_out(tmp_path / "clone")
    tiny_runs.set_up(clone)
    library = shutil.copytree(
        clone.folder / "workflow/shape_of_learning", tmp_path / "installed/shape_of_learning"
    )
    (library / "corpus/clean.py").write_text("raise ImportError('other code')\n")
    text = "results/corpus/export/text.txt"
    path = f"{library.parent}:{clone.folder / 'workflow'}"
    clone.snakemake("--configfile", "tiny.yaml", *CORES, text, environment={"PYTHONPATH": path})
    assert (clone.folder / text).stat().st_size > 0


def test_an_environment_that_jobs_cannot_use_is_refused_before_the_run(tmp_path: Path):
    clone = check_out(tmp_path / "clone")
    environment = tmp_path / "an environment"
    packages = make_environment(environment)
    checkout = Checkout(clone.folder, environment / "bin/python")
    output = checkout.snakemake(*CORES, "--dry-run", succeeds=False)
    assert f"cannot start jobs by {environment}/bin/python" in output
    # Jobs in conda have a Python of their own, and look for packages beside Snakemake, too.
    (packages / "snakemake").symlink_to(Path(snakemake.__file__).parent)
    (packages / "shape_of_learning").mkdir()
    output = checkout.snakemake(*CORES, "--dry-run", "--use-conda", succeeds=False)
    assert f"run the code of {packages}/shape_of_learning instead of" in output


def test_the_same_jobs_are_planned_in_an_image(tmp_path: Path):
    clone = check_out(tmp_path / "clone")
    demo = ("--configfile", "config/demo.yaml", *CORES)
    planned_in_image = clone.plan_jobs("--snakefile", "workflow/containerized.smk", *demo)
    planned_jobs = clone.plan_jobs(*demo)
    assert planned_in_image.pop("everything") == planned_jobs.pop("all") == 1
    assert planned_in_image == planned_jobs
