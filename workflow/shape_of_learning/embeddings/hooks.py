"""Record the arguments and outputs of modules while a model runs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch


@contextmanager
def hook_modules(modules: "Iterable[torch.nn.Module]", call: Callable[..., None]) -> Iterator[None]:
    """Call ``call(module, args, options, output)`` after a run of one of the modules."""
    with ExitStack() as hooks:
        for module in modules:
            hooks.callback(module.register_forward_hook(call, with_kwargs=True).remove)
        yield


@contextmanager
def record_states(blocks: "torch.nn.ModuleList") -> "Iterator[list[torch.Tensor]]":
    """Record the hidden states of a forward pass: the argument of the first block and the outputs of all blocks.

    The last of them, before a final norm, is a state that the library does not return.
    """
    states: list[torch.Tensor] = []

    def keep(block: Any, args: tuple, options: dict, output: Any) -> None:
        if block is blocks[0]:
            states[:] = [find_state_argument(args, options)]
        states.append(find_returned_state(output))

    with hook_modules(blocks, keep):
        yield states


def find_state_argument(args: tuple, options: dict) -> Any:
    """Return the hidden states among the arguments of a block; None if there is no tensor."""
    keyword_states = [options[key] for key in options if key.startswith("hidden_state")]
    return _find_tensor((*args, *keyword_states, *options.values()))


def find_returned_state(output: Any) -> Any:
    """Return the hidden states in the output of a block: a tensor, or the first of several."""
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
    """The hidden states that enter and leave a block in one run."""

    argument: "torch.Tensor"
    output: "torch.Tensor"


class Blocks(NamedTuple):
    """The blocks of a model, through which hidden states pass one after the other.

    Attributes
    ----------
    modules : ModuleList
        A module that layers share is called several times.
    calls : list of Call
        Calls in the run of :func:`find_blocks`, batch first.
    are_time_first : bool
        Whether the blocks' tensors have the shape (token, batch, hidden).
    """

    modules: "torch.nn.ModuleList"
    calls: list[Call]
    are_time_first: bool

    @property
    def states(self) -> "list[torch.Tensor]":
        """The argument of the first block and the outputs of all blocks."""
        return [self.calls[0].argument, *(call.output for call in self.calls)]


def find_blocks(
    model: "torch.nn.Module", run: Callable[[], Any], tokens: int, layers: int
) -> Blocks | None:
    """Find the list of modules in which the output of a module is the argument of the next.

    Parameters
    ----------
    model : Module
    run : callable
        Runs one text through the model.
    tokens : int
        Length of the text, 2 or more.
    layers : int
        Number of layers in the configuration, or 0. A list with this number of calls is preferred, then the list with
        the most calls, then an outer list.

    Returns
    -------
    Blocks or None
        None if no list of modules is a chain.
    """
    import torch

    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m)]
    owners = {id(block): number for number, blocks in enumerate(lists) for block in blocks}
    calls: list[list[Call | None]] = [[] for _ in lists]

    def note(block: Any, args: tuple, options: dict, output: Any) -> None:
        states = find_state_argument(args, options), find_returned_state(output)
        are_hidden_states = all(
            state is not None and state.ndim >= 3 and sorted(state.shape[:2]) == [1, tokens]
            for state in states
        )
        # The model may change a state in place afterwards.
        call = Call(states[0].clone(), states[1].clone()) if are_hidden_states else None
        calls[owners[id(block)]].append(call)

    with hook_modules([block for blocks in lists for block in blocks], note):
        run()
    chains: list[Blocks] = []
    for modules, list_calls in zip(lists, calls, strict=True):
        chain = [call for call in list_calls if call is not None]
        if not chain or len(chain) < len(list_calls) or not _are_chained(chain):
            continue
        are_time_first = chain[0].argument.shape[0] != 1
        if are_time_first:
            chain = [
                Call(call.argument.transpose(0, 1), call.output.transpose(0, 1)) for call in chain
            ]
        chains.append(Blocks(modules, chain, are_time_first))
    return max(
        chains, key=lambda blocks: (len(blocks.calls) == layers, len(blocks.calls)), default=None
    )


def _are_chained(calls: list[Call]) -> bool:
    """Return whether most arguments equal the output of the previous block; RWKV halves some in between."""
    pairs = list(pairwise(calls))
    links = sum(are_equal(first.output, second.argument) for first, second in pairs)
    return 2 * links >= len(pairs)


def are_equal(first: Any, second: Any) -> bool:
    """Return whether two tensors hold the same numbers, or NaN in the same places."""
    import torch

    return first.shape == second.shape and bool(
        torch.allclose(first.float(), second.float(), rtol=0, atol=0, equal_nan=True)
    )


Structure = list[tuple[dict[str, Any], dict[str, Any]]]


def copy_structure(model: "torch.nn.Module") -> Structure:
    """Copy the references of a model to its modules, and the names that its modules hold.

    BigBird replaces its sparse attention for good when it gets a short text, so that all later texts would have other
    hidden states.
    """
    copies = []
    for module in model.modules():
        attributes = vars(module)
        names = {key: value for key, value in attributes.items() if isinstance(value, str)}
        copies += [(attributes, names), (attributes["_modules"], dict(attributes["_modules"]))]
    return copies


def restore_structure(structure: Structure) -> bool:
    """Restore the modules and names of a model, and return whether any had changed."""
    has_changed = False
    for mapping, copy in structure:
        if any(mapping.get(key) is not value for key, value in copy.items()):
            mapping.update(copy)
            has_changed = True
    return has_changed
