"""The blocks of a loaded decoder, some of which can be replaced for a while."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch

from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.errors import InputError


class AffineMap(torch.nn.Module):
    """y = x A + b, formed in float32 whatever the precision of x.

    Parameters
    ----------
    weight : array-like, shape (d, d)
        A.
    bias : array-like, shape (d,)
        b.
    """

    def __init__(self, weight: Any, bias: Any):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(np.asarray(weight), dtype=torch.float32))
        self.bias = torch.nn.Parameter(torch.tensor(np.asarray(bias), dtype=torch.float32))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Map hidden states, shape (..., d)."""
        return (states.float() @ self.weight + self.bias).to(states.dtype)


class EditableBlocks:
    """The transformer blocks of a loaded model, numbered from 1.

    Parameters
    ----------
    forward : ForwardPass
        The model. A token is run through it.
    name : str
        How messages call it.

    Raises
    ------
    InputError
        If the model has no list of blocks, or is spread over several devices.
    """

    def __init__(self, forward: ForwardPass, name: str):
        remedy = f"its blocks cannot be changed one by one: remove {name} from what draws them"
        self._blocks = forward.blocks(remedy)
        self._forward = forward
        if len({weight.device for weight in forward.model.parameters()}) > 1:
            raise InputError(
                f"the model in {name} is spread over several devices, where its blocks cannot be changed; "
                "give the job a GPU that holds all of it, or none"
            )
        self._entries: dict[int, int | None] = {}
        with self._hooked(self._note_entries):
            forward.run([np.zeros(1, dtype=np.int64)], 0)

    def __len__(self) -> int:
        return len(self._blocks)

    @contextmanager
    def replaced(self, maps: Mapping[int, torch.nn.Module]) -> Iterator[None]:
        """Let `maps` take the places of blocks, by their numbers, and give these back.

        Parameters
        ----------
        maps : mapping of int to Module
            Each takes the hidden states before its block, shape (batch, tokens, d), to those after it:
            ``torch.nn.Identity()`` drops a block. It is moved to the device of the model.
        """
        originals = {number: self._blocks[number - 1] for number in maps}
        try:
            for number, block in originals.items():
                states_map = maps[number].to(self._forward.device)
                self._blocks[number - 1] = _in_its_place(block, states_map, self._entries[number])
            yield
        finally:
            for number, block in originals.items():
                self._blocks[number - 1] = block

    def states(self, texts: list[np.ndarray], padding: int) -> list[torch.Tensor]:
        """Run windows through the model.

        Parameters
        ----------
        texts : list of ndarray of int64, shape (length,)
            Their tokens, which are padded on the right by the token `padding`.

        Returns
        -------
        list of tensor, length L + 1
            Hidden states before the first block and after each, before any final norm: shape (windows,
            longest, d).
        """
        kept: dict[int, torch.Tensor] = {}

        def keep(number: int, args: tuple, options: dict, output: Any) -> None:
            if number == 1:
                kept[0] = args[0] if args else options["hidden_states"]
            kept[number] = output[0] if isinstance(output, tuple) else output

        with self._hooked(keep):
            self._forward.run(texts, padding)
        return [kept[number] for number in range(len(self) + 1)]

    @contextmanager
    def _hooked(self, call: Any) -> Iterator[None]:
        """Call ``call(number, args, options, output)`` after each block."""
        with ExitStack() as hooks:
            for number, block in enumerate(self._blocks, start=1):
                handle = block.register_forward_hook(
                    lambda _, args, options, output, number=number: call(
                        number, args, options, output
                    ),
                    with_kwargs=True,
                )
                hooks.callback(handle.remove)
            yield

    def _note_entries(self, number: int, args: tuple, options: dict, output: Any) -> None:
        """How many entries the tuple has that a block returns; None for one tensor."""
        self._entries[number] = len(output) if isinstance(output, tuple) else None


def _in_its_place(
    block: torch.nn.Module, states_map: torch.nn.Module, entries: int | None
) -> torch.nn.Module:
    """Make a block of the same class that applies a map and returns it as `block` returns hidden states.

    The library records hidden states by the class of a block, and once and for all by hooks: a block of
    another class, or without these hooks, would silently be missing among them. So the new block has all
    of the old one but its weights, the very hooks too.
    """

    def forward(self: Any, hidden_states: torch.Tensor, *_: Any, **__: Any) -> Any:
        mapped = self.states_map(hidden_states)
        return mapped if entries is None else (mapped, *[None] * (entries - 1))

    kind = type(block)
    replaced = copy.copy(block)
    replaced.__class__ = type(kind.__name__, (kind,), {"forward": forward})
    vars(replaced).update(_parameters={}, _buffers={}, _modules={"states_map": states_map})
    return replaced
