"""Each rule's conda environment lists exactly the packages that its script and library modules import.

The tests compare files of this repository and ask no conda channel.
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


def find_scripts() -> dict[str, set[str]]:
    """Map files of environments to the scripts of their rules, as names of modules."""
    scripts = defaultdict(set)
    for file in WORKFLOW.rglob("*.smk"):
        for rule in re.split(r"^ *rule ", file.read_text(), flags=re.MULTILINE)[1:]:
            environment = re.search(r'conda:\s+"[./]+envs/(\S+)"', rule)
            script = re.search(r'script:\s+"(\S+)\.py"', rule)
            assert bool(environment) == bool(script), rule
            if environment and script:
                path = (file.parent / script[1]).resolve().relative_to(WORKFLOW)
                scripts[environment[1]].add(".".join(path.parts))
    return scripts


SCRIPTS = find_scripts()


# Modules that import the functions of measures by name.
MEASURING = ("metrics/measure", "embeddings/matrices")


def find_imports(script: str) -> set[str]:
    """Find foreign top-level modules that a script and its modules import.

    Measures and papers, which are found by name, are included.
    """
    files, functions = list_files(script), set()
    if any(WORKFLOW / f"shape_of_learning/{name}.py" in files for name in MEASURING):
        functions = {measure.function.partition(":")[0] for measure in MEASURES.values()}
    if WORKFLOW / "shape_of_learning/figures/output.py" in files:
        papers = read_papers(WORKFLOW / "papers")
        drawing_functions = [figure.draw for figure in collect_figures(papers).values()]
        writing_functions = [table.write for table in collect_tables(papers).values()]
        functions = {
            function.partition(":")[0] for function in (*drawing_functions, *writing_functions)
        }
    names = {name for file in list_files(script, *functions) for name in list_imports(file)}
    ours = {"shape_of_learning", "papers"}
    return {name.split(".")[0] for name in names} - sys.stdlib_module_names - ours


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_environment_lists_exactly_the_imports_of_its_rules(file):
    modules = {MODULES.get(name, name) for name in read_environment_file(file).packages}
    imports = [find_imports(script) for script in SCRIPTS[file.name]]
    assert all(names <= modules for names in imports)
    assert modules <= set().union(*imports)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_pins_of_environments_are_those_of_the_pip_lock(file):
    lines = [line for lock in LOCKS for line in (REPOSITORY / lock).open() if "==" in line]
    pairs = (line.split()[0].split("==") for line in lines)
    versions = {normalise_name(name): version for name, version in pairs}
    pins = read_environment_file(file).packages
    expected = {
        name: shorten_version(versions[normalise_name(PIP_NAMES.get(name, name))]) for name in pins
    }
    assert pins == expected


def test_the_pip_lock_of_the_workflow_is_complete():
    """Its packages are installed without dependencies, after PyTorch with its requirements."""
    text = (REPOSITORY / "envs/pip/workflow.txt").read_text()
    lock_names = {normalise_name(name) for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    lacking = {
        f"{name} requires {requirement.name}"
        for name in lock_names
        for requirement in map(Requirement, metadata.requires(name) or ())
        if not requirement.marker or requirement.marker.evaluate({"extra": ""})
        if normalise_name(requirement.name) not in {*lock_names, "torch"}
    }
    assert not lacking


def test_environments_have_the_oldest_python_of_the_project():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    pythons = {read_environment_file(file).python for file in FILES}
    assert {f">={version}" for version in pythons} == {project["requires-python"]}


def normalise_name(name: str) -> str:
    """Return the name of a package as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def shorten_version(version: str) -> str:
    return ".".join(version.split(".")[:2])


# Modules that each extra must suffice for, with their imports, also those in functions.
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
# Declared and not imported here: transformers imports it for GGUF files and in its Trainer without requiring it.
IMPLICIT = {"accelerate"}
# Imported to raise an alert in a run of a tracker, whose users have it.
TRACKERS = {"trackio", "wandb"}
# Imported in functions that download a corpus, which only the workflow calls.
WORKFLOW_PACKAGES = {"pooch", "requests"}


def list_requirements(extra: str) -> set[str]:
    """List the packages that pip installs with an extra."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    lines, names = [*project["dependencies"]], set()
    lines += project["optional-dependencies"][extra] if extra else []
    for requirement in map(Requirement, lines):
        if requirement.name == project["name"]:
            names |= set().union(*map(list_requirements, requirement.extras))
        else:
            names.add(normalise_name(requirement.name))
    return names


@pytest.mark.parametrize("extra", ENTRIES)
def test_an_extra_requires_all_imports_of_its_entry_points(extra):
    measures = {measure.function.partition(":")[0] for measure in MEASURES.values()}
    files = list_files(*ENTRIES[extra], *(measures if extra else ()))
    assert files
    names = {name.split(".")[0] for file in files for name in list_imports(file)}
    ours = {path.stem for path in WORKFLOW.iterdir()} | {
        path.stem for path in WORKFLOW.glob("*/*.py")
    }
    distributions = metadata.packages_distributions()
    foreign = names - sys.stdlib_module_names - ours - TRACKERS
    packages = {normalise_name(distributions[name][0]) for name in foreign}
    if extra == "models":
        packages -= WORKFLOW_PACKAGES
    assert packages <= list_requirements(extra)
    if extra == "models":
        assert list_requirements(extra) - packages == IMPLICIT
