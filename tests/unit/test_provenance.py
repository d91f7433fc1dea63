"""The description of a run is a valid RO-Crate, and its digests tell changes."""

import json
import subprocess
from pathlib import Path

import pytest

from shape_of_learning.files import compute_sha256, read_yaml
from shape_of_learning.provenance.crate import describe_run
from shape_of_learning.provenance.job import ProvenanceJob

INPUTS = ("corpus/text/alphabet.json", "checkpoints/hub/step 1.tensors.csv")
CONTENTS = {
    "figures/it's 100 % #1?.pdf": "drawing",
    "figures/it's 100 % #1?.md": "What it shows.",
    "tables/verdicts/hub.csv": "verdict\n",
    "corpus/text/alphabet.json": json.dumps(
        {
            "source": {"sha256": "raw"},
            "text": {"sha256": "clean", "characters": 95},
            "alphabet": [{}] * 9,
            "dropped": {"characters": 5},
            "changed": {"bytes_cut_off": 0},
        }
    ),
    "checkpoints/hub/step 1.tensors.csv": "tensor\n",
    "benchmarks/corpus/text.tsv": "s\tcpu_time\tmax_rss\n2.5\t1.25\t30.0\n",
    "benchmarks/short.tsv": "s\tcpu_time\tmax_rss\n0.1\t0\t-\n",
}
VALIDATOR = "roc-validator==0.13.0"
# The terms of the crate that the context of RO-Crate 1.1 takes from schema.org.
SCHEMA = """ComputerLanguage CreateAction CreativeWork Dataset ScholarlyArticle SoftwareApplication
SoftwareSourceCode about agent citation contentSize datePublished description encodingFormat endTime hasPart
identifier instrument license mainEntity memoryRequirements mentions name object operatingSystem
processorRequirements programmingLanguage result softwareRequirements softwareVersion url version"""
CONTEXT = {
    **{term: f"http://schema.org/{term}" for term in SCHEMA.split()},
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
    "File": "http://schema.org/MediaObject",
    "conformsTo": "http://purl.org/dc/terms/conformsTo",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "results"
    for name, content in CONTENTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    lock = folder.parent / "hub.yaml"
    lock.write_text("revisions: {}\n")
    outputs = [folder / name for name in CONTENTS if name.startswith(("figures", "tables"))]
    job = ProvenanceJob(
        name="",
        source="text",
        inputs=(*INPUTS, "checkpoints/hub/not measured.tensors.csv"),
        locks=(str(lock),),
        papers=(("A paper", "Nobody 2026"),),
        titles={"figures/it's 100 % #1?": "Figure 1 of A paper"},
        configuration={"run": None, "corpus": {"source": "text"}},
    )
    describe_run(job, outputs, folder / "ro-crate-metadata.json")
    return folder


@pytest.mark.long
def test_the_public_validator_accepts_the_crate(results, tmp_path):
    (tmp_path / "context.json").write_text(json.dumps({"@context": CONTEXT}))
    script = Path(__file__).parents[1] / "offline_validator.py"
    uv = ["uv", "run", "--no-project", "--with", VALIDATOR, "python"]
    if subprocess.run([*uv, "-c", "import rocrate_validator"], cwd=tmp_path).returncode:
        pytest.skip(f"uv cannot install {VALIDATOR}")
    subprocess.run([*uv, script, results, "context.json", "cache"], cwd=tmp_path, check=True)


def test_the_crate_names_outputs_inputs_and_software(results):
    graph = json.loads((results / "ro-crate-metadata.json").read_text())["@graph"]
    entities = {entity["@id"]: entity for entity in graph}
    entities_by_name = {item.get("name"): item for item in entities.values()}
    assert entities_by_name["Figure 1 of A paper"]["description"] == "What it shows."
    description = entities_by_name["corpus/text/alphabet.json"]["description"]
    assert description.startswith("Of the text text, 5 of 100 characters are left out")
    verdicts = "tables/verdicts/hub.csv"
    assert entities_by_name[verdicts]["sha256"] == compute_sha256(results / verdicts)
    assert len(entities["#run"]["result"]) == 3
    inputs = [entities[item["@id"]] for item in entities["#run"]["object"]]
    assert [item["name"] for item in inputs] == [*INPUTS, "provenance/locks/hub.yaml"]
    assert {item["@type"] for item in inputs} == {"File"}
    assert [item["sha256"] for item in inputs] == [
        compute_sha256(results / item["name"]) for item in inputs
    ]
    packages = entities["#environment"]["softwareRequirements"]
    assert [package for package in packages if package.startswith("numpy 2")]


def test_the_jobs_are_listed_with_time_and_memory(results):
    table = (results / "provenance/jobs.csv").read_text()
    assert table.splitlines()[1:] == ["corpus/text,2.5,1.25,30.0", "short,0.1,0,"]


def test_the_configuration_is_kept_as_yaml_for_another_run(results):
    settings = read_yaml(results / "provenance/configuration.yaml")
    assert settings == {"run": None, "corpus": {"source": "text"}}


def test_sha256sum_finds_a_changed_result(results, tmp_path):
    copy = tmp_path / "results"
    subprocess.run(["cp", "-r", results, copy], check=True)
    check = ["sha256sum", "--check", "--quiet", "provenance/outputs.sha256"]
    assert subprocess.run(check, cwd=copy).returncode == 0
    (copy / "tables/verdicts/hub.csv").write_text("another\n")
    run = subprocess.run(check, cwd=copy, capture_output=True, text=True)
    assert run.returncode == 1
    assert "tables/verdicts/hub.csv: FAILED" in run.stdout
