"""What modules of a model are given and give back while it runs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@contextmanager
def hooked(modules: "Iterable[torch.nn.Module]", call: Callable[..., None]) -> Iterator[None]:
    """Call ``call(module, args, options, output)`` after each of these modules has run."""
    with ExitStack() as hooks:
        for module in modules:
            hooks.callback(module.register_forward_hook(call, with_kwargs=True).remove)
        yield


@contextmanager
def recorded_states(blocks: "torch.nn.ModuleList") -> "Iterator[list[torch.Tensor]]":
    """Record the hidden states of a forward pass inside: what the first block gets and all blocks give.

    So the last one is that before a final norm, which the library does not return.
    """
    states: list[torch.Tensor] = []

    def keep(block: Any, args: tuple, options: dict, output: Any) -> None:
        if block is blocks[0]:
            states[:] = [args[0] if args else options["hidden_states"]]
        states.append(output[0] if isinstance(output, tuple) else output)

    with hooked(blocks, keep):
        yield states
