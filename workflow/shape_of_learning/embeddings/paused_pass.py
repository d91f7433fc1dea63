"""A forward pass that stands still at each hidden state until it is told to go on."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent, greenlet

from shape_of_learning.embeddings.hidden_state_sites import Site, tensor_at, watched

if TYPE_CHECKING:
    import torch


class PausedPass(greenlet):
    """One batch on its way through a model; :meth:`switch` brings it to its next hidden state.

    The last one brings it to its end and returns what `compute` returns.

    Parameters
    ----------
    sites : iterable of Site
        Where the pass pauses, within :func:`pausing_at` the same.
    compute : callable
        Takes nothing and runs the model.

    Notes
    -----
    While it pauses, its place in the model's code is kept on a stack of its own, so that nothing needs to be
    known of that code, or of what it hands from block to block. Threads of the system could pause, too, but
    each would get handles and workspaces of its own from the libraries that multiply matrices, tens of
    megabytes of a GPU's memory.
    """

    def __init__(self, sites: Iterable[Site], compute: Callable[[], Any]):
        super().__init__(compute)
        self._sites: defaultdict[tuple, list[Site]] = defaultdict(list)
        for site in sites:
            self._sites[site.module, site.is_output, site.call].append(site)
        self._calls: Counter = Counter()

    def reach(self, module: "torch.nn.Module", is_output: bool, content: Any) -> None:
        """Take note of a call, and pause for each hidden state that it has to do with."""
        call = self._calls[module, is_output]
        self._calls[module, is_output] += 1
        for site in self._sites.get((module, is_output, call), ()):
            self.parent.switch(tensor_at(site.path, content))


@contextmanager
def pausing_at(sites: Iterable[Site]) -> Iterator[None]:
    """Make passes pause at these sites; passes that are no :class:`PausedPass` do not notice."""

    def watch(module: "torch.nn.Module", is_output: bool, content: Any) -> None:
        running = getcurrent()
        if isinstance(running, PausedPass):
            running.reach(module, is_output, content)

    hooks = list(watched({(site.module, site.is_output) for site in sites}, watch))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
