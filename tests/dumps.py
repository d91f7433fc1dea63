"""Dumps of tiny checkpoints, as several tests make them."""

import json

import torch

from shape_of_learning.checkpoints.shapes import role_of
from shape_of_learning.embeddings.sample_run import SampleRun
from shape_of_learning.embeddings.states import StateFiles, state_writer
from shape_of_learning.script_arguments.protocol import SamplingProtocol
from tiny_models import WIDTHS

WINDOWS = [
    "the shape of what a model learns",
    "Layers, tokens; windows of text. " * 3,
    "x",
    "a model a b c of windows",
    "tokens of tokens of tokens",
]


def sample_of(checkpoint, widths, windows=WINDOWS, *, role=None, device="cpu", **options):
    """The windows and the checkpoint, in the role it says itself."""
    configuration = checkpoint / "config.json"
    if role is None and configuration.exists():
        role = role_of(json.loads(configuration.read_text()))
    protocol = {key: options.pop(key) for key in ("precision", "last_layer") if key in options}
    return SampleRun.load(
        checkpoint,
        windows,
        SamplingProtocol(len(windows), 0, 0, **protocol),
        {
            "role": role or "decoder",
            "layers": len(widths) - 1,
            "hidden_size": widths[0],
            "last_hidden_size": widths[-1],
        },
        device=torch.device(device),
        **options,
    )


def dump(checkpoint, destination, widths, windows=WINDOWS, **options):
    """Dump them; number of tokens and cross-entropy."""
    sample = sample_of(checkpoint, widths, windows, **options)
    with state_writer(destination, sample, {"model": "tiny"}) as writer:
        return sample.tokens, sample.into(writer)


def cross_entropy(checkpoint, destination, name, windows=WINDOWS, **options):
    """Dump a tiny model of that architecture; its cross-entropy."""
    _, measured = dump(checkpoint, destination, WIDTHS.get(name, [32] * 4), windows, **options)
    return measured


def hidden_states(folder, state):
    """All rows of a hidden state, of a model of three layers."""
    return StateFiles(folder, 3)[state]
