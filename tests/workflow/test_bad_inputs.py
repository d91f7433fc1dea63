"""Every bad input of the table ends in one sentence and a non-zero exit, and leaves nothing behind."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import tiny_runs
from bad_inputs import JOB, Case, cases
from bad_jobs import ADD_DIGEST, VARIABLES
from checkouts import REPOSITORY
from forking import Forks, forks
from shape_of_learning.storage.digests import add_digest
from tiny_models import CONFIGURATIONS, save_tiny_model, with_head

CASES = cases()
SCRIPTS = REPOSITORY / "workflow/scripts"
DRY_RUN = ("--dry-run", "--quiet", "rules", "--cores", "1", "--workflow-profile", "none")
# What Snakemake and the log of a job may leave, and nothing of a final name.
HARMLESS = (".snakemake", "log", ".cache")
# Sentences of Snakemake's own, which has no prefix for them.
OF_SNAKEMAKE = ("not valid JSON or YAML", "with keys at top level")


@pytest.fixture(scope="module")
def forked() -> Iterator[Forks]:
    with forks() as process:
        yield process


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> Path:
    """A model that runs."""
    return save_tiny_model(tmp_path_factory.mktemp("model") / "weights", "gpt_neox", head=True)


def lay_out(case: Case, folder: Path) -> None:
    """Write the files of a case."""
    for name, content in case.files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            file.unlink()
        elif name == "weights":  # other weights, with the tokenizer as it is
            config = CONFIGURATIONS["gpt_neox"]()
            config.update(content)
            with_head("gpt_neox").from_config(config).save_pretrained(file)
        elif file.suffix == ".json" and isinstance(content, dict):
            file.write_text(json.dumps(json.loads(file.read_text()) | content))
        elif content == ADD_DIGEST:
            add_digest(file.with_suffix(""))
        elif isinstance(content, bytes):
            file.write_bytes(content)
        else:
            file.write_text(yaml.safe_dump(content, sort_keys=False))


def everything(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    names = {str(path.relative_to(folder)): path for path in files}
    return {n: path.read_bytes() for n, path in names.items() if n.split("/")[0] not in HARMLESS}


def test_there_are_enough_and_each_has_a_name_of_its_own():
    assert len(CASES) >= 150
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.when}: {case.name}")
def test_it_is_refused_in_one_sentence(case, forked, weights, tmp_path):
    variables = {"HF_HOME": str(tmp_path / ".cache"), **VARIABLES.get(case.name, {})}
    if case.when == JOB:
        shutil.copytree(weights, tmp_path / "weights")
        (tmp_path / "text.txt").write_text("the shape of what a model learns, in words. " * 40)
        script, *given = case.arguments
        arguments = [str(SCRIPTS / script), *given, "--log=log"]
    else:
        configured = ["--configfile", str(REPOSITORY / "config/demo.yaml")]
        if "case.yaml" in case.files:
            configured.append("case.yaml")
        own = [] if case.arguments[:1] == ("--config",) else ["--"]
        snakefile = ("--snakefile", str(REPOSITORY / "Snakefile"))
        arguments = ["snakemake", *DRY_RUN, *snakefile, *configured, *own, *case.arguments]
    lay_out(case, tmp_path)
    before = everything(tmp_path)

    status, said = forked.run(tmp_path, arguments, **variables)

    assert status == 1, said[-2000:]
    lines = [line for line in said.splitlines() if line.strip()]
    refusals = [line for line in lines if case.sentence in line]
    assert len(refusals) == 1, said[-3000:]
    (sentence,) = refusals
    assert sentence.startswith("ERROR: ") or any(words in sentence for words in OF_SNAKEMAKE)
    assert len(sentence) < 1200
    assert sentence.isprintable()
    assert "Traceback" not in said
    assert 'File "' not in said
    assert lines[-1] == sentence, "it is the last word"
    assert everything(tmp_path) == before


def refused(checkout, changes: dict, *arguments: str) -> str:
    """What the real command prints in a real run, which fails."""
    checkout.write("changes.yaml", changes)
    return checkout.snakemake(
        "--configfile",
        "config/demo.yaml",
        "changes.yaml",
        "--cores",
        "1",
        *arguments,
        succeeds=False,
    )


def test_a_corpus_with_a_wrong_hash_is_refused(checkout):
    text = checkout.folder / "mine.txt"
    text.write_text("some words\n" * 1000)
    source = {"urls": [str(text)], "format": "text", "sha256": "0" * 64}
    said = refused(checkout, {"corpus": {"source": "mine", "sources": {"mine": source}}})
    assert "sha256" in said.lower()
    assert "mine" in said
    assert "Traceback" not in said
    assert not list((checkout.folder / "resources").rglob("mine*"))


def test_a_corpus_too_small_for_the_windows_is_refused(checkout):
    text = checkout.folder / "mine.txt"
    text.write_text("some words\n" * 1000)
    source = {"urls": [str(text)], "format": "text"}
    checkout.write("config/models/mine.yaml", {"mine": tiny_runs.MODEL})
    changes = {
        "models": ["mine"],
        "corpus": {"source": "mine", "sources": {"mine": source}},
        "figures": {"figure_2": ["mine"], "figure_3": ["mine"]},
    }
    said = refused(checkout, changes)
    assert "sampling.windows" in said
    assert "Traceback" not in said
    assert not (checkout.folder / "results/embeddings").exists()
    assert not checkout.partial_files()
