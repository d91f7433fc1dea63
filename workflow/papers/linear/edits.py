"""The perplexity of a decoder whose blocks are changed in several orders and several ways."""

import copy
import hashlib
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from papers.linear import maps
from papers.linear.job import Editing
from papers.linear.maps import EditableBlocks, FittedBlock
from shape_of_learning.checkpoints.record import read_record
from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.corpus.windows import (
    cut_held_out_part,
    read_held_out_part,
    read_text,
    sample_windows,
)
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.protocol import SamplingProtocol
from shape_of_learning.embeddings.run import NullStore, SampleRun
from shape_of_learning.errors import InputError
from shape_of_learning.random_streams import random_stream

logger = logging.getLogger(__name__)

MOST_NATS = 709.78  # the exponential of a larger loss overflows float64


class Edit(NamedTuple):
    """One changed decoder, and its predictions on the held-out text.

    Attributes
    ----------
    order : str
        The order in which blocks are changed, an option of ``block_editing.orders``.
    blocks : str
        The numbers of the changed blocks, from 1, in the order of their change.
    kind : str
        The kind of change, an option of ``block_editing.kinds``.
    k : int
        The number of changed blocks.
    predicted_tokens : int
    loss, perplexity : float
        The loss in nats per predicted token, and its exponential.
    parameters : int
        The number of parameters of the changed model and its head.
    """

    order: str
    blocks: str
    kind: str
    k: int
    predicted_tokens: int
    loss: float
    perplexity: float
    parameters: int


EDIT_COLUMNS = ("model", "revision", *Edit._fields)


class Editor:
    """A loaded decoder whose blocks are changed, and the maps that are fitted to them.

    Parameters
    ----------
    text : Path
        The corpus. Maps are fitted on windows before its held-out end, losses are measured on windows of this end.
    protocol : SamplingProtocol
        The length of the windows, the seed and the precision.
    editing : Editing
    checkpoint : Path
    shape, **options
        Arguments of :meth:`.SampleRun.load`.

    Attributes
    ----------
    fitted_blocks : list of FittedBlock
        The maps of all blocks.

    Raises
    ------
    InputError
        As :meth:`.SampleRun.load`; and if the model has no list of blocks or no head, or if the text has too few
        windows.
    """

    def __init__(
        self,
        text: Path,
        protocol: SamplingProtocol,
        editing: Editing,
        checkpoint: Path,
        shape: Shape,
        **options: Any,
    ):
        name = f"the model in {checkpoint}"
        fitting, evaluation = _draw_windows(text, protocol, editing, checkpoint)
        sample = SampleRun.load(checkpoint, fitting + evaluation, protocol, shape, **options)
        if sample.predicted_tokens is None:
            raise InputError(
                f"{name} has no language-model head, so it predicts no tokens; remove it from the figures that "
                "draw changed blocks"
            )
        first = len(fitting)
        fitting_windows = sample.windows[:first]
        self._sample = replace(
            sample, windows=sample.windows[first:], predicted_tokens=sample.predicted_tokens[first:]
        )
        self._blocks = EditableBlocks(sample.forward, name)
        self._teacher = maps.TeacherStates(self._blocks, fitting_windows, sample.padding)
        self.fitted_blocks = maps.fit_blocks(self._teacher.states)
        self._editing = editing
        self._seed = protocol.seed
        self._results: dict[tuple[str, frozenset[int]], tuple] = {}

    def measure_edits(self) -> Iterator[Edit]:
        """Measure the edits of all orders and kinds; measure an edit that several orders share once."""
        for order in self._editing.orders:
            for kind in self._editing.kinds:
                for numbers in choose_blocks(order, self.fitted_blocks, self._editing.most_blocks):
                    yield self._edit(order, kind, numbers)

    def _edit(self, order: str, kind: str, numbers: tuple[int, ...]) -> Edit:
        key = kind if numbers else "", frozenset(numbers)
        if key not in self._results:
            self._results[key] = self._measure_edit(kind, numbers)
            logger.info("%s of blocks %s: loss %.4f", kind, numbers, self._results[key][1])
        return Edit(order, " ".join(map(str, numbers)), kind, len(numbers), *self._results[key])

    def _measure_edit(self, kind: str, numbers: tuple[int, ...]) -> tuple[int, float, float, int]:
        """Return the fields of an edit from `predicted_tokens` on."""
        fitted_blocks = {number: self.fitted_blocks[number - 1] for number in sorted(numbers)}
        if kind != "dropped" and any(
            math.isnan(block.linearity) for block in fitted_blocks.values()
        ):
            return 0, math.nan, math.nan, 0
        replacements: dict[int, torch.nn.Module] = {
            number: torch.nn.Identity() if kind == "dropped" else block.make_map()
            for number, block in fitted_blocks.items()
        }
        forward = self._sample.forward
        blocks = self._blocks
        trained_parameters = []
        with blocks.replace_blocks(replacements):
            if kind == "maps_distilled":
                trained_parameters = [
                    weight for block in replacements.values() for weight in block.parameters()
                ]
            elif numbers and kind == "all_distilled":
                forward = _copy_model(forward)
                blocks = EditableBlocks(forward, self._sample.name)
                trained_parameters = list(forward.model.parameters())
            if trained_parameters:
                # All edits are trained on the same windows, so that their losses can be compared in pairs.
                random = random_stream(self._seed, "distilled windows")
                distillation = self._editing.distillation
                maps.distil(
                    blocks, trained_parameters, self._teacher, min(numbers), distillation, random
                )
            cross_entropy = replace(self._sample, forward=forward).store_states(
                NullStore(forward.device)
            )
            assert forward.head is not None  # a model without a head is refused above
            parameters = sum(weight.numel() for weight in forward.head.model.parameters())
        loss = cross_entropy.loss
        perplexity = math.inf if loss > MOST_NATS else math.exp(loss)
        return cross_entropy.predicted_tokens, loss, perplexity, parameters


