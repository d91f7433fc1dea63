"""Revisions of the Hugging Face Hub that an entry of the model list names."""

import re
from collections import Counter
from pathlib import PurePosixPath
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.plan.entries import Entry
from shape_of_learning.plan.steps import (
    PLACEHOLDERS,
    Checkpoint,
    OfferedSteps,
    RevisionTemplate,
    StepRule,
    folder_name,
)
from shape_of_learning.training.recipe import revision_of_step


def hub_checkpoints(entry: Entry, where: str) -> tuple[list[Checkpoint], OfferedSteps | None]:
    """List the checkpoints that an entry names by itself, by step, and the steps that the Hub must be asked for.

    Raises
    ------
    InputError
        If no step's name can be made from the patterns; `where` names the entry.
    """
    training, repository, subfolder = entry.training, entry.repository or "", _inside(entry)
    if training is None:
        revision = entry.revision or "main"
        return [Checkpoint(folder_name(revision), revision, repository, subfolder)], None
    written = training.model_dump(exclude_none=True)
    steps, per_step = written.get("steps"), training.tokens_per_step
    checkpoints, offered = [], None
    if steps is not None:
        revisions, repositories = _templates(training.revision, steps, repository, where)
        if isinstance(steps, list) and revisions.says_all:
            checkpoints = [
                Checkpoint(
                    folder_name(revisions.name(step))
                    if revisions.has_step
                    else revision_of_step(step),
                    revisions.name(step),
                    repositories.name(step),
                    subfolder,
                    step,
                    per_step and step * per_step,
                )
                for step in steps
            ]
        else:
            rule = StepRule.parse(steps) or tuple(sorted(steps))
            offered = OfferedSteps(repository, subfolder, revisions, rule, per_step)
    for each in training.checkpoints or ():
        checkpoints.append(
            Checkpoint(
                each.name or folder_name(each.revision),
                each.revision,
                each.repository or repository,
                _inside(each) or subfolder,
                each.step,
                (per_step and each.step * per_step) if each.tokens is None else each.tokens,
            )
        )
    return sorted(checkpoints, key=lambda each: each.step or 0), offered


def _templates(
    revision: str | None, steps: Any, repository: str, where: str
) -> tuple[RevisionTemplate, RevisionTemplate]:
    """Read the patterns of revisions and repositories; refuse those from which no step's name can be made."""
    if revision is None:
        raise InputError(
            f"{where}: `training.steps` needs `training.revision`, the pattern of the revisions' names, such "
            "as `step{step}`; add it"
        )
    placeholders = re.findall(r"\{(.*?)\}", revision + repository)
    for name, times in Counter(placeholders).items():
        if name not in PLACEHOLDERS or times > 1:
            known = ", ".join(f"`{{{each}}}`" for each in sorted(PLACEHOLDERS))
            raise InputError(
                f"{where}: `{{{name}}}` in `training.revision` or `repository` is no placeholder, or is "
                f"there twice; use each of {known} once at most"
            )
    if isinstance(steps, list) and "kilosteps" in placeholders and any(s % 1000 for s in steps):
        raise InputError(
            f"{where}: a step is no whole number of thousands, which `{{kilosteps}}` needs; "
            "correct `training.steps`"
        )
    revisions, repositories = RevisionTemplate(revision), RevisionTemplate(repository)
    if revisions.has_step == repositories.has_step:
        raise InputError(
            f"{where}: write `{{step}}` into `training.revision`, or into `repository` where each step "
            "has one of its own"
        )
    if repositories.has_step and not isinstance(steps, list):
        raise InputError(
            f"{where}: `training.steps` must be a list where each step has a repository of its own"
        )
    return revisions, repositories


def _inside(entry: Any) -> str:
    """Folder inside a repository as the Hub writes it: ``a/b``, empty for the top."""
    parts = PurePosixPath(entry.subfolder or "").parts
    return "/".join(part for part in parts if part != "/")
