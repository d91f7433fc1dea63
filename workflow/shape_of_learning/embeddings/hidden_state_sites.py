"""Where in a model's forward pass each hidden state comes into being."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from shape_of_learning.errors import InputError

if TYPE_CHECKING:
    import torch
    from torch.utils.hooks import RemovableHandle
    from transformers import PreTrainedModel

# Keys and indices that lead to a tensor among nested arguments or results.
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Site:
    """A tensor that a module is called with or gives.

    Attributes
    ----------
    module : torch.nn.Module
        The module.
    call : int
        Which of its calls in a pass, from 0: ALBERT calls one block again and again.
    is_output : bool
        Whether the call gives the tensor, and else is given it.
    path : tuple of str and int
        Where it is found in the call's result, or in its arguments.
    """

    module: "torch.nn.Module"
    call: int
    is_output: bool
    path: Path


@dataclass(frozen=True)
class Sight:
    """A tensor as it was seen at a site.

    Attributes
    ----------
    site : Site
        Where.
    depth : int
        How many calls of modules were under way, the site's own not counted.
    tensor : tensor
        The tensor itself, so that nothing else takes its place in memory.
    copy : tensor
        What was in it: a later module may write over it.
    """

    site: Site
    depth: int
    tensor: "torch.Tensor"
    copy: "torch.Tensor"

    def shows(self, state: "torch.Tensor") -> bool:
        """Whether it is this hidden state, by its memory and its content."""
        import torch

        def bits(values: torch.Tensor) -> torch.Tensor:
            return values.contiguous().view(torch.uint8)  # NaN equals no NaN

        if self.tensor.data_ptr() != state.data_ptr() or self.tensor.shape != state.shape:
            return False
        return self.tensor.dtype == state.dtype and torch.equal(bits(self.copy), bits(state))


def find_sites(model: "PreTrainedModel", run: Callable[[], list["torch.Tensor"]]) -> list[Site]:
    """Watch one pass, and find where each hidden state can be seen.

    Nothing needs to be known of the architecture. OPT adds its positions to its embeddings in no module of
    their own, for example: that hidden state is seen when the first block is called with it.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        The model.
    run : callable
        Runs it on some text and returns the hidden states of all layers.

    Returns
    -------
    list of Site
        One for each hidden state, in the order of the pass: before the next one is there, and within as few
        calls as possible, since a call that has not ended keeps what it has computed.

    Raises
    ------
    InputError
        If a hidden state never passes from one module to another, or the model exchanges modules during a
        pass, as BigBird does on a short text: other passes would go on with what this one has left.
    """
    modules = list(model.modules())
    seen: list[Sight] = []
    calls: Counter = Counter()
    depth = 0

    def watch(module: "torch.nn.Module", is_output: bool, content: Any) -> None:
        nonlocal depth
        depth -= is_output
        site = partial(Site, module, calls[module, is_output], is_output)
        seen.extend(Sight(site(path), depth, t, t.clone()) for path, t in _tensors(content))
        depth += not is_output
        calls[module, is_output] += 1

    hooks = list(watched(((m, end) for m in modules for end in (False, True)), watch))
    try:
        states = run()
    finally:
        for hook in hooks:
            hook.remove()
    kind, remedy = f"a `{model.config.model_type}` model", "set `embeddings.dump: true`"
    if modules != list(model.modules()):
        raise InputError(
            f"{kind} exchanges modules during a forward pass, so that several cannot pause side by side; "
            f"{remedy}"
        )
    firsts, number = [], -1
    for layer, state in enumerate(states):
        later = range(number + 1, len(seen))
        number = next((n for n in later if seen[n].shows(state)), len(seen))
        if number == len(seen):
            raise InputError(
                f"hidden state {layer} of {kind} does not pass between its modules, so that it cannot be "
                f"measured within the forward pass; {remedy}"
            )
        firsts.append(number)
    spans = zip(states, firsts, [*firsts[1:], len(seen)], strict=True)
    return [
        min((s for s in seen[first:end] if s.shows(state)), key=lambda sight: sight.depth).site
        for state, first, end in spans
    ]


def watched(
    ends: Iterable[tuple["torch.nn.Module", bool]],
    watch: Callable[["torch.nn.Module", bool, Any], None],
) -> "Iterator[RemovableHandle]":
    """Call `watch` at each start (False) or end (True) of the calls of some modules.

    It gets the module, which of both, and the arguments or the result.
    """
    for module, is_output in ends:
        if is_output:
            yield module.register_forward_hook(lambda m, _, result: watch(m, True, result))
        else:
            yield module.register_forward_pre_hook(
                lambda m, args, kwargs: watch(m, False, (args, kwargs)), with_kwargs=True
            )


def tensor_at(path: Path, content: Any) -> "torch.Tensor":
    """Return the tensor of a site among the arguments or the result of its call."""
    for key in path:
        content = content[key]
    return content


def _tensors(content: Any, path: Path = ()) -> Iterator[tuple[Path, "torch.Tensor"]]:
    """Yield the tensors in nested tuples, lists and mappings, such as the library's results."""
    import torch

    if isinstance(content, torch.Tensor):
        yield path, content
    elif isinstance(content, Mapping | tuple | list):
        items = content.items() if isinstance(content, Mapping) else enumerate(content)
        for key, value in items:
            # All of them in the result of the whole model, which only this pass has been asked for.
            if (*path, key) != ("hidden_states",):
                yield from _tensors(value, (*path, key))
