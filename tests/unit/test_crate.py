"""The description of a run, of results that are made up."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shape_of_learning.checkpoints.weight_listing import WeightFile, WeightListing

import shape_of_learning
from shape_of_learning.checkpoints.lock import Lock, LockedRevision, write_lock
from shape_of_learning.errors import InputError
from shape_of_learning.provenance.crate import WrittenFiles, write_crate
from shape_of_learning.provenance.described_run import DescribedRun
from shape_of_learning.provenance.job_list import Job
from shape_of_learning.provenance.verification import described_runs, differences

WORKFLOW = Path(shape_of_learning.__file__).parents[1]
COMMIT, HARD = "0123456789" * 4, "it's 100 % #1?"
RUN = DescribedRun(
    name=HARD,
    source="text",
    models={"hub": ("From the Hub", ["step1"]), HARD: ("Own", ["main", "not measured"])},
    papers=[("A paper", "Nobody 2026")],
    titles={f"figures/{HARD}": "Figure 1 of A paper"},
)
JOB = Job(
    name="measurements/x",
    record={
        "rule": "measure",
        "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T00:01:00+00:00",
        "environment": {
            "workflow": {"version": "1", "commit": COMMIT, "state": "dirty", "code": "c"},
            "software": {"python": "3.11.2", "numpy": "2.4.6"},
            "linear_algebra": {"numpy": "BLAS openblas 0.3"},
            "hardware": {"processor": "P", "cores": 2, "memory_gib": 8, "gpus": ["G"]},
            "system": "Linux",
        },
    },
    seconds=2.0,
    cpu_seconds=1.0,
    max_rss_mb=3.0,
)


@pytest.fixture
def crate(tmp_path):
    results = tmp_path / "results"
    written = {
        f"figures/{HARD}.pdf": "drawing",
        f"figures/{HARD}.md": "What it shows.",
        "tables/verdicts/hub.csv": "verdict\n",
        "corpus/text/source.json": '{"sha256": "raw"}',
        "corpus/text/alphabet.json": '{"text": {"sha256": "clean"}}',
        "checkpoints/hub/step1.tensors.csv": "tensor\n",
        f"checkpoints/{HARD}/main.tensors.csv": "tensor\n",
    }
    for name, content in written.items():
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).write_text(content)
    outputs = [results / name for name in written if name.startswith(("figures", "tables"))]
    weights = WeightListing(COMMIT, {"model.safetensors": WeightFile(1, f"sha256:{'a' * 64}")})
    lock = tmp_path / "config/locks/hub.yaml"
    write_lock(lock, Lock(revisions={"step1": LockedRevision("some/model", "b1", "", weights)}))
    (tmp_path / "Snakefile").write_text("rule all:\n")
    files = WrittenFiles(results, outputs, [lock], tmp_path / "Snakefile")
    for _ in range(2):  # it takes the place of an earlier one
        write_crate(results / "provenance", files, RUN, [JOB])
    return results / "provenance"


def entities(crate):
    return json.loads((crate / "ro-crate-metadata.json").read_text())["@graph"]


def named(crate, name):
    (found,) = [each for each in entities(crate) if each.get("name") == name]
    return found


def test_a_checkpoint_of_the_hub_has_its_commit_and_one_that_was_not_run_is_none(crate):
    weights = named(crate, "Weights of From the Hub, step1")
    assert weights["version"] == COMMIT
    assert weights["url"] == f"https://huggingface.co/some/model/tree/{COMMIT}"
    assert (crate / "locks/hub.yaml").read_text().count(COMMIT) == 1
    names = [each.get("name", "") for each in entities(crate)]
    assert "Weights of Own, main" in names
    assert not [name for name in names if "not measured" in name]


def test_a_figure_has_its_title_and_its_caption(crate):
    described = [each for each in entities(crate) if each.get("name") == "Figure 1 of A paper"]
    assert {each["description"] for each in described} == {"What it shows."}
    assert len(described) == 2


def test_an_environment_says_software_hardware_and_state_of_the_workflow(crate):
    environment = named(crate, "Environment 1")
    assert environment["softwareVersion"] == f"1, commit {COMMIT}, dirty, code c"
    assert environment["processorRequirements"] == "P, 2 cores; G"
    packages = [each["@id"] for each in environment["softwareRequirements"]]
    assert sorted(packages) == ["#numpy-2.4.6", "#python-3.11.2"]
    assert named(crate, "measure: 1 job")["instrument"] == {"@id": "#environment-1"}


def test_hard_names_are_verified_wherever_the_results_are_moved(crate, tmp_path):
    assert list(differences(crate)) == []
    (tmp_path / "results").rename(tmp_path / "elsewhere")
    (moved,) = described_runs(tmp_path / "elsewhere")
    assert list(differences(moved)) == []
    (tmp_path / "elsewhere/figures" / f"{HARD}.pdf").write_text("another")
    (tmp_path / "elsewhere/figures" / f"{HARD}.pdf.bak").write_text("drawing")
    (tmp_path / "elsewhere/tables/verdicts/hub.csv.sha256").write_text("of a result\n")
    changed, stranger = differences(moved)
    assert f"{HARD}.pdf has other bytes" in changed
    assert f"{HARD}.pdf.bak is not among the files" in stranger


def said(crate):
    """What is said of each file that differs, of names without blanks."""
    return dict(each.split(" ", 1) for each in differences(crate) if HARD not in each)


def test_a_folder_that_was_renamed_is_missing_and_its_files_are_strangers(crate):
    results = crate.parent
    (results / "tables").rename(results / "old")
    found = said(crate)
    assert list(found) == [str(results / each / "verdicts/hub.csv") for each in ("tables", "old")]
    (results / "old").rename(results / "tables")
    (results / "tables/verdicts/hub.csv").unlink()
    (results / "tables/verdicts/hub.csv").symlink_to("/nowhere/hub.csv")
    assert list(found)[:1] == list(said(crate))


def test_a_result_may_be_a_link_and_nothing_beside_where_it_leads_is_a_stranger(crate, tmp_path):
    table, kept = crate.parent / "tables/verdicts/hub.csv", tmp_path / "home/hub.csv"
    kept.parent.mkdir()
    kept.with_name("private.txt").write_text("x\n")
    table.rename(kept)
    table.symlink_to(kept)
    (crate.parent / "figures").rename(tmp_path / "disk")
    (crate.parent / "figures").symlink_to(tmp_path / "disk")
    assert said(crate) == {}
    kept.write_text("another\n")
    table.with_name("link").symlink_to(kept.parent)
    found = said(crate)
    assert list(found) == [str(table), str(table.with_name("link"))]
    assert found[str(table)].startswith("has other bytes")


def test_results_are_compared_where_a_copy_followed_their_links(crate, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(crate.parent, copy)
    assert not (copy / "provenance/tables/verdicts/hub.csv").is_symlink()
    assert said(copy / "provenance") == {}
    table = copy / "tables/verdicts/hub.csv"
    table.write_text("another\n")
    assert list(said(copy / "provenance")) == [str(table)]
    table.unlink()
    assert list(said(copy / "provenance")) == [str(table)]


def test_a_name_that_is_no_text_is_shown(crate):
    Path(os.fsdecode(os.fsencode(crate.parent / "tables/verdicts") + b"/\xfc.csv")).touch()
    environment = {"PYTHONPATH": str(WORKFLOW), "PYTHONIOENCODING": "utf-8:strict"}
    verify = [sys.executable, "-m", "shape_of_learning.provenance", crate]
    run = subprocess.run(verify, capture_output=True, text=True, env=environment)
    assert (run.returncode, run.stderr) == (1, "")
    assert "hub.csv" not in run.stdout
    assert "fc.csv is not among the files that the run wrote" in run.stdout


def without(key):
    return lambda entity: entity.pop(key, None)


@pytest.mark.parametrize(
    "change",
    [
        *map(without, ("@id", "@type", "subjectOf", "sha256")),
        lambda entity: entity.update({"@id": "../../home/"}),
        lambda entity: entity.update({"@id": 5}),
        lambda entity: entity.clear(),
    ],
)
def test_a_description_of_another_kind_is_refused(crate, change):
    file = crate / "ro-crate-metadata.json"
    content = json.loads(file.read_text())
    for entity in content["@graph"]:
        change(entity)
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match="is no description of a run; delete it"):
        list(differences(crate))


def test_runs_with_names_are_found_beside_the_one_without(crate, tmp_path):
    named = tmp_path / "results/other/provenance"
    named.mkdir(parents=True)
    (named / "ro-crate-metadata.json").write_text("{}")
    assert described_runs(tmp_path / "results") == [crate, named]
    assert described_runs(crate) == [crate]
    with pytest.raises(ValueError, match="is no description of a run; delete it"):
        list(differences(named))
