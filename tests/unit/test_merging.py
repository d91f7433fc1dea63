"""Defaults, the folder of a run, and a corpus that the configuration contradicts."""

import json

import pytest

from shape_of_learning.errors import InputError
from shape_of_learning.plan.corpus_receipt import check_receipt
from shape_of_learning.plan.merging import results_folder, with_defaults
from shape_of_learning.script_arguments.settings import (
    export_plumbing_settings,
    with_plumbing,
    without_plumbing,
)


@pytest.fixture
def defaults(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("seed: 0\nforward: {threads: 8, precision: float32}\nmodels: [a, b]\n")
    return path


def test_sections_are_merged_and_lists_replaced(defaults):
    given = {"forward": {"threads": 2}, "models": ["c"], "run": "mine"}
    assert with_defaults(given, defaults) == {
        "seed": 0,
        "forward": {"threads": 2, "precision": "float32"},
        "models": ["c"],
        "run": "mine",
    }


def test_what_is_wrong_is_left_to_the_schema(defaults):
    assert with_defaults({"forward": 3}, defaults)["forward"] == 3


def test_a_run_has_a_folder_in_results():
    assert results_folder(None) == "results"
    assert results_folder("large-1.b") == "results/large-1.b"


RECEIPT = {"size": 10, "sha256": "ab", "git_blob": "cd", "distinct_bytes": 5}


def test_a_receipt_agrees_with_what_the_configuration_says(tmp_path):
    receipt = tmp_path / "source.json"
    check_receipt("x", {"sha256": "ef"}, receipt)  # nothing has been fetched
    receipt.write_text(json.dumps(RECEIPT))
    check_receipt("x", {"bytes": 10, "sha256": "ab", "urls": ["y"]}, receipt)


@pytest.mark.parametrize("fact", [{"bytes": 11}, {"sha256": "ef"}, {"git_blob": "ab"}])
def test_a_configuration_that_describes_another_corpus_is_refused(tmp_path, fact):
    receipt = tmp_path / "source.json"
    receipt.write_text(json.dumps(RECEIPT))
    with pytest.raises(InputError, match=rf"corpus\.sources\.x\.{next(iter(fact))}"):
        check_receipt("x", fact, receipt)


def test_a_damaged_receipt_is_named(tmp_path):
    receipt = tmp_path / "source.json"
    receipt.write_text("{")
    with pytest.raises(InputError, match=r"source\.json is damaged"):
        check_receipt("x", {}, receipt)


def test_what_no_number_depends_on_travels_by_itself(monkeypatch):
    monkeypatch.delenv("SHAPE_OF_LEARNING_SETTINGS", raising=False)
    sources = {"x": {"urls": ["y"], "format": "text", "bytes": 3}, "z": {"builtin": "z"}}
    settings = {
        "seed": 0,
        "corpus": {"source": "x", "sources": sources},
        "tasks": {"a": {"urls": ["b"], "sha256": "c"}, "d": {"builtin": "e"}},
        "forward": {"batch_size": "auto", "threads": 8, "precision": "float32"},
        "pretraining": {"layers": 2},
    }
    deciding = without_plumbing(settings)
    assert deciding["forward"] == {"precision": "float32"}
    assert deciding["corpus"]["sources"] == {"x": {"format": "text"}}
    assert deciding["tasks"] == {"a": {"sha256": "c"}, "d": {"builtin": "e"}}
    export_plumbing_settings(settings)
    assert with_plumbing(deciding) == settings
    replacing_nothing = {**settings, "pretraining": {}}
    del deciding["pretraining"]
    assert without_plumbing(replacing_nothing) == deciding
