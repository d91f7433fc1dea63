"""The workflow as a module of another one: by a path, from a repository, and by snakedeploy."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

import tiny_runs
from checkouts import Checkout, check_out

DRY = ("--cores", "2")
URL = "https://github.com/shape/shape-of-learning"


def git(*arguments: object, **options: object) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", *map(str, arguments)]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    """A repository with one commit, tagged v1."""
    folder = tmp_path_factory.mktemp("repositories") / "shape of learning"
    check_out(folder)
    git("init", "-q", "-b", "main", cwd=folder)
    git("add", "-A", cwd=folder)
    git("commit", "-qm", "All", cwd=folder)
    git("tag", "v1", cwd=folder)
    return folder


@pytest.fixture
def deployed(tmp_path) -> Checkout:
    """A folder with a model, a corpus and a configuration of its own, and nothing else."""
    (tmp_path / "deployed/config/models").mkdir(parents=True)
    checkout = Checkout(tmp_path / "deployed")
    tiny_runs.set_up(checkout)
    return checkout


def module(
    checkout: Checkout, snakefile: str, *more: str, configuration: str = "tiny.yaml"
) -> None:
    """Write a Snakefile that uses all rules of the module."""
    lines = [
        f'configfile: "{configuration}"',
        "module shape:",
        f"    snakefile: {snakefile}",
        "    config: config",
        *(f"    {line}" for line in more),
        "use rule * from shape",
    ]
    (checkout.folder / "Snakefile").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def planned_directly(repository: Path) -> dict[str, int]:
    """What the demo plans in a checkout."""
    return Checkout(repository).planned("--configfile", "config/demo.yaml", *DRY)


def sources(repository: Path) -> dict[str, str]:
    return {
        "path": repr(str(repository / "workflow/Snakefile")),
        "gitfile": f'gitfile({str(repository)!r}, path="workflow/Snakefile", tag="v1")',
        "github": 'github("shape/shape-of-learning", path="workflow/Snakefile", tag="v1")',
    }


@pytest.fixture
def reachable(repository, tmp_path, monkeypatch) -> None:
    """Let git find the repository where GitHub would have it."""
    config = tmp_path / "gitconfig"
    config.write_text(f'[url "{repository.as_uri()}"]\n\tinsteadOf = {URL}\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("source", ["path", "gitfile", "github"])
def test_the_demo_is_planned_as_in_a_checkout(
    repository, deployed, reachable, planned_directly, source
):
    demo = yaml.safe_load((repository / "config/demo.yaml").read_text())
    deployed.write("demo.yaml", demo)  # which says less than half: defaults apply
    module(deployed, sources(repository)[source], configuration="demo.yaml")
    assert deployed.planned(*DRY) == planned_directly


@pytest.mark.parametrize("source", ["path", "gitfile", "github"])
def test_jobs_of_a_module_find_library_and_own_files(repository, deployed, reachable, source):
    module(deployed, sources(repository)[source], 'prefix: "mine"')
    (deployed.folder / "mine").mkdir()
    deployed.snakemake(*DRY, "--", "mine/results/corpus/export/text.txt")
    assert (deployed.folder / "mine/results/corpus/export/text.txt").exists()
    assert not (deployed.folder / "results").exists()


def test_a_module_runs_from_text_to_figure(repository, deployed):
    module(deployed, sources(repository)["gitfile"], 'prefix: "mine"')
    deployed.snakemake(*DRY, "--quiet", "rules")
    assert (deployed.folder / "mine/results/figures/figure_1.pdf").exists()
    assert not (deployed.folder / "results").exists()
    assert deployed.planned(*DRY) == {}


def test_a_module_cannot_say_twice_where_results_go(repository, deployed):
    module(deployed, sources(repository)["path"], "pathvars:", '    results="mine"')
    said = deployed.snakemake(*DRY, "--dry-run", "--config", "run=other", succeeds=False)
    assert "`run` puts results into results/other, but the path variable `results` is" in said


def test_an_entry_of_ones_own_goes_before_one_that_the_workflow_brings(repository, deployed):
    deployed.write("config/models/own.yaml", {"demo-decoder": tiny_runs.MODEL})
    deployed.write("demo.yaml", {"models": ["demo-decoder"], "corpus": {"source": "python_topics"}})
    module(deployed, sources(repository)["gitfile"], configuration="demo.yaml")
    said = deployed.snakemake(*DRY, "--dry-run")
    assert "/demo-decoder/step1" in said
    assert "/demo-decoder/step128" not in said


def test_what_snakedeploy_writes_plans_the_demo(tmp_path, reachable, planned_directly):
    # In an environment of its own, as its documentation has it.
    snakedeploy = [shutil.which("uv"), "tool", "run", "snakedeploy==0.17.1"]
    folder = tmp_path / "by snakedeploy"
    folder.mkdir()
    subprocess.run(
        [*snakedeploy, "deploy-workflow", URL, ".", "--tag", "v1"], cwd=folder, check=True
    )
    checkout = Checkout(folder)
    planned = checkout.planned("--configfile", "config/demo.yaml", *DRY)
    assert planned == planned_directly
