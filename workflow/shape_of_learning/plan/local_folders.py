"""Checkpoints in folders of the user's, such as the ``checkpoint-500`` of a Trainer."""

import re
from collections.abc import Sequence
from glob import escape, glob
from pathlib import Path

from shape_of_learning.checkpoints.local import find_local_checkpoint
from shape_of_learning.checkpoints.lock import Checkpoint
from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    Shape,
    complete_shape,
    list_tokenizer_paths,
    parse_shape,
    read_configuration_file,
    refuse_quantised,
)
from shape_of_learning.checkpoints.verdicts import LAST_STEP
from shape_of_learning.errors import InputError
from shape_of_learning.files import expand_home
from shape_of_learning.plan.entries import Entry
from shape_of_learning.plan.steps import choose_steps, make_checkpoint

STEP = "{step}"


def list_local_checkpoints(entry: Entry, where: str) -> tuple[list[Checkpoint], int | None]:
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
    path, training = str(expand_home(entry.path or "")), entry.training
    if path.count(STEP) != (training is not None):
        raise InputError(
            f"{where}: a `path` with `{STEP}`, once, such as `run/checkpoint-{STEP}`, and `training: {{steps: "
            "all}` need each other; correct the entry"
        )
    if training is None:
        return [Checkpoint("main", "main", path=_check_folder(entry.path or "", where))], None
    found = _find_steps(path, where)
    if not found:
        raise InputError(
            f"{where}: no folder like {path} holds a {CONFIGURATION}; correct the path, absolute or relative "
            "to the folder where this runs"
        )
    steps = choose_steps(training.steps, found, where, f"like {path} there are")
    per_step = training.tokens_per_step
    return [make_checkpoint(step, per_step, found[step]) for step in steps], max(found)


def _find_steps(path: str, where: str) -> dict[int, str]:
    """Find the folders that a path with ``{step}`` leads to, and that hold a checkpoint: step -> path."""
    parts = f"{path}/{CONFIGURATION}".split(STEP)
    expression = re.compile("([0-9]+)".join(map(re.escape, parts)))
    found: dict[int, str] = {}
    for file in sorted(glob("*".join(map(escape, parts)))):  # noqa: PTH207 (which takes no absolute path)
        match, folder = expression.fullmatch(file), str(Path(file).parent)
        if match is None:
            continue
        if (step := int(match[1])) > LAST_STEP:
            raise InputError(
                f"{where}: {folder} would be a step beyond {LAST_STEP:.0e}; rename it, or correct `path`"
            )
        if step in found:
            raise InputError(
                f"{where}: {found[step]} and {folder} are both step {step}; rename one of them"
            )
        found[step] = folder
    return found


def _check_folder(path: str, where: str) -> str:
    """Find the folder of a path of an entry."""
    try:
        return str(find_local_checkpoint(path))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def find_local_tokenizer(entry: Entry, checkpoints: Sequence[Checkpoint], where: str) -> str:
    """Where the tokenizer of folders is; empty if each has its own.

    Raises
    ------
    InputError
        If there is none.
    """
    stated = _check_folder(entry.tokenizer, where) if entry.tokenizer else ""
    for folder in [stated] if stated else [checkpoint.path for checkpoint in checkpoints]:
        if not list_tokenizer_paths({file.name for file in Path(folder).glob("*")}, ""):
            raise InputError(
                f"{where}: {folder} has no tokenizer; save it there (`tokenizer.save_pretrained`), or name the "
                "folder that has it under `tokenizer`"
            )
    return stated


def complete_local_shape(stated: Shape, checkpoints: Sequence[Checkpoint], where: str) -> Shape:
    """Complete what an entry states by what the ``config.json`` of all its folders says."""
    try:
        shapes = {c.path: _read_folder_shape(Path(c.path), where) for c in checkpoints}
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix(f'{where}: ')}") from None
    final = checkpoints[-1].path
    for folder, shape in shapes.items():
        if shape != shapes[final]:
            raise InputError(
                f"{where}: config.json in {folder} says {vars(shape)}, in {final} {vars(shapes[final])}, so "
                "these are no steps of one training run; list the `steps` that are"
            )
    return complete_shape(stated, shapes[final], where)


def _read_folder_shape(folder: Path, where: str) -> Shape:
    config = read_configuration_file(folder)
    refuse_quantised(config, where)
    return parse_shape(config, where)
