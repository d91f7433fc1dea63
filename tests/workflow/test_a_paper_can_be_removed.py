"""A paper is a folder: without it, the others are planned as before, and nothing else imports it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from checkouts import REPOSITORY, UNWANTED, Checkout, check_out
from shape_of_learning.code_digest import list_imports
from shape_of_learning.files import read_yaml
from shape_of_learning.plan.papers import read_papers

PAPERS = {paper.name: paper for paper in read_papers(REPOSITORY / "workflow/papers")}
COPIED = ("tests", "docs", "benchmarks", "atlas", "pyproject.toml", "Makefile", "Snakefile")


def remove_paper(folder: Path, name: str) -> Checkout:
    """Copy the repository without the folder, the tests, the configuration and the keys of a paper."""
    checkout, paper = check_out(folder), PAPERS[name]
    for other in COPIED:
        if (REPOSITORY / other).is_dir():
            shutil.copytree(REPOSITORY / other, folder / other, ignore=UNWANTED)
        else:
            shutil.copy2(REPOSITORY / other, folder / other)
    for place in (f"workflow/papers/{name}", f"tests/papers/{name}"):
        shutil.rmtree(folder / place)
    for file in sorted((folder / "config").glob("*.yaml")):
        settings = read_yaml(file)
        if name in (settings.get("papers") or ()):
            file.unlink()
            continue
        shown = settings.get("figures", {})
        for target in shown.keys() & {*paper.figures, *paper.tables}:
            del shown[target]
        for section in settings.keys() & paper.sections.keys():
            del settings[section]
        file.write_text(yaml.safe_dump(settings, sort_keys=False))
    return checkout


def run_module(checkout: Checkout, *command: str) -> None:
    """Run a module of Python in a checkout, which must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=checkout.folder, env=checkout.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.parametrize("name", PAPERS)
def test_without_a_paper_the_others_are_planned(name, tmp_path):
    checkout = remove_paper(tmp_path / "clone", name)
    run_module(checkout, "ruff", "check", "--no-cache", "workflow", "tests")
    jobs = checkout.planned("--configfile", "config/demo.yaml")
    shown = read_yaml(checkout.folder / "config/demo.yaml")["figures"]
    others = [
        paper
        for paper in PAPERS.values()
        if paper.name != name and shown.keys() & {*paper.figures, *paper.tables}
    ]
    assert jobs["judge_claims"] == len(others)
    drawn = [target for paper in others for target in paper.figures if shown.get(target, ()) != []]
    assert jobs["draw_figure"] == len(drawn)


def test_tests_of_other_rooms_import_no_paper():
    files = [file for file in (REPOSITORY / "tests").rglob("*.py") if "papers" not in file.parts]
    importing = [
        file for file in files if any(name.startswith("papers.") for name in list_imports(file))
    ]
    assert importing == []
