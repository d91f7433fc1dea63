"""The smallest run of the whole chain."""

from checkouts import Checkout
from exports import make_pages, write_export

# The shortest pretraining saves two steps, 0 and 1.
RECIPE = {
    "architecture": "gpt_neox",
    "attention_heads": 2,
    "vocabulary": 300,
    "context": 128,
    "batch_size": 2,
    "learning_rate": 0.003,
    "warmup_steps": 0,
    "last_step": 1,
    "threads": 1,
}
MODEL = {"role": "decoder", "layers": 1, "hidden_size": 16, "pretraining": RECIPE}
FIGURES = {
    "figure_1": "all",
    **{f"figure_{number}": [] for number in (2, 3, 4, 5)},
    "anisotropy_measures": [],
    "dimension_by_scale": [],
    "loss_by_step": [],
    "massive_tokens": [],
    "table_1": [],
}


def set_up(checkout: Checkout, name: str = "tiny") -> dict:
    """Write a corpus of 40 pages, a model and ``tiny.yaml``; return the content of ``tiny.yaml``."""
    write_export(checkout.folder / "export.xml", make_pages(40))
    checkout.write("config/models/tiny.yaml", {name: MODEL})
    source = {"urls": ["export.xml"], "format": "mediawiki"}
    settings = {
        "models": [name],
        "corpus": {"source": "export", "sources": {"export": source}},
        "sampling": {"windows": 48, "window_characters": 64},
        # The distances of a batch are more than the megabyte up to which Snakemake compares digests.
        "measurement": {"batch_vectors": 1400, "estimators": ["anisotropy", "two_nn"]},
        "figures": FIGURES,
    }
    checkout.write("tiny.yaml", settings)
    return settings
