"""The chains that are disturbed: a small one that has every kind of rule, and the demo."""

import hashlib
import os
from pathlib import Path

from checkouts import Checkout
from exports import pages, write_export
from tiny_models import save_tiny_model
from tiny_runs import RECIPE

# Of the demo's own corpus, which the small chain does not need, so that this rule is there, too.
WRAPPED = "resources/corpus/python_topics.raw"
# No measure of ours is taken of spectra.
SPECTRA = "results/spectra/pretrained/step1/layer_1.h5"


def demo(_: Checkout) -> list[str]:
    """Return the arguments that a run of the demo takes."""
    return ["--configfile", "config/demo.yaml", "--cores", "2"]


def small(checkout: Checkout) -> list[str]:
    """Write a configuration of three small models and return the arguments that a run takes.

    One is pretrained, one is that fine-tuned, and one is fetched from a Hugging Face cache, as without a
    network.
    """
    corpus = checkout.folder / "export.xml"
    write_export(corpus, pages(40))
    fill_cache(checkout.folder / "hf", "org/model")
    models = {
        "pretrained": {
            "role": "encoder",
            "layers": 2,
            "hidden_size": 16,
            "pretraining": {**RECIPE, "architecture": "bert", "context": 512},
        },
        "fetched": {
            "role": "decoder",
            "layers": 3,
            "hidden_size": 32,
            "repository": "org/model",
        },
        "tuned": {
            "finetuning": {
                **{"of": "pretrained", "task": "topic", "learning_rate": 0.001, "batch_size": 128},
                **{"epochs": 1, "seed": 0, "threads": 1},
            },
            "training": {"steps": {"linear": 2}},
        },
    }
    checkout.write("config/models/small.yaml", models)
    source = {"urls": [corpus.name], "format": "mediawiki"}
    settings = {
        "models": list(models),
        "corpus": {"source": "export", "sources": {"export": source}},
        "tasks": {"topic": {"most": {"train": 128, "held_out": 64}}},
        "sampling": {"windows": 24, "window_characters": 64},
        "measurement": {"batch_vectors": 600, "estimators": ["anisotropy", "mom"]}
        | {"for_figures_only": ["tuned"]},
        "figures": {
            **{f"figure_{number}": [] for number in (2, 3, 4, 5)},
            "anisotropy_measures": [],
            "dimension_by_scale": [],
            "figure_1": ["pretrained", "fetched"],
            "loss_by_step": ["pretrained"],
            "table_1": ["pretrained"],
            **{f"linear_{name}": [] for name in ("figure_1", "figure_3", "first_token")},
            "linear_figure_6": ["fetched"],
            "linear_table_1": ["tuned"],
            "inherent_figure_1": ["fetched"],
            "finetuning_figure_1": ["tuned"],
        },
        "block_editing": {"fitting_windows": 24, "evaluation_windows": 2, "most_blocks": 1},
    }
    checkout.write("small.yaml", settings)
    configuration = ["--configfile", "config/demo.yaml", "small.yaml"]
    return [*configuration, "--cores", "2", "--", "all", WRAPPED, SPECTRA]


def fill_cache(home: Path, repository: str) -> None:
    """Put a tiny model into a Hugging Face cache, laid out as the client does it."""
    cache = home / "hub" / f"models--{repository.replace('/', '--')}"
    commit = hashlib.sha1(repository.encode(), usedforsecurity=False).hexdigest()
    for folder in ("refs", "blobs", f"snapshots/{commit}"):
        (cache / folder).mkdir(parents=True)
    (cache / "refs" / "main").write_text(commit)
    source = save_tiny_model(home / "source", "gpt_neox", head=True)
    for file in source.iterdir():
        blob = cache / "blobs" / hashlib.sha256(file.read_bytes()).hexdigest()
        file.rename(blob)
        link = cache / "snapshots" / commit / file.name
        link.symlink_to(os.path.relpath(blob, link.parent))
    source.rmdir()
