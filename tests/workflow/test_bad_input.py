"""Mistakes end in one clear sentence, a non-zero exit and nothing half-written."""

import pytest

import tiny_runs


def refused(checkout, changes: dict, *arguments: str) -> str:
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


def test_a_configuration_error_comes_before_any_job(checkout):
    said = refused(checkout, {"models": ["demo-decodr"]})
    assert "unknown model `demo-decodr`; did you mean `demo-decoder`?" in said
    assert "Traceback" not in said
    assert not (checkout.folder / "results").exists()


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


def test_a_figure_that_is_left_out_says_so_when_it_is_asked_for(checkout):
    said = refused(checkout, {"models": ["gpt2"]}, "figure_2")
    assert "figure_2 is left out" in said


@pytest.mark.parametrize("dry", [[], ["--dry-run"], ["--dry-run", "--quiet", "rules"]])
def test_what_is_left_out_is_said_once(checkout, dry):
    checkout.write("changes.yaml", {"models": ["demo-decoder"], "figures": {"figure_3": ["gpt2"]}})
    said = checkout.snakemake(
        *("--configfile", "config/demo.yaml", "changes.yaml", "--cores", "1", *dry),
        *("--", "results/tables/protocol.yaml"),
    )
    assert said.count("NOTE: figure_3 is left out") == 1
