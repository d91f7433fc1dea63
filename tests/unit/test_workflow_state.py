"""Which state of the workflow a run says that it was planned by."""

import subprocess
from pathlib import Path

import pytest
from shape_of_learning.plan.workflow_state import workflow_state


def git(folder: Path, *arguments: str) -> str:
    own = ("-c", "user.name=A", "-c", "user.email=a@b.c")
    command = ["git", "-C", folder, *own, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path) -> Path:
    folder = tmp_path / "a repository"
    (folder / "workflow/rules").mkdir(parents=True)
    (folder / "Snakefile").write_text("include: 'workflow/Snakefile'\n")
    (folder / "workflow/rules/a.smk").write_text("rule a:\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "All")
    return folder


def test_a_commit_without_changes_is_clean(repository):
    state = workflow_state(repository)
    assert state["commit"] == git(repository, "rev-parse", "HEAD")
    assert (state["state"], state["changed"]) == ("clean", [])


def test_changed_and_new_files_of_code_make_it_dirty_and_results_do_not(repository):
    clean = workflow_state(repository)
    (repository / "results").mkdir()
    (repository / "results/x.csv").write_text("x\n")
    assert workflow_state(repository) == clean
    (repository / "workflow/rules/a.smk").write_text("rule b:\n")
    (repository / "workflow/rules/é.smk").write_text("rule c:\n")
    dirty = workflow_state(repository)
    assert dirty["state"] == "dirty"
    assert dirty["changed"] == ["workflow/rules/a.smk", "workflow/rules/é.smk"]
    assert dirty["code"] != clean["code"]
    assert dirty["commit"] == clean["commit"]


def test_a_copy_in_a_repository_of_the_users_has_no_commit_of_that(repository):
    inner = repository / "vendored"
    (inner / "workflow").mkdir(parents=True)
    state = workflow_state(inner)
    assert (state["commit"], state["state"]) == ("", "unknown")
    assert workflow_state(inner, "f" * 40)["commit"] == "f" * 40


def test_the_place_of_the_code_does_not_matter(repository, tmp_path):
    before = workflow_state(repository)
    repository.rename(tmp_path / "moved")
    assert workflow_state(tmp_path / "moved") == before
