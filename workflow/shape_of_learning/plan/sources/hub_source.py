"""Checkpoints of the Hugging Face Hub."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations
from pathlib import PurePosixPath
from typing import Any

from shape_of_learning.checkpoints.record import RECORD
from shape_of_learning.checkpoints.verdicts import KnownBad
from shape_of_learning.errors import InputError
from shape_of_learning.plan.checkpoint_list import Checkpoint, OfferedSteps, folder_name
from shape_of_learning.plan.revision_template import PLACEHOLDERS, RevisionTemplate
from shape_of_learning.plan.sources.source import Lookup, Places, Source
from shape_of_learning.plan.step_rules import StepRule
from shape_of_learning.training.recipe import revision_of_step


class HubSource(Source):
    """Revisions of repositories, pinned by a lock and downloaded."""

    key = "repository"
    is_remote = True

    def __init__(self, model: str, entry: Mapping[str, Any], where: str, models: Lookup) -> None:
        super().__init__(model, entry, where, models)
        _check_names(entry.get("training", {}), entry["repository"], where)
        self.checkpoints = tuple(sorted(_listed_checkpoints(entry), key=lambda c: c.step or 0))
        self.offered = _offered_steps(entry)
        self.known_bad = _known_mistakes(entry)
        _check_known_bad(self.known_bad, where)

    def inputs(self, revision: str, places: Places) -> list[str]:
        """The download."""
        return [f"{places.downloads}/{self.model}/{revision}"]

    def folder(self, revision: str, places: Places) -> str:
        """Where downloads are."""
        return places.own_path(f"{places.downloads}/{self.model}/{revision}")

    def receipt(self, revision: str, places: Places) -> str:
        """The record that came with the files."""
        return f"{self.folder(revision, places)}/{RECORD}"

    def weights(self, revision: str, pins: Callable[[], list[str]]) -> list[str]:
        """What the lock pins."""
        return pins()


def _listed_checkpoints(entry: Mapping[str, Any]) -> list[Checkpoint]:
    """List the checkpoints that an entry names by itself, without asking the Hub."""
    repository, subfolder = entry["repository"], _folder(entry)
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


def _offered_steps(entry: Mapping[str, Any]) -> OfferedSteps | None:
    """Say which steps the Hub must be asked for; None if the entry names all of them."""
    training = entry.get("training", {})
    if "steps" not in training or _names_are_known(training):
        return None
    return OfferedSteps(
        entry["repository"],
        _folder(entry),
        RevisionTemplate(training["revision"]),
        StepRule.parse(training["steps"]) or tuple(sorted(training["steps"])),
        training.get("tokens_per_step"),
    )


def _known_mistakes(entry: Mapping[str, Any]) -> tuple[KnownBad, ...]:
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


def _check_known_bad(reports: Sequence[KnownBad], where: str) -> None:
    """Refuse reports that contradict themselves or each other."""
    named = [each for each in reports if each.same_as is not None]
    for report in reports:
        if not report.steps:
            raise InputError(
                f"{where}: `training.known_bad` has `steps` whose `from` is above `to`; exchange them"
            )
    for report in named:
        if report.same_as in report.steps:
            raise InputError(
                f"{where}: `training.known_bad` says that step {report.same_as} has the weights of itself; "
                "take it from `steps`, or correct `same_as`"
            )
    for one, other in combinations(named, 2):
        # Two ranges overlap where one of them begins, if at all; they may be too long to be written out.
        candidates = [*_first_or_all(one.steps), *_first_or_all(other.steps)]
        both = [step for step in candidates if step in one.steps and step in other.steps]
        if both and one.same_as != other.same_as:
            raise InputError(
                f"{where}: `training.known_bad` says that step {min(both)} has the weights of step "
                f"{one.same_as} and of step {other.same_as}; remove it from one of the entries"
            )


def _first_or_all(steps: Collection[int]) -> Collection[int]:
    return steps[:1] if isinstance(steps, range) else steps


def _check_names(training: Mapping[str, Any], repository: str, where: str) -> None:
    """Refuse patterns from which no step's name can be made."""
    if "steps" not in training:
        return
    if "revision" not in training:
        raise InputError(
            f"{where}: `training.steps` needs `training.revision`, the pattern of the revisions' names, such "
            "as `step{step}`; add it"
        )
    pattern = training["revision"]
    placeholders = re.findall(r"\{(.*?)\}", pattern + repository)
    if unknown := set(placeholders) - PLACEHOLDERS:
        raise InputError(
            f"{where}: `{{{sorted(unknown)[0]}}}` in `training.revision` or `repository` is no "
            f"placeholder; use {', '.join(f'`{{{name}}}`' for name in sorted(PLACEHOLDERS))}"
        )
    if len(set(placeholders)) < len(placeholders):
        raise InputError(
            f"{where}: a placeholder occurs twice in `training.revision` and `repository`; write it once"
        )
    if isinstance(training["steps"], list) and "kilosteps" in placeholders:
        for step in training["steps"]:
            if step % 1000:
                raise InputError(
                    f"{where}: step {step} is no whole number of thousands, which `{{kilosteps}}` needs"
                )
    in_revision, in_repository = (RevisionTemplate(t).has_step for t in (pattern, repository))
    if in_revision == in_repository:
        raise InputError(
            f"{where}: write `{{step}}` into `training.revision`, or into `repository` where each step "
            "has one of its own"
        )
    if in_repository and not isinstance(training["steps"], list):
        raise InputError(
            f"{where}: `training.steps` must be a list where each step has a repository of its own"
        )


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