def _draw_windows(
    text: Path, protocol: SamplingProtocol, editing: Editing, checkpoint: Path
) -> tuple[list[str], list[str]]:
    """Draw the windows for fitting maps, and held-out windows; both are the same for all models."""
    whole = read_text(text)
    length = protocol.window_characters
    fitting = sample_windows(
        cut_held_out_part(whole),
        editing.fitting_windows,
        length,
        random_stream(protocol.seed, "fitting windows"),
        corpus=f"the beginning of {text}",
        key="block_editing.fitting_windows",
    )
    held_out = sample_windows(
        read_held_out_part(whole, length, _count_trained_characters(checkpoint, whole)),
        editing.evaluation_windows,
        length,
        random_stream(protocol.seed, "held-out windows"),
        corpus=f"the end of {text}",
        key="block_editing.evaluation_windows",
    )
    return fitting, held_out


def _count_trained_characters(checkpoint: Path, text: str) -> int:
    """Return how many characters of a text a checkpoint was pretrained on by this workflow, or 0."""
    record = read_record(checkpoint) or {}
    digest = record.get("text", {}).get("sha256")
    is_this_text = digest == hashlib.sha256(text.encode()).hexdigest()
    return record.get("training_characters", 0) if is_this_text else 0


def choose_blocks(
    order: str, blocks: Sequence[FittedBlock], most_blocks: int
) -> Iterator[tuple[int, ...]]:
    """Yield the numbers, from 1, of the blocks that are changed together, in one of the orders.

    Parameters
    ----------
    order : str
    blocks : sequence of FittedBlock
        The blocks, whose linearity or norm ratio decides the order. If two are equal, the earlier block is first.
    most_blocks : int
        The largest number of changed blocks.
    """
    numbers = range(1, len(blocks) + 1)
    if any(math.isnan(block.linearity) for block in blocks):
        most_blocks = 0  # the order is unknown
    if order == "alone":
        yield from ((number,) for number in numbers)
        return
    keys = {
        "most_linear_first": [-block.linearity for block in blocks],
        "least_linear_first": [block.linearity for block in blocks],
        "smallest_contribution_first": [block.norm_ratio for block in blocks],
    }[order]
    ordered_numbers = tuple(sorted(numbers, key=lambda number: keys[number - 1]))
    yield from (ordered_numbers[:k] for k in range(most_blocks + 1))


def _copy_model(forward: ForwardPass) -> ForwardPass:
    """Copy a model with its head in float32, since lower precision would lose small updates."""
    model, head = copy.deepcopy((forward.model, forward.head))
    assert head is not None
    head.model.float()
    return ForwardPass(model, head, last_layer="after_final_norm")
