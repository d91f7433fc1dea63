"""The workflow as a module of another one, by the path of a clone."""

from pathlib import Path

import pytest

import tiny_runs
from checkouts import Checkout, check_out

DRY = ("--cores", "2")


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    return check_out(tmp_path_factory.mktemp("clones") / "shape of learning").folder


@pytest.fixture
def deployed(tmp_path) -> Checkout:
    """A folder with a model, a corpus and a configuration of its own, and nothing else."""
    (tmp_path / "deployed/config/models").mkdir(parents=True)
    checkout = Checkout(tmp_path / "deployed")
    tiny_runs.set_up(checkout)
    return checkout


def use(checkout: Checkout, clone: Path, *more: str, configuration: str) -> None:
    """Write a Snakefile that uses all rules of the module."""
    lines = [
        f'configfile: "{configuration}"',
        "module shape:",
        f"    snakefile: {str(clone / 'workflow/Snakefile')!r}",
        "    config: config",
        *(f"    {line}" for line in more),
        "use rule * from shape",
    ]
    (checkout.folder / "Snakefile").write_text("\n".join(lines) + "\n")


def test_the_demo_is_planned_as_in_a_clone(clone, deployed):
    demo = (clone / "config/demo.yaml").read_text()  # which says less than half: defaults apply
    (deployed.folder / "demo.yaml").write_text(demo)
    use(deployed, clone, configuration="demo.yaml")
    directly = Checkout(clone).planned("--configfile", "config/demo.yaml", *DRY)
    assert deployed.planned(*DRY) == directly


def test_an_entry_of_ones_own_goes_before_one_that_the_workflow_brings(clone, deployed):
    deployed.write("config/models/own.yaml", {"demo-decoder": tiny_runs.MODEL})
    deployed.write("demo.yaml", {"models": ["demo-decoder"], "corpus": {"source": "python_topics"}})
    use(deployed, clone, configuration="demo.yaml")
    said = deployed.snakemake(*DRY, "--dry-run")
    assert "/demo-decoder/step1" in said
    assert "/demo-decoder/step128" not in said
