"""Each rule's conda environment holds just what the rule's script and library modules import.

No conda channel is asked: what is compared are files of this repository.
"""

import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from conda_standin.environment_file import EnvironmentFile, read_environment_file
from conda_standin.names import NAMES
from imports import PACKAGE, all_imported_files, imported_names
from shape_of_learning.metrics.registry import MEASURES
from workflow_rules import Rule, workflow_rules

REPOSITORY = PACKAGE.parents[1]
FILES = sorted((REPOSITORY / "envs").glob("*.yaml"))
LOCKS = ["requirements-torch.txt", "requirements.txt"]


@pytest.fixture(scope="module")
def rules() -> list[Rule]:
    found = workflow_rules()
    assert found
    return found


def environment(rule: Rule) -> EnvironmentFile:
    return read_environment_file(REPOSITORY / "envs" / Path(rule.environment).name)


def imported(rule: Rule) -> set[str]:
    """Top-level modules from outside Python and this project."""
    names = {name for file in computed_with(rule) for name in imported_names(file)}
    tops = {name.split(".")[0] for name in names}
    return tops - sys.stdlib_module_names - {PACKAGE.name}


def computed_with(rule: Rule) -> set[Path]:
    """The rule's script and all that it imports, measures and papers that it finds by name included."""
    files = all_imported_files([rule.script])
    if "shape_of_learning.metrics.measure_entry.Measure" in imported_names(rule.script):
        modules = {measure.function.partition(":")[0] for measure in MEASURES.values()}
        files |= all_imported_files(
            PACKAGE.parent / f"{module.replace('.', '/')}.py" for module in modules
        )
    if PACKAGE / "figures" / "output.py" in files:
        files |= all_imported_files((PACKAGE.parent / "papers").rglob("*.py"))
    return files


def test_every_rule_is_a_script(rules):
    assert [rule.name for rule in rules if not rule.script.is_file()] == []


def test_every_rule_has_an_environment_and_every_environment_a_rule(rules):
    named = {REPOSITORY / "envs" / Path(rule.environment).name for rule in rules}
    assert named == set(FILES)


def test_an_environment_provides_all_that_its_rules_import(rules):
    missing = {
        rule.name: lacking
        for rule in rules
        if (lacking := imported(rule) - {NAMES[n].module for n in environment(rule).packages})
    }
    assert not missing


def test_an_environment_lists_nothing_that_no_rule_of_it_imports(rules):
    used = defaultdict(set)
    for rule in rules:
        used[Path(rule.environment).name] |= imported(rule)
    listed = {file.name: read_environment_file(file).packages for file in FILES}
    unused = {
        file: needless
        for file, packages in listed.items()
        if (needless := {name for name in packages if NAMES[name].module not in used[file]})
    }
    assert not unused


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_pins_are_those_of_the_pip_lock(file):
    lines = [line for lock in LOCKS for line in (REPOSITORY / lock).open() if "==" in line]
    pinned = (line.split()[0].split("==") for line in lines)
    versions = {normal(name): version for name, version in pinned}
    pins = read_environment_file(file).packages
    locked = {name: major_minor(versions[normal(NAMES[name].pip)]) for name in pins}
    assert pins == locked


def test_all_environments_have_the_oldest_python_that_the_project_takes():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    pythons = {read_environment_file(file).python for file in FILES}
    assert {f">={version}" for version in pythons} == {project["requires-python"]}


def normal(name: str) -> str:
    """A package's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def major_minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
