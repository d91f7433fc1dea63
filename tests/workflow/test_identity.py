"""A result belongs to what it was computed from, not to where it lies or to what carries it about."""

import ast
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import tiny_runs
from checkouts import Checkout, check_out

FORWARD_PASS = "dump_embeddings"
MEASURE = "measure"
SEARCH = "find_neighbours"
TINY = ("--configfile", "tiny.yaml", "--cores", "2")


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Checkout:
    """A run that has ended well. Tests work on copies."""
    checkout = check_out(tmp_path_factory.mktemp("finished") / "checkout")
    tiny_runs.set_up(checkout)
    checkout.snakemake(*TINY, "--quiet", "rules")
    assert checkout.planned(*TINY) == {}
    return checkout


def copied(checkout: Checkout, folder: Path, *names: str, keep_times: bool = True) -> Checkout:
    """Copy a checkout, or some of what is in it, by `cp`."""
    folder.mkdir(exist_ok=True)
    whole = [path.name for path in checkout.folder.iterdir()]
    sources = [checkout.folder / name for name in names or whole]
    subprocess.run(["cp", "-a" if keep_times else "-r", *sources, folder], check=True)
    return Checkout(folder)


@pytest.fixture
def copy(finished, tmp_path) -> Checkout:
    return copied(finished, tmp_path / "copy")


def edit(checkout: Checkout, change: Callable[[str], str], *modules: str) -> None:
    """Change source files of the library."""
    package = checkout.folder / "workflow/shape_of_learning"
    files = [file for name in modules for file in sorted(package.glob(name))]
    assert files, modules
    for file in files:
        before = file.read_text(encoding="utf-8")
        after = change(before)
        ast.parse(after)
        assert after != before or not before
        file.write_text(after, encoding="utf-8")


def with_a_statement(source: str) -> str:
    return source + "\nADDED_BY_A_TEST = 1\n"


def with_comments(source: str) -> str:
    return re.sub('^"""', '"""Indeed: ', source, count=1) + "\n# A comment.\n"


def planned_files(checkout: Checkout, *arguments: str) -> list[str]:
    """Files that a dry-run would make."""
    said = checkout.snakemake(*arguments, "--dry-run")
    lines = re.findall(r"^ *output: (.*)$", said, re.MULTILINE)
    return [file for line in lines for file in line.split(", ")]


def test_a_copy_has_nothing_to_do(copy):
    assert copy.planned(*TINY) == {}


def test_a_copy_with_new_times_has_nothing_to_do(finished, tmp_path):
    assert copied(finished, tmp_path / "copy", keep_times=False).planned(*TINY) == {}


def make_times_new(checkout: Checkout) -> None:
    """Make each file newer than all that were made of it."""
    folders = (checkout.folder / "results", checkout.folder / "resources")
    made = [path for folder in folders for path in folder.rglob("*")]
    for number, path in enumerate(
        sorted(made, key=lambda path: path.stat().st_mtime, reverse=True)
    ):
        os.utime(path, (2_000_000_000 + number, 2_000_000_000 + number))


def test_results_that_are_newer_in_any_order_are_no_reason(copy):
    make_times_new(copy)
    assert copy.planned(*TINY) == {}


def test_a_moved_checkout_has_nothing_to_do(copy, tmp_path):
    shutil.move(copy.folder, tmp_path / "elsewhere")
    assert Checkout(tmp_path / "elsewhere").planned(*TINY) == {}


def test_a_clone_beside_its_results_has_nothing_to_do(finished, tmp_path):
    origin = copied(finished, tmp_path / "origin")
    own = {"results", "resources", ".snakemake", "hf"}
    for name in own:
        shutil.rmtree(origin.folder / name, ignore_errors=True)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "-Af"], ["commit", "-qm", "All"]):
        subprocess.run([*git, *command], cwd=origin.folder, check=True)
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", origin.folder, clone], check=True)
    made = own & {path.name for path in finished.folder.iterdir()}
    assert copied(finished, clone, *made, keep_times=False).planned(*TINY) == {}


def test_comments_and_docstrings_are_no_reason(copy):
    edit(copy, with_comments, "**/*.py")
    assert copy.planned(*TINY) == {}


