"""Terms that keep consecutive hidden states alike while a model is pretrained."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch


@contextmanager
def recorded_states(network: Any) -> Iterator[list[torch.Tensor]]:
    """Record the hidden states of each forward pass inside: what the first block gets and all blocks give.

    So the last one is that before a final norm, which the library does not return.

    Parameters
    ----------
    network : GPTNeoXForCausalLM or BertForMaskedLM

    Yields
    ------
    list of tensor
        Refilled by each pass: L + 1 tensors of shape (batch, tokens, hidden).
    """
    base = network.base_model
    blocks = base.layers if hasattr(base, "layers") else base.encoder.layer
    states: list[torch.Tensor] = []

    def begin(module: Any, arguments: Any) -> None:
        states[:] = [arguments[0]]

    def keep(module: Any, arguments: Any, output: Any) -> None:
        states.append(output[0] if isinstance(output, tuple) else output)

    hooks = [blocks[0].register_forward_pre_hook(begin)]
    hooks += [block.register_forward_hook(keep) for block in blocks]
    try:
        yield states
    finally:
        for hook in hooks:
            hook.remove()


def cosine_term(states: list[torch.Tensor]) -> torch.Tensor:
    """Sum over blocks of the mean over tokens of 1 - cos(h_i, h_{i-1}) (Razzhigaev et al. 2024, section 5).

    The paper leaves open which states are meant and whether one takes sums or means.
    """
    units = [torch.nn.functional.normalize(state, dim=-1) for state in states]
    terms = [(1 - (after * before).sum(-1)).mean() for before, after in pairwise(units)]
    return torch.stack(terms).sum()


def mse_term(states: list[torch.Tensor]) -> torch.Tensor:
    """Sum over blocks of the mean over tokens of ||h_i - h_{i-1}||^2; likewise."""
    terms = [(after - before).square().sum(-1).mean() for before, after in pairwise(states)]
    return torch.stack(terms).sum()


TERMS = {"cosine": cosine_term, "mse": mse_term}
