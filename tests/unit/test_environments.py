"""Each rule's conda environment holds just what the rule's script and library modules import.

No conda channel is asked: what is compared are files of this repository.
"""

import re
import sys
import tomllib
from collections import defaultdict
from importlib import metadata

import pytest
from packaging.requirements import Requirement

from conda_standin import LOCKS, MODULES, PIP_NAMES, read_environment_file
from shape_of_learning.code_digest import WORKFLOW, list_files, list_imports
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.plan.papers import collect_figures, collect_tables, read_papers

REPOSITORY = WORKFLOW.parent
FILES = sorted((REPOSITORY / "envs").glob("*.yaml"))


def scripts_by_environment() -> dict[str, set[str]]:
    """Files of environments -> the scripts of their rules, as names of modules."""
    found = defaultdict(set)
    for file in WORKFLOW.rglob("*.smk"):
        for rule in re.split(r"^ *rule ", file.read_text(), flags=re.MULTILINE)[1:]:
            environment = re.search(r'conda:\s+"[./]+envs/(\S+)"', rule)
            script = re.search(r'script:\s+"(\S+)\.py"', rule)
            assert bool(environment) == bool(script), rule
            if environment and script:
                path = (file.parent / script[1]).resolve().relative_to(WORKFLOW)
                found[environment[1]].add(".".join(path.parts))
    return found


SCRIPTS = scripts_by_environment()


# These import the functions of measures by name.
MEASURING = ("metrics/measure", "embeddings/matrices")


def imported(script: str) -> set[str]:
    """Top-level modules from outside Python and this project, of a script and of all that it imports.

    Measures and papers, which it finds by name, are included.
    """
    files, chosen = list_files(script), set()
    if any(WORKFLOW / f"shape_of_learning/{name}.py" in files for name in MEASURING):
        chosen = {measure.function.partition(":")[0] for measure in MEASURES.values()}
    if WORKFLOW / "shape_of_learning/figures/output.py" in files:
        papers = read_papers(WORKFLOW / "papers")
        drawn = [figure.draw for figure in collect_figures(papers).values()]
        written = [table.write for table in collect_tables(papers).values()]
        chosen = {function.partition(":")[0] for function in (*drawn, *written)}
    names = {name for file in list_files(script, *chosen) for name in list_imports(file)}
    ours = {"shape_of_learning", "papers"}
    return {name.split(".")[0] for name in names} - sys.stdlib_module_names - ours


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_environment_lists_just_what_its_rules_import(file):
    listed = {MODULES.get(name, name) for name in read_environment_file(file).packages}
    imports = [imported(script) for script in SCRIPTS[file.name]]
    assert all(each <= listed for each in imports)
    assert listed <= set().union(*imports)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_pins_are_those_of_the_pip_lock(file):
    lines = [line for lock in LOCKS for line in (REPOSITORY / lock).open() if "==" in line]
    pinned = (line.split()[0].split("==") for line in lines)
    versions = {normal(name): version for name, version in pinned}
    pins = read_environment_file(file).packages
    locked = {name: major_minor(versions[normal(PIP_NAMES.get(name, name))]) for name in pins}
    assert pins == locked


def test_the_pip_lock_of_the_workflow_holds_all_that_its_packages_require():
    """They are installed without looking for more; PyTorch before them, with what it requires."""
    text = (REPOSITORY / "envs/pip/workflow.txt").read_text()
    locked = {normal(name) for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    lacking = {
        f"{name} requires {needed.name}"
        for name in locked
        for needed in map(Requirement, metadata.requires(name) or ())
        if not needed.marker or needed.marker.evaluate({"extra": ""})
        if normal(needed.name) not in {*locked, "torch"}
    }
    assert not lacking


def test_all_environments_have_the_oldest_python_that_the_project_takes():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    pythons = {read_environment_file(file).python for file in FILES}
    assert {f">={version}" for version in pythons} == {project["requires-python"]}


def normal(name: str) -> str:
    """A package's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def major_minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


# What each extra is for: modules of ours, by whose imports, also those in functions, it must be enough.
ENTRIES = {
    "": ["shape_of_learning.estimators"],
    "models": [
        "shape_of_learning.__main__",
        "shape_of_learning.one_model.in_python",
        "shape_of_learning.training",
        "shape_of_learning.checkpoints",
    ],
    "tasks": [
        ".".join(file.relative_to(WORKFLOW).with_suffix("").parts)
        for folder in ("shape_of_learning", "scripts", "papers", "snakemake_logger_plugin_shape")
        for file in (WORKFLOW / folder).rglob("*.py")
    ],
}
# Declared and not imported by us: transformers imports it for GGUF files and in its Trainer, and does not ask for it.
UNSAID = {"accelerate"}
# Imported to raise an alert in a run of theirs, so that whoever asks for that has them.
TRACKERS = {"trackio", "wandb"}
# In functions that download a corpus, which the workflow alone calls.
OF_THE_WORKFLOW = {"pooch", "requests"}


def requirements_of(extra: str) -> set[str]:
    """What pip installs of its own accord with that extra of ours."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    lines, names = [*project["dependencies"]], set()
    lines += project["optional-dependencies"][extra] if extra else []
    for requirement in map(Requirement, lines):
        if requirement.name == project["name"]:
            names |= set().union(*map(requirements_of, requirement.extras))
        else:
            names.add(normal(requirement.name))
    return names


@pytest.mark.parametrize("extra", ENTRIES)
def test_an_extra_asks_for_all_that_its_entry_points_import(extra):
    measures = {measure.function.partition(":")[0] for measure in MEASURES.values()}
    files = list_files(*ENTRIES[extra], *(measures if extra else ()))
    assert files
    names = {name.split(".")[0] for file in files for name in list_imports(file)}
    ours = {path.stem for path in WORKFLOW.iterdir()} | {
        path.stem for path in WORKFLOW.glob("*/*.py")
    }
    distributions = metadata.packages_distributions()
    foreign = names - sys.stdlib_module_names - ours - TRACKERS
    needed = {normal(distributions[name][0]) for name in foreign}
    if extra == "models":
        needed -= OF_THE_WORKFLOW
    assert needed <= requirements_of(extra)
    if extra == "models":
        assert requirements_of(extra) - needed == UNSAID
