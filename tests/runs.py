"""Runs of tiny checkpoints on a few windows, whose hidden states stay in memory."""

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
class StoredStates:
    """A store of hidden states as arrays by layer, with the loss."""

    device = "cpu"
    sample: SampleRun
    states: list = field(default_factory=list)

    def __post_init__(self):
        shapes = [(self.sample.tokens, width) for width in self.sample.widths]
        self.layers = len(shapes) - 1
        self.states = [np.full(shape, np.nan, dtype=np.float32) for shape in shapes]

    def write(self, state, rows, values):
        assert values.dtype == np.float32
        self.states[state][rows] = values


def load_sample(checkpoint, widths, windows=WINDOWS, *, role=None, device="cpu", **options):
    """Load a checkpoint and its windows, by default in the role that its configuration states."""
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
    """Run a tiny model of an architecture and return its states and loss."""
    store = StoredStates(load_sample(checkpoint, WIDTHS.get(name, [32] * 4), windows, **options))
    store.loss = store.sample.store_states(store)
    return store


def compute_loss(checkpoint, name, windows=WINDOWS, **options):
    """Return the cross-entropy of a tiny model."""
    return run(checkpoint, name, windows, **options).loss
