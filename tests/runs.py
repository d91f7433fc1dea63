"""Tiny checkpoints on a few windows, their hidden states kept in memory as they come."""

import json
from dataclasses import dataclass, field

import numpy as np
import torch

from shape_of_learning.checkpoints.shapes import Shape, read_role
from shape_of_learning.embeddings.protocol import SamplingProtocol
from shape_of_learning.embeddings.run import SampleRun
from tiny_models import WIDTHS

WINDOWS = [
    "the shape of what a model learns",
    "Layers, tokens; windows of text. " * 3,
    "x",
    "a model a b c of windows",
    "tokens of tokens of tokens",
]


@dataclass
class Kept:
    """A store of hidden states: arrays by layer, and the loss."""

    device = "cpu"
    sample: SampleRun
    states: list = field(default_factory=list)

    def __post_init__(self):
        shapes = [(self.sample.tokens, width) for width in self.sample.widths]
        self.states = [np.full(shape, np.nan, dtype=np.float32) for shape in shapes]

    def write(self, state, rows, values):
        assert values.dtype == np.float32
        self.states[state][rows] = values


def sample_of(checkpoint, widths, windows=WINDOWS, *, role=None, device="cpu", **options):
    """The windows and the checkpoint, in the role it says itself."""
    configuration = checkpoint / "config.json"
    if role is None and configuration.exists():
        role = read_role(json.loads(configuration.read_text()))
    protocol = {key: options.pop(key) for key in ("precision", "last_layer") if key in options}
    return SampleRun.load(
        checkpoint,
        windows,
        SamplingProtocol(len(windows), 0, 0, **protocol),
        Shape(role or "decoder", len(widths) - 1, widths[0], widths[-1]),
        device=torch.device(device),
        **options,
    )


def run(checkpoint, name, windows=WINDOWS, **options):
    """Run a tiny model of that architecture; what is kept of it."""
    kept = Kept(sample_of(checkpoint, WIDTHS.get(name, [32] * 4), windows, **options))
    kept.loss = kept.sample.store_states(kept)
    return kept


def loss_of(checkpoint, name, windows=WINDOWS, **options):
    """The cross-entropy of a tiny model."""
    return run(checkpoint, name, windows, **options).loss
