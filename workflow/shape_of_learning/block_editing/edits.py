"""Perplexity of a decoder some of whose blocks are changed, in several orders and several ways."""

import copy
import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from shape_of_learning.block_editing.distillation import TeacherStates, distil
from shape_of_learning.block_editing.editable_blocks import EditableBlocks
from shape_of_learning.block_editing.editing_settings import BlockEditing
from shape_of_learning.block_editing.fitting import FittedBlock
from shape_of_learning.checkpoints.losses import UNDEFINED, CrossEntropy
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.sample_run import SampleRun
from shape_of_learning.random_streams import random_stream

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

ORDERS = (
    "most_linear_first",
    "least_linear_first",
    "smallest_contribution_first",
    "alone",
)
KINDS = ("dropped", "replaced", "maps_distilled", "all_distilled")


@dataclass(frozen=True)
class Edit:
    """One changed decoder, and what it predicts on the held-out text.

    Attributes
    ----------
    order : str
        One of :data:`ORDERS`.
    blocks : str
        Numbers of the changed blocks from 1, in the order in which they were changed.
    kind : str
        One of :data:`KINDS`.
    k : int
        How many they are.
    predicted_tokens : int
    loss, perplexity : float
        Nats per predicted token, and its exponential.
    parameters : int
        Of the changed model, its head included.
    seconds : float
        That fits, distillation and evaluation took; of an edit that several orders share, each time.
    """

    order: str
    blocks: str
    kind: str
    k: int
    predicted_tokens: int
    loss: float
    perplexity: float
    parameters: int
    seconds: float


EDIT_COLUMNS = ("model", "revision", *(field.name for field in fields(Edit)))


class Editor:
    """Changes blocks of a decoder and looks at what comes of it.

    Parameters
    ----------
    sample : SampleRun
        The model, and the windows of the held-out end.
    blocks : EditableBlocks
        Its blocks.
    fitted : sequence of FittedBlock
        A map for each.
    teacher : TeacherStates
        What is distilled.
    editing : BlockEditing
        How.
    seed : int
        Of the run.

    Attributes
    ----------
    fitted : sequence of FittedBlock
        As given.
    """

    def __init__(
        self,
        sample: SampleRun,
        blocks: EditableBlocks,
        fitted: Sequence[FittedBlock],
        teacher: TeacherStates,
        editing: BlockEditing,
        seed: int,
    ):
        self._sample, self._blocks, self.fitted = sample, blocks, fitted
        self._teacher, self._editing, self._seed = teacher, editing, seed
        self._done: dict[tuple[str, frozenset[int]], tuple[CrossEntropy, int, float]] = {}

    def edits(self) -> Iterator[Edit]:
        """Yield all edits: each order and kind from no changed block on; each block alone."""
        for order in self._editing.orders:
            for kind in self._editing.kinds:
                for chosen in changed_blocks(order, self.fitted, self._editing.most_blocks):
                    yield self._edit(order, kind, chosen)

    def _edit(self, order: str, kind: str, chosen: tuple[int, ...]) -> Edit:
        key = kind if chosen else "", frozenset(chosen)
        if key not in self._done:
            self._done[key] = self._outcome(kind, chosen)
            loss = self._done[key][0].loss
            logger.info("%s of blocks %s: loss %.4f", kind, chosen, loss)
        measured, parameters, seconds = self._done[key]
        return Edit(
            order,
            " ".join(map(str, chosen)),
            kind,
            len(chosen),
            measured.predicted_tokens,
            measured.loss,
            perplexity_of(measured.loss),
            parameters,
            seconds,
        )

    def _outcome(self, kind: str, chosen: tuple[int, ...]) -> tuple[CrossEntropy, int, float]:
        import torch

        start = time.perf_counter()
        if kind != "dropped" and any(math.isnan(self.fitted[n - 1].linearity) for n in chosen):
            return UNDEFINED, 0, 0.0
        forward, maps = self._sample.forward, {}
        for number in sorted(chosen):
            is_dropped = kind == "dropped"
            maps[number] = torch.nn.Identity() if is_dropped else self.fitted[number - 1].map()
        with self._blocks.replaced(maps):
            if chosen and kind == "maps_distilled":
                trained = [weight for each in maps.values() for weight in each.parameters()]
                self._distil(self._blocks, trained, chosen)
            elif chosen and kind == "all_distilled":
                forward = _copy_of(forward)
                every = list(forward.model.parameters())
                self._distil(EditableBlocks(forward, self._sample.name), every, chosen)
            measured = loss_of(self._sample, forward)
            assert forward.head is not None  # else nothing is predicted
            parameters = sum(weight.numel() for weight in forward.head.model.parameters())
        fits = sum(self.fitted[n - 1].seconds for n in chosen) if kind != "dropped" else 0.0
        return measured, parameters, fits + time.perf_counter() - start

    def _distil(
        self,
        blocks: EditableBlocks,
        parameters: "list[torch.nn.Parameter]",
        chosen: tuple[int, ...],
    ) -> None:
        # All edits are shown the same windows, so that they are paired.
        random = random_stream(self._seed, "distilled windows")
        distil(blocks, parameters, self._teacher, min(chosen), self._editing, random)


def changed_blocks(
    order: str, fitted: Sequence[FittedBlock], most: int
) -> Iterator[tuple[int, ...]]:
    """Yield the blocks that are changed together, by their numbers from 1, in one of :data:`ORDERS`.

    Parameters
    ----------
    order : str
    fitted : sequence of FittedBlock
        Linearity and contribution of each; of equal ones the earlier comes first.
    most : int
        How many are changed at most.
    """
    numbers = range(1, len(fitted) + 1)
    if any(math.isnan(block.linearity) for block in fitted):
        most = 0  # nothing is known of the order
    if order == "alone":
        yield from ((number,) for number in numbers)
        return
    rank = {
        "most_linear_first": lambda number: -fitted[number - 1].linearity,
        "least_linear_first": lambda number: fitted[number - 1].linearity,
        "smallest_contribution_first": lambda number: fitted[number - 1].norm_ratio,
    }[order]
    ordered = tuple(sorted(numbers, key=rank))
    yield from (ordered[:k] for k in range(most + 1))


def loss_of(sample: SampleRun, forward: ForwardPass) -> CrossEntropy:
    """Loss of a model on the windows of a sample."""
    return replace(sample, forward=forward).into(_Nowhere(forward.device))


def perplexity_of(loss: float) -> float:
    """Exponential of a loss; infinite where it has no number."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


def edit_rows(model: str, revision: str, edits: Sequence[Edit]) -> list[tuple]:
    """Rows of the columns :data:`EDIT_COLUMNS`."""
    return [(model, revision, *astuple(edit)) for edit in edits]


def _copy_of(forward: ForwardPass) -> ForwardPass:
    """Copy a model with its head, in float32, in which alone small updates count."""
    model, head = copy.deepcopy((forward.model, forward.head))
    assert head is not None
    head.model.float()
    return ForwardPass(model, head, device=forward.device, last_layer="after_final_norm")


@dataclass(frozen=True)
class _Nowhere:
    """A store of hidden states that keeps none."""

    device: "torch.device"

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Forget them."""

    def describe(self, attributes: Any) -> None:
        """Forget it."""
