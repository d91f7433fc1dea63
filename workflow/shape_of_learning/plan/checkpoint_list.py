"""The checkpoints that an entry of the model list asks for."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from shape_of_learning.plan.revision_template import RevisionTemplate
from shape_of_learning.plan.step_rules import StepRule


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


def folder_name(revision: str) -> str:
    """Name a folder after a revision.

    Slashes (``refs/pr/1``) become ``--``. What else a shell, Snakemake or a file system might take for
    its own becomes ``-``, and a digest of the revision tells it from others that then look alike.
    """
    name = re.sub(r"[^A-Za-z0-9._+-]", "-", revision.replace("/", "--"))
    if name == revision.replace("/", "--"):
        return name
    return f"{name}-{hashlib.sha256(revision.encode()).hexdigest()[:8]}"
