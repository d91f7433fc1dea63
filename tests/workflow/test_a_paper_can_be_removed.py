"""A paper is a folder: without it other papers are planned as before, and no other code imports it."""

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
COPIED_PATHS = ("tests", "docs", "benchmarks", "atlas", "pyproject.toml", "Makefile", "Snakefile")


def remove_paper(folder: Path, name: str) -> Checkout:
    """Copy the repository without the folder, the tests, the configuration and the keys of a paper."""
    checkout, paper = check_out(folder), PAPERS[name]
    for other in COPIED_PATHS:
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
        figures = settings.get("figures", {})
        for target in figures.keys() & {*paper.figures, *paper.tables}:
            del figures[target]
        for section in settings.keys() & paper.sections.keys():
            del settings[section]
        file.write_text(yaml.safe_dump(settings, sort_keys=False))
    return checkout


def run_module(checkout: Checkout, *command: str) -> None:
    """Run a module of Python in a checkout, which must succeed."""
    process = subprocess.run(
        [sys.executable, "-m", *command], cwd=checkout.folder, env=checkout.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout[-5000:]


@pytest.mark.parametrize("name", PAPERS)
def test_other_papers_are_planned_without_a_paper(name, tmp_path):
    checkout = remove_paper(tmp_path / "clone", name)
    run_module(checkout, "ruff", "check", "--no-cache", "workflow", "tests")
    jobs = checkout.plan_jobs("--configfile", "config/demo.yaml")
    figures = read_yaml(checkout.folder / "config/demo.yaml")["figures"]
    other_papers = [
        paper
        for paper in PAPERS.values()
        if paper.name != name and figures.keys() & {*paper.figures, *paper.tables}
    ]
    assert jobs["judge_claims"] == len(other_papers)
    drawn_figures = [
        target
        for paper in other_papers
        for target in paper.figures
        if figures.get(target, ()) != []
    ]
    assert jobs["draw_figure"] == len(drawn_figures)


def test_tests_of_other_rooms_import_no_paper():
    files = [file for file in (REPOSITORY / "tests").rglob("*.py") if "papers" not in file.parts]
    importing = [
        file for file in files if any(name.startswith("papers.") for name in list_imports(file))
    ]
    assert importing == []
