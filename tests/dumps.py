"""Dumps of tiny checkpoints, as several tests make them."""

from runs import WINDOWS, sample_of
from shape_of_learning.embeddings.states import StateFiles, state_writer


def dump(checkpoint, destination, widths, windows=WINDOWS, **options):
    """Dump them; number of tokens and cross-entropy."""
    sample = sample_of(checkpoint, widths, windows, **options)
    of_sample = sample.rows, sample.widths, sample.layers
    with state_writer(destination, *of_sample, {"model": "tiny"}) as writer:
        return sample.tokens, sample.into(writer)


def hidden_states(folder, state):
    """All rows of a hidden state, of a model of three layers."""
    return StateFiles(folder, 3)[state]
