"""In a finished run results are computed again when their inputs change, and damaged files are refused."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import tiny_runs
from checkouts import Checkout, check_out

TINY = ("--configfile", "tiny.yaml", "--cores", "2")
CHANGED_CONFIGURATION = ("--configfile", "tiny.yaml", "changes.yaml", "--cores", "2")
FORWARD_PASS, MEASURE = "dump_embeddings", "measure"
EDITS = "results/tables/edits/tiny.csv"
EDITING = {
    "fitting_windows": 8,
    "evaluation_windows": 8,
    "most_blocks": 1,
    "kinds": ["dropped"],
    "distillation_steps": 1,
    "distillation_windows": 2,
}


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Checkout:
    """A finished run that keeps its hidden states; tests work on copies that keep the times of files."""
    checkout = check_out(tmp_path_factory.mktemp("finished") / "checkout")
    settings = tiny_runs.set_up(checkout)
    checkout.write("tiny.yaml", {**settings, "embeddings": {"keep": True}})
    checkout.snakemake(*TINY, "--quiet", "rules")
    assert checkout.plan_jobs(*TINY) == {}
    return checkout


@pytest.fixture
def copy(finished_run, tmp_path) -> Checkout:
    subprocess.run(["cp", "-a", finished_run.folder, tmp_path / "copy"], check=True)
    return Checkout(tmp_path / "copy")


def test_a_moved_or_copied_folder_has_no_jobs(copy, tmp_path):
    assert copy.plan_jobs(*TINY) == {}
    shutil.move(copy.folder, tmp_path / "elsewhere")
    assert Checkout(tmp_path / "elsewhere").plan_jobs(*TINY) == {}


def test_comments_and_docstrings_rerun_no_job(copy):
    for file in (copy.folder / "workflow").rglob("*.py"):
        source = file.read_text().replace('"""', '"""Indeed: ', 1)
        file.write_text(f"{source}\n# A comment.\n")
    assert copy.plan_jobs(*TINY) == {}


def test_an_edited_formula_reruns_measurements_but_no_forward_pass(copy):
    file = copy.folder / "workflow/shape_of_learning/estimators/anisotropy.py"
    file.write_text(f"{file.read_text()}\nADDED_BY_A_TEST = 1\n")
    jobs = copy.plan_jobs(*TINY)
    assert jobs[MEASURE] > 0
    assert FORWARD_PASS not in jobs
    assert "pretrain_model" not in jobs


def test_only_settings_that_change_numbers_rerun_jobs(copy):
    def plan_with_changes(**changes: object) -> dict[str, int]:
        copy.write("changes.yaml", changes)
        return copy.plan_jobs(*CHANGED_CONFIGURATION)

    mirrors = {"urls": ["export.xml", "https://example.org/export.xml"]}
    harmless = {"corpus": {"sources": {"export": mirrors}}, "forward": {"threads": 2}}
    # Only the record of the configuration is written again.
    assert {*plan_with_changes(**harmless)} <= {"provenance", "all", "total"}
    assert plan_with_changes(sampling={"windows": 31})[FORWARD_PASS] == 2
    # Another estimator, or other tokens.
    for changes in ({"estimators": ["anisotropy", "two_nn", "mle"]}, {"first_token": "drop"}):
        more = plan_with_changes(measurement=changes)
        assert FORWARD_PASS not in more
        assert more[MEASURE] > 0


def test_one_changed_field_of_a_job_reruns_it(copy):
    """Snakemake compares a job that is a named tuple; it would silently ignore a dataclass."""
    folder = copy.folder / "workflow/papers/shape_of_learning"
    for name, old, new in (
        ("claims.yaml", "above: 0.01}", "above: 0.011}"),
        ("paper.yaml", "{measures} by relative depth", "{measures} beside relative depth"),
    ):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))
    copy.write("changes.yaml", {"bad_checkpoints": "flag"})
    assert {"judge_claims", "draw_figure", "judge_checkpoints"} <= list_rules_with_changed_params(
        copy
    )
    copy.write("changes.yaml", {"measurement": {"neighbours": 130}})
    assert {MEASURE, "measure_controls"} <= list_rules_with_changed_params(copy)
    # Snakemake shows the change of a job only if no earlier job changes.
    recipe = {**tiny_runs.RECIPE, "learning_rate": 0.004}
    for rule, settings, model in (
        ("clean_corpus", {"corpus": {"first_bytes": 10**6}}, {}),
        ("pretrain_model", {}, {"pretraining": recipe}),
        ("write_findings", {}, {"label": "Small"}),
    ):
        copy.write("config/models/tiny.yaml", {"tiny": {**tiny_runs.MODEL, **model}})
        copy.write("changes.yaml", settings)
        assert rule in list_rules_with_changed_params(copy)


def test_one_changed_field_of_the_explorer_or_of_the_editing_of_blocks_reruns_them(copy):
    def list_rules(target: str, *only: str) -> set[str]:
        return list_rules_with_changed_params(copy, *only, "--", target)

    copy.write("config/models/tiny.yaml", {"tiny": {**tiny_runs.MODEL, "label": "Small"}})
    copy.write("changes.yaml", {})
    only = "--allowed-rules", "draw_explorer"  # findings name models by their labels, too
    assert list_rules("results/explorer.html", *only) == {"draw_explorer"}
    copy.write("changes.yaml", {"block_editing": EDITING})
    copy.snakemake(EDITS, *CHANGED_CONFIGURATION, "--quiet", "rules")
    assert copy.plan_jobs(EDITS, *CHANGED_CONFIGURATION) == {}
    for changes in ({"evaluation_windows": 9}, {"distillation_steps": 2}):
        copy.write("changes.yaml", {"block_editing": {**EDITING, **changes}})
        assert list_rules(EDITS) == {"edit_blocks"}


def list_rules_with_changed_params(copy: Checkout, *options: str) -> set[str]:
    """List the rules of jobs that run again because their parameters have changed."""
    output = copy.snakemake(*CHANGED_CONFIGURATION, "--dry-run", *options)
    jobs = re.split(r"^(?:local)?rule ", output, flags=re.MULTILINE)
    return {job.partition(":")[0] for job in jobs if "Params have changed" in job}


def test_changed_weights_with_their_old_time_rerun_the_forward_pass(copy):
    checkpoint = copy.folder / "results/pretrained/tiny/step1"
    shutil.copytree(checkpoint, copy.folder / "mine")
    copy.write("config/models/own.yaml", {"own": {"path": "mine"}})
    copy.write("changes.yaml", {"models": ["own"]})
    target = ("results/losses/own/main.csv", *CHANGED_CONFIGURATION)
    copy.snakemake(*target, "--quiet", "rules")
    assert copy.plan_jobs(*target) == {}
    shutil.move(copy.folder / "mine", copy.folder / "elsewhere")
    copy.write("config/models/own.yaml", {"own": {"path": "elsewhere"}})
    assert copy.plan_jobs(*target) == {}
    weights = copy.folder / "elsewhere/model.safetensors"
    replace_content(weights, flip_bit(weights.read_bytes()))
    assert copy.plan_jobs(*target)[FORWARD_PASS] == 1


def test_another_text_with_an_old_time_is_read_again(copy):
    text = copy.folder / "export.xml"
    replace_content(text, text.read_bytes().replace(b"the", b"tho", 1))
    assert {"fetch_corpus", FORWARD_PASS} <= copy.plan_jobs(*TINY).keys()


def test_a_figure_that_reads_further_tables_does_not_hide_other_changes(copy):
    """Snakemake compares no parameter of a job with an output that the job did not make before."""
    figures = {**tiny_runs.FIGURES, "massive_tokens": ["tiny"]}
    copy.write("changes.yaml", {"figures": figures, "sampling": {"windows": 31}})
    assert copy.plan_jobs(*CHANGED_CONFIGURATION)[FORWARD_PASS] == 2


def replace_content(file: Path, content: bytes) -> None:
    """Give a file another content and its old time."""
    status = file.stat()
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def flip_bit(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


# A damaged file is refused by the job that reads it.


@pytest.mark.parametrize(
    ("file", "damage", "target"),
    [
        ("layer_1.h5", flip_bit, "isotropy/layer_1.csv"),
        ("layer_0.h5", lambda content: content[: len(content) // 2], "dimension/layer_0.csv"),
    ],
)
def test_a_damaged_file_is_refused_with_its_name(copy, file, damage, target):
    target = f"results/measurements/tiny/step1/{target}"
    (copy.folder / target).unlink()
    states = copy.folder / "results/embeddings/tiny/step1" / file
    replace_content(states, damage(states.read_bytes()))
    # With this trigger no other job runs again.
    output = copy.snakemake(*TINY, "--rerun-triggers", "params", "--", target, succeeds=False)
    (sentence,) = {line for line in output.splitlines() if line.startswith("ERROR: ")}
    assert file in sentence
    assert re.search(r"delete .* run again|run again .*delete", sentence)
    assert "Traceback" not in output
    assert not (copy.folder / target).exists()
