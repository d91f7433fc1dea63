"""Choose training steps, and read and write the names of their revisions."""

import hashlib
import math
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shape_of_learning.checkpoints.lock import Checkpoint
from shape_of_learning.checkpoints.verdict import LAST_STEP
from shape_of_learning.errors import InputError
from shape_of_learning.training.recipe import name_step

PLACEHOLDERS = {"step", "kilosteps", "gigatokens", "stage"}
NUMBERS = {"gigatokens": r"\d+(?:\.\d+)?"}  # others are whole
SHOWN_STEPS = 20
MOST_TOKENS = 10**18


def choose(step_choice: Any, available_steps: Iterable[int]) -> list[int]:
    """Choose among the available training steps.

    Parameters
    ----------
    step_choice : str, dict or list
        ``training.steps`` of an entry: ``"all"``; ``"log"``, one step per doubling; ``{"log": 12}`` or
        ``{"linear": 20}``, that number of steps with an even ratio or difference of neighbours; or a list.
    available_steps : iterable of int

    Returns
    -------
    list of int
        Ascending. A list chooses its available steps, and ``"all"`` chooses every available step. Other values choose
        the first and the last available step, and between them the steps nearest to even spacing, each once. Step 0 has
        no logarithm: ``"log"`` adds it to the evenly spaced steps, but ``{"log": 12}`` counts it.

    Examples
    --------
    >>> choose("log", range(101))
    [0, 1, 2, 4, 8, 16, 32, 64, 100]
    >>> choose({"linear": 3}, range(0, 101, 10))
    [0, 50, 100]
    """
    steps = sorted(set(available_steps))
    if isinstance(step_choice, list):
        return [step for step in steps if step in step_choice]
    spacing, points = (
        next(iter(step_choice.items())) if isinstance(step_choice, dict) else (step_choice, None)
    )
    if spacing == "all":
        return steps
    if spacing == "linear":
        return _choose_nearest(steps, _space_evenly(steps, points, float, float))
    zero = [step for step in steps if step == 0]
    points = None if points is None else max(1, points - len(zero))
    positive = steps[len(zero) :]
    return zero + _choose_nearest(
        positive, _space_evenly(positive, points, math.log, math.exp), math.log
    )


def _space_evenly(steps: list[int], points: int | None, scale: Any, back: Any) -> list[float]:
    """Return targets from the first to the last step, evenly spaced on a scale."""
    if not steps:
        return []
    low, high = scale(steps[0]), scale(steps[-1])
    if points is None:
        doublings = range(math.floor((high - low) / math.log(2)) + 1)
        return [steps[0] * 2.0**i for i in doublings] + [float(steps[-1])]
    if points == 1:
        return [float(steps[-1])]
    return [back(low + (high - low) * i / (points - 1)) for i in range(points)]


def _choose_nearest(steps: list[int], targets: list[float], scale: Any = float) -> list[int]:
    nearest_steps = set()
    for target in targets:
        place = bisect_left(steps, target)
        around = steps[max(0, place - 1) : place + 1]
        nearest_steps.add(min(around, key=lambda step: abs(scale(step) - scale(target))))
    return sorted(nearest_steps)


def choose_steps(
    step_choice: Any, available_steps: Iterable[int], where: str, place: str
) -> list[int]:
    """Choose steps as :func:`choose` does, and refuse a list with a missing step.

    Raises
    ------
    InputError
        If a listed step is missing; `where` names the entry, and `place` where the available steps are.
    """
    steps = sorted(available_steps)
    if isinstance(step_choice, list) and (missing := sorted({*step_choice} - {*steps})):
        examples = ", ".join(map(str, steps[:SHOWN_STEPS])) + (
            ", ..." if steps[SHOWN_STEPS:] else ""
        )
        raise InputError(
            f"{where}: `training.steps` asks for {missing[0]}, but {place} only the steps {examples}; correct the "
            "list, or write `all`"
        )
    return choose(step_choice, steps)


