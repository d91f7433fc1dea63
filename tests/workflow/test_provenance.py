"""The description of a run: it is valid, true, and tells when a file is another."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy
import pytest
import torch
import transformers
import yaml

import tiny_runs
from checkouts import REPOSITORY, Checkout, check_out

VALIDATOR = "roc-validator==0.13.0"
TINY = ("--configfile", "tiny.yaml", "--cores", "2", "--quiet", "rules")
# What the context of RO-Crate 1.1 says of the terms that are used.
SCHEMA = """ComputerLanguage CreateAction CreativeWork Dataset ScholarlyArticle SoftwareApplication
SoftwareSourceCode about citation contentSize datePublished description encodingFormat endTime hasPart
identifier instrument isBasedOn license mainEntity memoryRequirements mentions name object operatingSystem
processorRequirements programmingLanguage result softwareRequirements softwareVersion startTime subjectOf
url version"""
CONTEXT = {
    **{term: f"http://schema.org/{term}" for term in SCHEMA.split()},
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
    "File": "http://schema.org/MediaObject",
    "conformsTo": "http://purl.org/dc/terms/conformsTo",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Checkout:
    """A run that has ended well. Tests work on copies."""
    checkout = check_out(tmp_path_factory.mktemp("described") / "checkout")
    settings = tiny_runs.set_up(checkout)
    checkout.write("tiny.yaml", settings | {"figures": tiny_runs.FIGURES | {"table_1": "all"}})
    checkout.snakemake(*TINY)
    return checkout


@pytest.fixture
def copy(finished, tmp_path) -> Checkout:
    subprocess.run(["cp", "-a", finished.folder, tmp_path / "copy"], check=True)
    return Checkout(tmp_path / "copy")


def described(checkout: Checkout) -> dict[str, dict]:
    text = (checkout.folder / "results/provenance/ro-crate-metadata.json").read_text()
    assert str(checkout.folder) not in text, "a path of this machine"
    return {entity["@id"]: entity for entity in json.loads(text)["@graph"]}


def verify(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """Run what `make verify` runs."""
    run = subprocess.run(
        [sys.executable, "-m", "shape_of_learning.provenance", *arguments],
        cwd=folder, env={"PYTHONPATH": str(REPOSITORY / "workflow")}, capture_output=True, text=True,
    )  # fmt: skip
    return run.returncode, (run.stdout + run.stderr).splitlines()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_public_validator_accepts_it(finished, tmp_path):
    (tmp_path / "context.json").write_text(json.dumps({"@context": CONTEXT}))
    script = REPOSITORY / "tests/offline_validator.py"
    uv = ["uv", "run", "--no-project", "--with", VALIDATOR, "python"]
    if subprocess.run([*uv, "-c", "import rocrate_validator"], cwd=tmp_path).returncode:
        pytest.skip(f"uv cannot install {VALIDATOR}")
    crate = finished.folder / "results/provenance"
    run = subprocess.run(
        [*uv, script, crate, "context.json", "cache"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    assert "workflow-run-crate-0.5" in run.stdout


def test_it_says_what_the_run_was_computed_from(finished):
    entities, results = described(finished), finished.folder / "results"
    assert entities["#corpus"]["sha256"] == sha256(finished.folder / "export.xml")
    assert entities["#text"]["sha256"] == sha256(results / "corpus/export/text.txt")
    for step in ("step0", "step1"):
        tensors = entities[f"#tiny@{step}"]["subjectOf"]["@id"]
        assert entities[tensors]["sha256"] == sha256(results / tensors)


def test_it_has_the_digest_of_each_result(finished):
    entities, results = described(finished), finished.folder / "results"
    shown = [results / "explorer.html", *results.glob("claims/*")]
    shown += [*results.glob("figures/*"), *results.glob("tables/*.*")]
    shown = [path for path in shown if path.is_file() and path.suffix != ".sha256"]
    assert len(shown) > 8
    for path in shown:
        assert entities[str(path.relative_to(results))]["sha256"] == sha256(path)
    assert {p["@id"] for p in entities["#run"]["result"]} == {
        str(p.relative_to(results)) for p in shown
    }
    assert entities["explorer.html"]["name"] == "All estimates and verdicts in one page"
    assert entities["claims/shape_of_learning.md"]["name"].startswith("Verdicts on The Shape of")


def test_the_digests_of_all_outputs_are_listed_as_sha256sum_checks_them(finished):
    results = finished.folder / "results"
    run = subprocess.run(
        ["sha256sum", "--check", "--strict", "provenance/outputs.sha256"],
        cwd=results, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    listed = {results / line.partition(": ")[0] for line in run.stdout.splitlines()}
    # Models are described by the digests of their tensors.
    beside = ("logs", "benchmarks", "provenance", "pretrained")
    outputs = {
        path
        for path in results.rglob("*")
        if path.is_file()
        and path.suffix != ".sha256"
        and path.relative_to(results).parts[0] not in beside
    }
    # The text is described as what the run was computed from.
    assert {path.relative_to(results).parts[0] for path in outputs - listed} == {"corpus"}
    assert listed < outputs


def test_it_says_by_what_each_rule_was_computed(finished):
    entities, provenance = described(finished), finished.folder / "results/provenance"
    environments = json.loads((provenance / "environments.json").read_text())
    rows = [line.split(",") for line in (provenance / "jobs.csv").read_text().splitlines()[1:]]
    made_in = {rule: environments[int(number) - 1] for rule, _, number, *_ in rows}
    forward, measured = made_in["dump_embeddings"], made_in["measure"]
    assert forward["software"]["torch"] == torch.__version__
    assert forward["software"]["transformers"] == transformers.__version__
    assert measured["software"]["numpy"] == numpy.__version__
    assert "torch" not in measured["software"]
    assert "blas" in measured["linear_algebra"]["numpy"].lower()
    assert forward["hardware"]["processor"]
    code = {environment["workflow"]["code"] for environment in environments}
    assert len(code) == 1
    assert all(len(digest) == 64 for digest in code)
    assert {e["workflow"]["state"] for e in environments} == {"unknown"}  # it is no repository
    actions = [each for each in entities if each.startswith("#dump_embeddings")]
    assert entities[actions[0]]["name"] == "dump_embeddings: 2 jobs"


def test_what_is_as_it_was_is_verified_where_it_lies_and_in_an_archive(copy, tmp_path):
    assert verify(copy.folder) == (0, ["results/provenance: every file is what the run wrote"])
    unpacked = tmp_path / "unpacked"
    subprocess.run(["cp", "-rL", copy.folder / "results/provenance", unpacked], check=True)
    assert verify(tmp_path, "unpacked")[0] == 0
    with (unpacked / "tables/estimates.csv").open("a") as file:
        file.write("\n")
    status, said = verify(tmp_path, "unpacked")
    assert status == 1
    assert [line.split()[0] for line in said] == ["unpacked/tables/estimates.csv"]


def test_each_file_that_differs_is_named(copy):
    figures, tables = copy.folder / "results/figures", copy.folder / "results/tables"
    content = bytearray((figures / "figure_1.png").read_bytes())
    content[1000] ^= 1
    (figures / "figure_1.png").write_bytes(content)
    (tables / "changes.csv").unlink()
    (tables / "mine.csv").write_text("x\n")
    status, said = verify(copy.folder)
    assert status == 1
    assert len(said) == 3, said
    assert "results/figures/figure_1.png has other bytes than the run wrote" in said[0]
    assert "results/tables/changes.csv is missing" in said[1]
    assert "results/tables/mine.csv is not among the files that the run wrote" in said[2]


def test_strangers_beside_results_are_named_wherever_they_lie(copy):
    results = copy.folder / "results"
    strangers = ["mine.txt", "mine/deep/notes.txt", "figures/drafts/figure_1.png"]
    for stranger in strangers:
        (results / stranger).parent.mkdir(parents=True, exist_ok=True)
        (results / stranger).write_text("x\n")
    (results / "README.md").write_text("Results.\n")
    status, said = verify(copy.folder)
    assert status == 1
    assert sorted(line.partition(" is not among")[0] for line in said) == sorted(
        f"results/{stranger}" for stranger in strangers
    )


def test_what_results_were_computed_from_is_compared_where_it_still_lies(copy):
    results = copy.folder / "results"
    measured = sorted(results.glob("measurements/tiny/*/*.csv"))[0]
    text = results / "corpus/export/text.txt"
    for path in (measured, text):
        path.write_text(path.read_text()[:-1])
    status, said = verify(copy.folder)
    assert status == 1
    assert [line.partition(" has other bytes")[0] for line in said] == [
        str(path.relative_to(copy.folder)) for path in (text, measured)
    ]
    for path in (measured, text):
        path.unlink()
    assert verify(copy.folder)[0] == 0, "what a run keeps to go on from may be removed"


def test_another_run_beside_this_one_is_no_stranger(copy):
    results = copy.folder / "results"
    subprocess.run(["cp", "-a", results, copy.folder / "other"], check=True)
    (copy.folder / "other").rename(results / "other")
    (results / "other/measurements/tiny/step0").joinpath("mine.txt").touch()
    described = ("results/provenance", "results/other/provenance")
    assert verify(copy.folder) == (
        0,
        [f"{each}: every file is what the run wrote" for each in described],
    )


def test_without_a_description_verify_says_what_to_do(tmp_path):
    (tmp_path / "results").mkdir()
    status, said = verify(tmp_path)
    assert status == 1
    assert len(said) == 1
    assert "results holds no description of a run" in said[0]
    assert "run `snakemake provenance` with its --configfile" in said[0]


def test_a_report_finds_its_configuration_and_holds_all_that_it_names(copy):
    copy.snakemake("--report", "report.zip")
    with zipfile.ZipFile(copy.folder / "report.zip") as archive:
        page = archive.read("report/report.html").decode()
        packed = set(archive.namelist())
    said = page.partition('<script id="results">')[2].partition("var results = ")[2]
    results, _ = json.JSONDecoder().raw_decode(said)
    assert {f"report/{each['data_uri']}" for each in results.values()} < packed
    figure = results["results/figures/figure_1.png"]
    assert figure["labels"] == {"result": "Figure 1", "as": "figure"}
    assert "48 windows of 64 characters" in figure["caption"]
    assert not [path for path, each in results.items() if not each["labels"]], (
        "shown by their paths"
    )
    assert "<table" in results["results/tables/table_1.csv"]["caption"]
    assert "dump_embeddings" in results["results/provenance/rules.csv"]["caption"]
    assert not [path for path, each in results.items() if "system-message" in each["caption"]]
    assert not [path for path, each in results.items() if not each["caption"]]
    assert {"results/tables/protocol.yaml", "results/tables/estimates.csv"} < results.keys()


def test_a_report_without_a_run_says_what_to_pass(checkout):
    said = checkout.snakemake("--report", "report.zip", succeeds=False)
    assert "give the report the --configfile that the run had" in said
    assert "Traceback" not in said
    for run in ("other", "provenance"):  # what describes a run holds its protocol, too
        protocol = checkout.folder / "results" / run / "tables/protocol.yaml"
        protocol.parent.mkdir(parents=True)
        protocol.write_text(yaml.safe_dump({"run": run}))
    said = checkout.snakemake("--report", "report.zip", succeeds=False)
    assert "`--config run=NAME` with one of other\n" in said
