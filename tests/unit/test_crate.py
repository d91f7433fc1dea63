"""The description of a run, of results that are made up."""

import json

import pytest

from shape_of_learning.checkpoints.lock import Lock, LockedRevision, write_lock
from shape_of_learning.checkpoints.weight_listing import WeightFile, WeightListing
from shape_of_learning.provenance.crate import WrittenFiles, write_crate
from shape_of_learning.provenance.described_run import DescribedRun
from shape_of_learning.provenance.job_list import Job
from shape_of_learning.provenance.verification import described_runs, differences

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


def test_runs_with_names_are_found_beside_the_one_without(crate, tmp_path):
    named = tmp_path / "results/other/provenance"
    named.mkdir(parents=True)
    (named / "ro-crate-metadata.json").write_text("{}")
    assert described_runs(tmp_path / "results") == [crate, named]
    assert described_runs(crate) == [crate]
    with pytest.raises(ValueError, match="is no description of a run; delete it"):
        list(differences(named))
