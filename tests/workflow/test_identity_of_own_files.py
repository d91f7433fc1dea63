"""Files of the user's count by their content: wherever they lie, whatever their times say."""

import os
import re
import shutil
import subprocess

import pytest

import tiny_runs
from checkouts import Checkout, check_out, replaced
from conda_standin.base import lay_out
from tiny_models import save_tiny_model

FORWARD_PASS, MEASURE = "dump_embeddings", "measure"
OWN = ("--configfile", "own.yaml", "--cores", "2")
WEIGHTS = "my $(touch X) {weights}"  # a folder
TEXT = "texts {of} mine/text.txt"
FIGURES = {**tiny_runs.FIGURES, "figure_1": []}


def write_settings(checkout: Checkout, *urls: str, first_bytes: int | None = None) -> None:
    source = {"urls": list(urls), "format": "text"}
    settings = {
        "models": ["own"],
        "corpus": {"source": "mine", "first_bytes": first_bytes, "sources": {"mine": source}},
        "sampling": {"windows": 48, "window_characters": 64},
        "measurement": {"batch_vectors": 400, "estimators": ["anisotropy", "two_nn"]},
        "figures": FIGURES,
    }
    checkout.write("own.yaml", settings)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Checkout:
    """A run of a local model without a head, whose loss is undefined, on a local text."""
    checkout = check_out(tmp_path_factory.mktemp("own") / "checkout")
    save_tiny_model(checkout.folder / WEIGHTS, "bert")
    checkout.write("config/models/own.yaml", {"own": {"path": WEIGHTS, "role": "encoder"}})
    text = checkout.folder / TEXT
    text.parent.mkdir()
    text.write_text("".join(f"the shape of what model {n} learns, " for n in range(2000)))
    write_settings(checkout, TEXT)
    checkout.snakemake(*OWN, "--quiet", "rules")
    assert checkout.planned(*OWN) == {}
    return checkout


@pytest.fixture
def copy(finished, tmp_path) -> Checkout:
    subprocess.run(["cp", "-a", finished.folder, tmp_path / "copy"], check=True)
    return Checkout(tmp_path / "copy")


def test_other_weights_with_an_old_time_are_a_reason(copy):
    file = copy.folder / WEIGHTS / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    replaced(file, bytes(content))
    planned = copy.planned(*OWN)
    assert planned[FORWARD_PASS] == 1
    assert planned[MEASURE] == 2


def test_times_places_and_notes_are_no_reason(copy):
    for file in [*(copy.folder / WEIGHTS).iterdir(), copy.folder / TEXT]:
        os.utime(file, (2_000_000_000, 2_000_000_000))
    (copy.folder / WEIGHTS / "notes.txt").write_text("the best of them")
    shutil.move(copy.folder / WEIGHTS, copy.folder / "elsewhere")
    copy.write("config/models/own.yaml", {"own": {"path": "elsewhere", "role": "encoder"}})
    assert copy.planned(*OWN) == {}


def test_another_text_with_an_old_time_is_a_reason(copy):
    file = copy.folder / TEXT
    replaced(file, file.read_bytes().upper())
    assert copy.planned(*OWN)["fetch_corpus"] == 1


def test_a_copy_of_the_text_and_one_that_is_gone_are_no_reason(copy):
    shutil.copy(copy.folder / TEXT, copy.folder / "copy.txt")
    write_settings(copy, "https://example.org/text.txt", "copy.txt", TEXT)
    assert copy.planned(*OWN) == {}
    write_settings(copy, "https://example.org/text.txt", "gone.txt")
    assert copy.planned(*OWN) == {}


def test_a_forward_pass_on_another_text_is_measured_though_its_loss_is_the_same(copy):
    write_settings(copy, TEXT, first_bytes=40_000)
    loss = copy.folder / "results/losses/own/main.csv"
    before = loss.read_bytes()
    copy.snakemake(*OWN, "--quiet", "rules", "--", "results/losses/own/main.csv")
    assert loss.read_bytes() == before
    assert copy.planned(*OWN)[MEASURE] == 2


def test_a_text_that_was_cut_is_noticed_where_it_is_used(copy):
    text = copy.folder / "results/corpus/mine/text.txt"
    text.write_bytes(text.read_bytes()[:-100])
    loss = "results/losses/own/main.csv"
    (copy.folder / loss).unlink()
    said = copy.snakemake(*OWN, "--", loss, succeeds=False)
    assert re.search(r"text\.txt is not the text that .*alphabet\.json describes", said)


def test_the_words_of_logs_and_errors_are_no_reason(copy):
    file = copy.folder / "workflow/shape_of_learning/embeddings/sample_run.py"
    source = file.read_text()
    assert "logger.warning(" in source
    file.write_text(source.replace("holds NaN or infinity", "holds no number"))
    assert copy.planned(*OWN) == {}


def test_conda_environments_that_lie_elsewhere_are_no_reason(copy, tmp_path):
    conda = lay_out(tmp_path / "conda")
    path = {"PATH": f"{conda}{os.pathsep}{os.environ['PATH']}"}
    said = copy.snakemake(*OWN, "--use-conda", "--dry-run", environment=path)
    assert "Nothing to be done" in said
