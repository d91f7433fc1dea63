"""What modules of a model are given and give back while it runs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch


@contextmanager
def hook_modules(modules: "Iterable[torch.nn.Module]", call: Callable[..., None]) -> Iterator[None]:
    """Call ``call(module, args, options, output)`` after each of these modules has run."""
    with ExitStack() as hooks:
        for module in modules:
            hooks.callback(module.register_forward_hook(call, with_kwargs=True).remove)
        yield


@contextmanager
def record_states(blocks: "torch.nn.ModuleList") -> "Iterator[list[torch.Tensor]]":
    """Record the hidden states of a forward pass inside: what the first block gets and all blocks give.

    So the last one is that before a final norm, which the library does not return.
    """
    states: list[torch.Tensor] = []

    def keep(block: Any, args: tuple, options: dict, output: Any) -> None:
        if block is blocks[0]:
            states[:] = [find_state_argument(args, options)]
        states.append(find_returned_state(output))

    with hook_modules(blocks, keep):
        yield states


def find_state_argument(args: tuple, options: dict) -> Any:
    """Return the hidden states among the arguments of a block; None if it is given no tensor."""
    named = [options[key] for key in options if key.startswith("hidden_state")]
    return _find_tensor((*args, *named, *options.values()))


def find_returned_state(output: Any) -> Any:
    """Return the hidden states in what a block returns: a tensor, or the first one of several."""
    return _find_tensor([output])


def _find_tensor(values: Iterable[Any]) -> Any:
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            if value.is_floating_point():
                return value
        elif isinstance(value, dict):
            return _find_tensor(value.values())
        elif isinstance(value, (tuple, list)):
            return _find_tensor(value)
    return None


class Call(NamedTuple):
    """One run of a block: the hidden states that it was given and those that it returned."""

    given: "torch.Tensor"
    returned: "torch.Tensor"


class Blocks(NamedTuple):
    """The blocks that a model's hidden states pass, one after the other.

    Attributes
    ----------
    modules : ModuleList
        Each is run once, or more often where layers share it.
    calls : list of Call
        Of the run in which they were found, batch first.
    are_time_first : bool
        Whether their tensors have the shape (token, batch, hidden).
    """

    modules: "torch.nn.ModuleList"
    calls: list[Call]
    are_time_first: bool

    @property
    def states(self) -> "list[torch.Tensor]":
        """What the first block is given, and what each returns."""
        return [self.calls[0].given, *(call.returned for call in self.calls)]


def find_blocks(
    model: "torch.nn.Module", run: Callable[[], Any], tokens: int, layers: int
) -> Blocks | None:
    """Find the blocks of a model by what they do: each is given what the one before it returned.

    Parameters
    ----------
    model : Module
    run : callable
        Runs one text through the model.
    tokens : int
        Length of the text, 2 or more.
    layers : int
        How many the configuration states, 0 if it does not. Lists with as many go before longer ones, longer before
        shorter ones, outer ones before those in their blocks.

    Returns
    -------
    Blocks or None
        None if no list of modules is such a chain.
    """
    import torch

    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m)]
    owners = {id(block): number for number, blocks in enumerate(lists) for block in blocks}
    calls: list[list[Call | None]] = [[] for _ in lists]

    def note(block: Any, args: tuple, options: dict, output: Any) -> None:
        given, returned = find_state_argument(args, options), find_returned_state(output)
        are_states = all(
            state is not None and state.ndim >= 3 and sorted(state.shape[:2]) == [1, tokens]
            for state in (given, returned)
        )
        # What the model changes in place afterwards is no output of the block.
        call = Call(given.clone(), returned.clone()) if are_states else None
        calls[owners[id(block)]].append(call)

    with hook_modules([block for blocks in lists for block in blocks], note):
        run()
    chains: list[Blocks] = []
    for modules, made in zip(lists, calls, strict=True):
        whole = [call for call in made if call is not None]
        if whole and len(whole) == len(made) and _are_chained(whole):
            are_time_first = whole[0].given.shape[0] != 1
            chain = (
                [Call(*(s.transpose(0, 1) for s in c)) for c in whole] if are_time_first else whole
            )
            chains.append(Blocks(modules, chain, are_time_first))
    return max(chains, key=lambda each: (len(each.calls) == layers, len(each.calls)), default=None)


def _are_chained(calls: list[Call]) -> bool:
    """Whether most are given what the one before returned: RWKV halves it now and then in between."""
    pairs = list(pairwise(calls))
    links = sum(are_equal(one.returned, two.given) for one, two in pairs)
    return 2 * links >= len(pairs)


def are_equal(first: Any, second: Any) -> bool:
    """Whether two tensors hold the same numbers."""
    import torch

    return first.shape == second.shape and bool(
        torch.allclose(first.float(), second.float(), rtol=0, atol=0, equal_nan=True)
    )
