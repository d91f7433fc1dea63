"""A decoder, windows of both parts of the text, and the maps that are fitted to its blocks."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shape_of_learning.block_editing.distillation import TeacherStates
from shape_of_learning.block_editing.editable_blocks import EditableBlocks
from shape_of_learning.block_editing.editing_settings import BlockEditing, check_blocks
from shape_of_learning.block_editing.edits import Editor
from shape_of_learning.block_editing.fitting import fitted_blocks, states_of_training_text
from shape_of_learning.checkpoints.checkpoint_record import read_record
from shape_of_learning.corpus.windows import (
    held_out_part,
    read_text,
    sample_windows,
    training_part,
)
from shape_of_learning.embeddings.sample_run import SampleRun
from shape_of_learning.errors import InputError
from shape_of_learning.random_streams import random_stream
from shape_of_learning.script_arguments.protocol import SamplingProtocol

WINDOW_BATCH = 16  # windows of the training text that go through the model together


def load_editor(
    text: Path,
    protocol: SamplingProtocol,
    editing: BlockEditing,
    *,
    checkpoint: Path,
    shape: Mapping[str, Any],
    **options: Any,
) -> Editor:
    """Load a decoder and fit a map to each of its blocks.

    Parameters
    ----------
    text : Path
        The corpus. Maps are fitted on windows before its held-out end, losses are those of windows there.
    protocol : SamplingProtocol
        Length of the windows, seed and precision.
    editing : BlockEditing
    checkpoint, shape, **options
        As :meth:`.SampleRun.load` takes them.

    Raises
    ------
    InputError
        As that; and if the model is no decoder, has fewer blocks than are to be changed, no list of them or
        no head, or if the text has too few windows.
    """
    name = f"the model in {checkpoint}"
    check_blocks(editing.most_blocks, shape["role"], shape["layers"], name)
    fitting, evaluation = _windows(text, protocol, editing, checkpoint)
    protocol = replace(protocol, last_layer="after_final_norm")
    sample = SampleRun.load(checkpoint, fitting + evaluation, protocol, shape, **options)
    if sample.predicted is None:
        raise InputError(
            f"{name} has no language-model head, without which nothing is predicted; remove it from the "
            "figures that draw changed blocks"
        )
    shown, held_out = sample.windows[: len(fitting)], sample.windows[len(fitting) :]
    blocks = EditableBlocks(sample.forward, name)
    states = states_of_training_text(blocks, shown, sample.padding, WINDOW_BATCH)
    return Editor(
        replace(sample, windows=held_out, predicted=sample.predicted[len(fitting) :]),
        blocks,
        fitted_blocks(states),
        TeacherStates(shown, states, sample.padding),
        editing,
        protocol.seed,
    )


def _windows(
    text: Path, protocol: SamplingProtocol, editing: BlockEditing, checkpoint: Path
) -> tuple[list[str], list[str]]:
    """Windows that maps are fitted on, and held-out ones: the same for all models."""
    whole, length = read_text(text), protocol.window_characters
    fitting = sample_windows(
        training_part(whole),
        editing.fitting_windows,
        length,
        random_stream(protocol.seed, "fitting windows"),
        corpus=f"{text} without its held-out end",
        key="block_editing.fitting_windows",
    )
    evaluation = sample_windows(
        held_out_part(whole, length, _trained_characters(checkpoint, whole)),
        editing.evaluation_windows,
        length,
        random_stream(protocol.seed, "held-out windows"),
        corpus=f"the held-out end of {text}",
        key="block_editing.evaluation_windows",
    )
    return fitting, evaluation


def _trained_characters(checkpoint: Path, text: str) -> int:
    """How much of a text a checkpoint has been trained on, if it was pretrained here on that one; else 0."""
    record = read_record(checkpoint) or {}
    digest = record.get("text", {}).get("sha256")
    is_own = digest == hashlib.sha256(text.encode()).hexdigest()
    return record.get("training_characters", 0) if is_own else 0
