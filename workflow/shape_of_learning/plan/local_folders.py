"""Checkpoints in folders of the user's, such as the ``checkpoint-500`` of a Trainer."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    Shape,
    completed,
    read_configuration_file,
    shape_of,
)
from shape_of_learning.errors import InputError
from shape_of_learning.plan.entries import Entry
from shape_of_learning.plan.steps import Checkpoint, chosen_steps
from shape_of_learning.training.recipe import revision_of_step

STEP = "{step}"
EXAMPLE = "such as `path: run/checkpoint-{step}`"


def local_checkpoints(entry: Entry, where: str) -> tuple[list[Checkpoint], int | None]:
    """List the checkpoints of an entry with ``path``, by step, and the last step that is on the disk.

    Parameters
    ----------
    entry : Entry
        ``{step}`` in its path stands for the digits of a step, all else for itself. Which of the steps that
        are there are meant, its ``training.steps`` says.
    where : str
        How an error names the entry.

    Raises
    ------
    InputError
        If the path does not lead to another folder at each step, or to none at a step that is asked for.
    """
    path, training = entry.path or "", entry.training
    if training is None:
        if STEP in path:
            raise InputError(
                f"{where}: `path` has `{STEP}`, but nothing says which steps; add `training: {{steps: all}}`"
            )
        return [Checkpoint("main", "main", path=path)], None
    if path.count(STEP) != 1:
        raise InputError(f"{where}: write `{STEP}` into `path`, and once, {EXAMPLE}")
    found = _steps_on_disk(path, where)
    if not found:
        raise InputError(
            f"{where}: no folder like {path} holds a {CONFIGURATION}; correct `path`, absolute or relative "
            "to where the workflow runs"
        )
    steps = training.model_dump(exclude_none=True)["steps"]
    tokens = training.tokens_per_step
    checkpoints = [
        Checkpoint(
            revision_of_step(step),
            revision_of_step(step),
            path=found[step],
            step=step,
            tokens=None if tokens is None else step * tokens,
        )
        for step in chosen_steps(steps, found, where, f"like {path} there are")
    ]
    return checkpoints, max(found)


def _steps_on_disk(pattern: str, where: str) -> dict[int, str]:
    """Find the folders that a path with ``{step}`` leads to, and that hold a checkpoint: step -> path."""
    before, _, after = pattern.partition(STEP)
    parent, slash, prefix = before.rpartition("/")
    suffix, _, rest = after.partition("/")
    expression = re.compile(f"{re.escape(prefix)}([0-9]+){re.escape(suffix)}")
    found: dict[int, str] = {}
    try:
        folders = sorted(Path(parent + slash).iterdir())
    except OSError:
        return found
    for each in folders:
        match, folder = expression.fullmatch(each.name), each / rest
        if match is None or not (folder / CONFIGURATION).is_file():
            continue
        step = int(match[1])
        if step in found:
            raise InputError(
                f"{where}: {found[step]} and {folder} are both step {step}; rename one of them"
            )
        found[step] = str(folder)
    return found


def local_shape(stated: Shape, checkpoints: Sequence[Checkpoint], where: str) -> Shape:
    """Complete what an entry states by what the ``config.json`` of all its folders says."""
    shapes = {each.path: _own_shape(Path(each.path), where) for each in checkpoints}
    *earlier, final = shapes
    for folder in earlier:
        if shapes[folder] != shapes[final]:
            raise InputError(
                f"{where}: config.json in {folder} says {vars(shapes[folder])}, in {final} "
                f"{vars(shapes[final])}, so these are no steps of one training run; list the `steps` that are"
            )
    return completed(stated, shapes[final], where)


def _own_shape(folder: Path, where: str) -> Shape:
    try:
        is_there = (folder / CONFIGURATION).exists()
    except OSError:  # no file can have such a name
        is_there = False
    if not is_there:
        raise InputError(
            f"{where}: `path` is {folder}, but there is no config.json; name a folder in Hugging Face "
            "format, absolute or relative to where the workflow runs"
        )
    return shape_of(read_configuration_file(folder), where)


def separates_texts(folder: str, role: str) -> bool:
    """Whether the tokenizer in a folder puts anything between two texts; a decoder's may not."""
    try:
        file = Path(folder, "tokenizer.json")
        adds = json.loads(file.read_text(encoding="utf-8"))["post_processor"]
    except (OSError, ValueError, KeyError, TypeError):
        return True
    of_bytes = isinstance(adds, dict) and adds.get("type") == "ByteLevel"
    return role != "decoder" or not (adds is None or of_bytes)