def test_plumbing_and_the_code_of_scripts_are_no_reason(copy):
    plumbing = ("errors.py", "storage/*.py", "script_arguments/*.py", "hub/*.py", "plan/*.py")
    edit(copy, with_a_statement, *plumbing, "../scripts/*.py")
    assert copy.planned(*TINY) == {}


def test_an_edited_estimator_is_measured_again_and_nothing_else(copy):
    edit(copy, with_a_statement, "estimators/two_nn.py")
    planned = copy.planned(*TINY)
    assert planned[MEASURE] == 2  # its two checkpoints
    assert planned["describe_run"] == 1
    assert not {FORWARD_PASS, SEARCH} & planned.keys()
    measured = [file for file in planned_files(copy, *TINY) if "/measurements/" in file]
    assert {Path(file).stem for file in measured} == {"two_nn"}


def test_an_edited_forward_pass_is_run_again(copy):
    edit(copy, with_a_statement, "embeddings/*.py")
    assert copy.planned(*TINY)[FORWARD_PASS] == 2


def changed(checkout: Checkout, **changes: object) -> tuple[str, ...]:
    """Return the arguments of a run whose configuration says something more."""
    checkout.write("changes.yaml", changes)
    return "--configfile", "tiny.yaml", "changes.yaml", "--cores", "2"


def source(**facts: object) -> dict:
    return {"sources": {"export": facts}}


def test_a_mirror_is_no_reason(copy):
    urls = ["https://example.org/export.xml", "export.xml"]
    assert copy.planned(*changed(copy, corpus=source(urls=urls))) == {}


def digest_of_the_corpus(checkout: Checkout) -> str:
    receipt = (checkout.folder / "results/corpus/export/source.json").read_text()
    return re.search(r'"sha256": "(\w+)"', receipt)[1]


def test_the_digest_of_what_is_there_is_no_reason(copy):
    right = source(sha256=digest_of_the_corpus(copy))
    assert copy.planned(*changed(copy, corpus=right)) == {}


def test_a_digest_of_another_corpus_is_refused(copy):
    wrong = source(sha256="0" * 64)
    said = copy.snakemake(*changed(copy, corpus=wrong), "--dry-run", succeeds=False)
    assert "corpus.sources.export.sha256" in said
    assert "Traceback" not in said


def test_how_many_windows_pass_at_a_time_is_no_reason(copy):
    assert copy.planned(*changed(copy, forward={"batch_size": 2})) == {}


def test_another_protocol_is_a_reason(copy):
    assert copy.planned(*changed(copy, sampling={"windows": 31}))[FORWARD_PASS] == 2


def test_a_new_estimator_of_distances_needs_no_forward_pass(copy):
    estimators = ["anisotropy", "two_nn", "mle"]
    planned = copy.planned(*changed(copy, measurement={"estimators": estimators}))
    assert not {FORWARD_PASS, SEARCH} & planned.keys()
    assert planned[MEASURE] <= 4  # layers and checkpoints


def test_runs_lie_apart(copy):
    other = changed(copy, run="other", sampling={"windows": 31})
    everything = copy.planned(*other)
    assert everything[FORWARD_PASS] == 2
    copy.snakemake(*other, "--quiet", "rules", "--", "results/other/tables/protocol.yaml")
    assert copy.planned(*other)["total"] == everything["total"] - 1
    assert copy.planned(*TINY) == {}
    made = copy.folder / "results/other"
    assert {path.name for path in made.iterdir()} <= {"tables", "logs", "benchmarks"}


def test_hidden_states_that_are_kept_may_have_new_times_and_are_searched_anew(copy):
    kept = changed(copy, embeddings={"keep": True})
    copy.snakemake(*kept, "--quiet", "rules", "--", "results/embeddings/tiny/step0", "all")
    assert (copy.folder / "results/embeddings/tiny/step0").is_dir()
    make_times_new(copy)
    assert copy.planned(*kept) == {}
    edit(copy, with_a_statement, "estimators/neighbours.py")
    files = [file for file in planned_files(copy, *kept) if "/tiny/step0" in file]
    searched = [file for file in files if "/neighbours/" in file and file.endswith(".h5")]
    assert len(searched) == 2  # its layers
    assert {Path(file).stem for file in files if "/measurements/" in file} == {"two_nn"}
    assert not [file for file in files if "/embeddings/" in file]
