"""The saved steps of a training run on the disk, such as the folders ``checkpoint-500`` of a Trainer."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.checkpoint_files import CONFIGURATION
from shape_of_learning.errors import InputError
from shape_of_learning.plan.checkpoint_list import Checkpoint
from shape_of_learning.plan.step_rules import StepRule
from shape_of_learning.pretraining.steps import revision_of_step

STEP = "{step}"
SHOWN_STEPS = 20


def local_checkpoints(entry: Mapping[str, Any], where: str) -> list[Checkpoint]:
    """List the checkpoints of an entry with ``path``, by step.

    Parameters
    ----------
    entry : mapping
        Of the model list. ``{step}`` in its path stands for the digits of a step, all else for itself. Which
        of the steps that are there are meant, its ``training.steps`` says.
    where : str
        How an error names the entry.

    Raises
    ------
    InputError
        If the path does not lead to another folder at each step, or to none at a step that is asked for.
    """
    path, training = entry["path"], entry.get("training")
    _check_pattern(path, training, where)
    if training is None:
        return [Checkpoint("main", "main", path=path)]
    found = steps_on_disk(path, where)
    rule = StepRule.parse(training["steps"])
    steps = sorted(training["steps"]) if rule is None else rule.choose(found)
    if not found:
        raise InputError(
            f"{where}: no folder like {path} holds a {CONFIGURATION}; correct `path`, absolute or relative "
            "to where the workflow runs"
        )
    if missing := [step for step in steps if step not in found]:
        raise InputError(
            f"{where}: `training.steps` asks for {_listed(missing)}, but like {path} there are only the "
            f"steps {_listed(sorted(found))}; correct the list, or write `all`"
        )
    tokens = training.get("tokens_per_step")
    return [
        Checkpoint(
            revision_of_step(step),
            revision_of_step(step),
            path=found[step],
            step=step,
            tokens=None if tokens is None else step * tokens,
        )
        for step in steps
    ]


def steps_on_disk(pattern: str, where: str) -> dict[int, str]:
    """Find the folders that a path with ``{step}`` leads to, and that hold a checkpoint: step -> path.

    Raises
    ------
    InputError
        If two folders have the same step.
    """
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
        match = expression.fullmatch(each.name)
        folder = each / rest
        if match is None or not (folder / CONFIGURATION).is_file():
            continue
        step = int(match[1])
        if step in found:
            raise InputError(
                f"{where}: {found[step]} and {folder} are both step {step}; rename one of them"
            )
        found[step] = str(folder)
    return found


def _check_pattern(path: str, training: Mapping[str, Any] | None, where: str) -> None:
    example = "such as `path: run/checkpoint-{step}`"
    if training is None:
        if STEP in path:
            raise InputError(
                f"{where}: `path` has `{STEP}`, but nothing says which steps; add `training: {{steps: all}}`"
            )
        return
    for key in ("revision", "checkpoints", "known_bad"):
        if key in training:
            raise InputError(
                f"{where}: `training.{key}` needs `repository`; for folders "
                + ("leave it out" if STEP in path else f"write `{STEP}` into `path`, {example},")
                + " and choose `training.steps`"
            )
    if path.count(STEP) != 1:
        raise InputError(
            f"{where}: `path` is the same folder at every step; write `{STEP}` into it, {example}"
            if STEP not in path
            else f"{where}: `{STEP}` occurs twice in `path`; write it once, {example}"
        )


def _listed(steps: Iterable[int]) -> str:
    shown = [str(step) for step in steps]
    more = f" and {len(shown) - SHOWN_STEPS} more" if len(shown) > SHOWN_STEPS else ""
    return ", ".join(shown[:SHOWN_STEPS]) + more