@dataclass(frozen=True)
class RevisionTemplate:
    """The pattern of the names of steps: of their revisions, folders or repositories.

    Attributes
    ----------
    pattern : str
        Text with ``{step}`` or ``{kilosteps}`` (thousands of steps), with or without leading zeros,
        ``{gigatokens}`` (billions of tokens seen, rounded by the publisher), and ``{stage}``, a number that
        can be ignored if steps are counted through all stages.
    """

    pattern: str

    @property
    def has_step(self) -> bool:
        """Whether the pattern distinguishes steps."""
        return any(f"{{{name}}}" in self.pattern for name in ("step", "kilosteps", "gigatokens"))

    def name(self, step: int) -> str:
        """Write the name of a step, which must be a multiple of 1000 for ``{kilosteps}``."""
        return self.pattern.replace("{step}", str(step)).replace("{kilosteps}", str(step // 1000))

    def read(self, name: str, tokens_per_step: int | None = None) -> tuple[int, int | None] | None:
        """Read step and tokens from a name; None if the name does not fit the pattern or a number is too large.

        The tokens are None if the pattern has none. If it has only tokens, the step is their number divided by
        `tokens_per_step`, or their number in billions.
        """
        match = self._expression.fullmatch(name)
        if match is None:
            return None
        values = match.groupdict()
        tokens = round(10**9 * float(values["gigatokens"])) if "gigatokens" in values else None
        if "step" in values:
            step = int(values["step"])
        elif "kilosteps" in values:
            step = 1000 * int(values["kilosteps"])
        else:
            step = round((tokens or 0) / (tokens_per_step or 10**9))
        return (step, tokens) if step <= LAST_STEP and (tokens or 0) <= MOST_TOKENS else None

    def find_stage(self, name: str) -> str:
        """Find the stage in a name; empty if the pattern has no stage."""
        match = self._expression.fullmatch(name)
        return match.groupdict().get("stage", "") if match else ""

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        parts, digits = re.split(r"\{(\w+)\}", self.pattern), r"\d+"
        numbers = [
            rf"(?P<{part}>{NUMBERS.get(part, digits)})" if place % 2 else re.escape(part)
            for place, part in enumerate(parts)
        ]
        return re.compile("".join(numbers), re.ASCII)


def make_checkpoint(step: int, tokens_per_step: int | None, path: str = "") -> Checkpoint:
    """Make the checkpoint of a step in a local folder, or of a training of this run."""
    name, tokens = name_step(step), tokens_per_step and step * tokens_per_step
    return Checkpoint(name, name, step=step, tokens=tokens, path=path)


@dataclass(frozen=True)
class OfferedSteps:
    """A choice of steps among the branches of a repository, or among the folders of one branch.

    Attributes
    ----------
    repository, subfolder : str
        As in `Checkpoint`.
    template : RevisionTemplate
        The pattern of the branches, or of the folders, that are steps.
    step_choice : str, dict or list
        The choice, as :func:`choose` reads it.
    tokens_per_step : int or None
        If given, it decides the tokens of a step, whatever the name says.
    folder_revision : str
        The revision whose folders are steps; empty if branches are steps.
    """

    repository: str
    subfolder: str
    template: RevisionTemplate
    step_choice: Any
    tokens_per_step: int | None
    folder_revision: str = ""

    def __str__(self) -> str:
        steps = self.step_choice
        if isinstance(steps, dict):
            steps = ": ".join(str(part) for part in next(iter(steps.items())))
        return f"{self.repository} {self.template.pattern} {steps}"

    @property
    def is_list(self) -> bool:
        """Whether the steps are a list, and their names follow without a listing from the Hub."""
        pattern = self.template.pattern
        is_named_by_step = "{gigatokens}" not in pattern and "{stage}" not in pattern
        return isinstance(self.step_choice, list) and is_named_by_step and not self.folder_revision

    def choose_branches(self, branches: Iterable[str], where: str) -> list[str]:
        """Choose branches, in the order of their steps, with or without leading zeros in their names.

        Raises
        ------
        InputError
            If there are steps, but not one that the list has; `where` names the entry.
        """
        branches_by_step = self._find_branches(branches)
        if not branches_by_step:
            return []
        steps = choose_steps(self.step_choice, branches_by_step, where, f"`{self.repository}` has")
        return [branches_by_step[step] for step in steps]

    def name_steps(
        self, checkpoints: Iterable[Checkpoint], branches: Iterable[str]
    ) -> list[Checkpoint]:
        """Replace the names of checkpoints by those of their branches; keep the names of those without a branch."""
        branches_by_step = self._find_branches(branches)
        return [
            self.make_checkpoint(branches_by_step[checkpoint.step])
            if checkpoint.step in branches_by_step
            and checkpoint.revision == self.template.name(checkpoint.step)
            else checkpoint
            for checkpoint in checkpoints
        ]

    def has_all(self, branches: Iterable[str]) -> bool:
        """Return whether each step of the list has a branch."""
        return {*self.step_choice} <= self._find_branches(branches).keys()

    def _find_branches(self, branches: Iterable[str]) -> dict[int, str]:
        """Find the branch of each step: the one without leading zeros if there are several, or else the first."""
        branches_by_step: dict[int, str] = {}
        for name in sorted(branches):
            step_and_tokens = self.template.read(name, self.tokens_per_step)
            if step_and_tokens is not None and (
                step_and_tokens[0] not in branches_by_step
                or name == self.template.name(step_and_tokens[0])
            ):
                branches_by_step[step_and_tokens[0]] = name
        return branches_by_step

    def make_checkpoint(self, revision: str) -> Checkpoint:
        """Make the checkpoint of a branch."""
        step, tokens = self.template.read(revision, self.tokens_per_step) or (0, None)
        if self.tokens_per_step is not None:
            tokens = step * self.tokens_per_step
        name, place = name_folder(revision), (revision, self.repository, self.subfolder)
        if self.folder_revision:
            place = self.folder_revision, self.repository, revision
        return Checkpoint(name, *place, step, tokens)


def name_folder(revision: str) -> str:
    """Name a folder after a revision.

    Slashes (``refs/pr/1``) become ``--``. Other characters with a meaning for a shell, Snakemake or a file system
    become ``-``; a digest of the revision then keeps the name unique.
    """
    name = re.sub(r"[^A-Za-z0-9._+-]", "-", revision.replace("/", "--"))
    if name == revision.replace("/", "--"):
        return name
    return f"{name}-{hashlib.sha256(revision.encode()).hexdigest()[:8]}"
