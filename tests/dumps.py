"""Dumps of tiny checkpoints, as several tests make them."""

import json

import numpy as np
import torch

from shape_of_learning.checkpoints.model_entry import role_of
from shape_of_learning.embeddings.dump import dump_embeddings
from shape_of_learning.embeddings.sample_run import SampleProtocol, SampleRun
from tiny_models import WIDTHS

WINDOWS = [
    "the shape of what a model learns",
    "Layers, tokens; windows of text. " * 3,
    "x",
    "a model a b c of windows",
    "tokens of tokens of tokens",
]


def sample_of(
    checkpoint, widths, windows=WINDOWS, *, role=None, threads=1, device="cpu", **protocol
):
    """The windows and the checkpoint, in the role it says itself."""
    configuration = checkpoint / "config.json"
    if role is None and configuration.exists():
        role = role_of(json.loads(configuration.read_text()))
    return SampleRun.load(
        checkpoint,
        windows,
        role=role or "decoder",
        widths=widths,
        protocol=SampleProtocol(**protocol),
        masking=np.random.default_rng(0),
        threads=threads,
        device=torch.device(device),
    )


def dump(checkpoint, destination, widths, windows=WINDOWS, **options):
    """Dump them; number of tokens and cross-entropy."""
    sample = sample_of(checkpoint, widths, windows, **options)
    return sample.batches.tokens, dump_embeddings(sample, destination, {"model": "tiny"})


def cross_entropy(checkpoint, destination, name, windows=WINDOWS, **options):
    """Dump a tiny model of that architecture; its cross-entropy."""
    _, measured = dump(checkpoint, destination, WIDTHS.get(name, [32] * 4), windows, **options)
    return measured
