"""The checkpoints that an entry of the model list asks for."""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from shape_of_learning.checkpoints.integrity import KnownBad
from shape_of_learning.plan.revision_template import RevisionTemplate
from shape_of_learning.plan.step_rules import StepRule
from shape_of_learning.pretraining.steps import pretraining_steps, revision_of_step


@dataclass(frozen=True)
class Checkpoint:
    """One set of weights.

    Attributes
    ----------
    name : str
        Its name within the model: the `revision` column of tables and a folder under ``results``.
    revision : str
        Branch, tag or commit on the Hub; the folder's name for weights that are not from the Hub.
    repository : str
        ``organisation/name`` on the Hub; empty for weights that are not from there.
    subfolder : str
        Folder inside the repository; empty for its top.
    step, tokens : int or None
        Optimiser steps and tokens of training; None where the model has no training curve.
    path : str
        The folder of weights that lie on the disk already; else empty.
    """

    name: str
    revision: str
    repository: str = ""
    subfolder: str = ""
    step: int | None = None
    tokens: int | None = None
    path: str = ""


@dataclass(frozen=True)
class OfferedSteps:
    """Steps that are chosen among the branches that a repository offers.

    Attributes
    ----------
    repository, subfolder : str
        As in `Checkpoint`.
    template : RevisionTemplate
        Which branches are steps.
    wanted : StepRule or tuple of int
        The choice.
    tokens_per_step : int or None
        Decides the tokens, before what a name says.
    """

    repository: str
    subfolder: str
    template: RevisionTemplate
    wanted: StepRule | tuple[int, ...]
    tokens_per_step: int | None

    def __str__(self) -> str:
        steps = self.wanted if isinstance(self.wanted, StepRule) else list(self.wanted)
        return f"{self.repository} {self.template.pattern} {steps}"

    def choose(self, branches: Iterable[str]) -> list[str]:
        """Choose branches, by step; a step that is asked for and not offered is left out."""
        offered: dict[int, str] = {}
        for name in sorted(branches):
            if (read := self.template.read(name)) is not None:
                offered.setdefault(read[0], name)
        wanted = self.wanted
        steps = wanted.choose(offered) if isinstance(wanted, StepRule) else wanted
        return [offered[step] for step in steps if step in offered]

    def checkpoint(self, revision: str) -> Checkpoint:
        """Describe a branch."""
        step, tokens = self.template.read(revision) or (0, None)
        if self.tokens_per_step is not None:
            tokens = step * self.tokens_per_step
        name = folder_name(revision)
        return Checkpoint(name, revision, self.repository, self.subfolder, step, tokens)


def listed_checkpoints(entry: Mapping[str, Any]) -> list[Checkpoint]:
    """List the checkpoints that an entry without ``path`` names by itself, without asking the Hub."""
    repository, subfolder = entry.get("repository", ""), _folder(entry)
    if "pretraining" in entry:
        return _pretrained(entry["pretraining"])
    if "training" not in entry:
        revision = entry.get("revision", "main")
        return [Checkpoint(folder_name(revision), revision, repository, subfolder)]
    training = entry["training"]
    tokens_per_step = training.get("tokens_per_step")
    checkpoints = []
    if "steps" in training and _names_are_known(training):
        revisions = RevisionTemplate(training["revision"])
        repositories = RevisionTemplate(repository)
        for step in training["steps"]:
            revision = revisions.name(step)
            checkpoints.append(
                Checkpoint(
                    folder_name(revision) if revisions.has_step else revision_of_step(step),
                    revision,
                    repositories.name(step),
                    subfolder,
                    step,
                    None if tokens_per_step is None else step * tokens_per_step,
                )
            )
    for extra in training.get("checkpoints", []):
        checkpoints.append(
            Checkpoint(
                extra.get("name", folder_name(extra["revision"])),
                extra["revision"],
                extra.get("repository", repository),
                _folder(extra) or subfolder,
                extra["step"],
                extra.get("tokens", tokens_per_step and extra["step"] * tokens_per_step),
            )
        )
    return checkpoints


def offered_steps(entry: Mapping[str, Any]) -> OfferedSteps | None:
    """Say which steps the Hub must be asked for; None if the entry names all of them."""
    training = entry.get("training", {})
    if "path" in entry or "steps" not in training or _names_are_known(training):
        return None
    return OfferedSteps(
        entry["repository"],
        _folder(entry),
        RevisionTemplate(training["revision"]),
        StepRule.parse(training["steps"]) or tuple(sorted(training["steps"])),
        training.get("tokens_per_step"),
    )


def known_mistakes(entry: Mapping[str, Any]) -> tuple[KnownBad, ...]:
    """Read what an entry says of revisions that are not what their names say."""
    return tuple(
        KnownBad(
            _steps(mistake["steps"]),
            mistake["source"],
            mistake.get("because", ""),
            mistake.get("same_as"),
        )
        for mistake in entry.get("training", {}).get("known_bad", [])
    )


def folder_name(revision: str) -> str:
    """Name a folder after a revision.

    Slashes (``refs/pr/1``) become ``--``. What else a shell, Snakemake or a file system might take for
    its own becomes ``-``, and a digest of the revision tells it from others that then look alike.
    """
    name = re.sub(r"[^A-Za-z0-9._+-]", "-", revision.replace("/", "--"))
    if name == revision.replace("/", "--"):
        return name
    return f"{name}-{hashlib.sha256(revision.encode()).hexdigest()[:8]}"


def _folder(entry: Mapping[str, Any]) -> str:
    """Folder inside a repository as the Hub writes it: ``a/b``, empty for the top."""
    parts = PurePosixPath(entry.get("subfolder", "")).parts
    return "/".join(part for part in parts if part != "/")


def _names_are_known(training: Mapping[str, Any]) -> bool:
    listed = isinstance(training["steps"], list)
    return listed and RevisionTemplate(training["revision"]).says_all


def _steps(written: Any) -> Collection[int]:
    """Steps of a mistake: a list, or all from one to another."""
    if isinstance(written, list):
        return tuple(written)
    return range(written["from"], written["to"] + 1)


def _pretrained(recipe: Mapping[str, Any]) -> list[Checkpoint]:
    tokens_per_step = recipe["batch_size"] * recipe["context"]
    return [
        Checkpoint(
            revision_of_step(step),
            revision_of_step(step),
            step=step,
            tokens=step * tokens_per_step,
        )
        for step in pretraining_steps(recipe["last_step"])
    ]
