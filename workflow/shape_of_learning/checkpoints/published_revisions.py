"""The rows of the atlas on the revisions of published trainings, read from ``atlas/atlas.json``.

Only the standard library is needed, and no network.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

from shape_of_learning.errors import InputError

ATLAS = Path(__file__).parents[1] / "atlas/atlas.json"
NO_FAULTS = ("ok", "not yet moved", "unknown")


@dataclass(frozen=True)
class PublishedRevision:
    """A revision of a published training, with the verdict on its weights.

    Attributes
    ----------
    repository, revision : str
        Its place on the Hub.
    step, tokens : int, optional
        The step and the tokens of the training, as the name of the revision or the publisher states them.
    commit : str
        The commit of the revision when it was checked; empty if not recorded.
    sha256 : str
        The SHA-256 of its files of weights, shards in their order; empty if not recorded.
    verdict : str
        ``"ok"``, ``"unknown"``, or what is wrong, such as ``"same as main"`` (atlas/README.md has all of them).
    reason : str
        The evidence for the verdict, in a sentence.
    known_by : str
        Hashes, tensors, losses, published results or a report, with commas between.
    source : str
        Addresses of reports and of published results, with blanks between, ``audit`` or ``lock``.
    checked : str
        The day of the check or the report, such as ``"2026-08-14"``; empty if not recorded.

    Examples
    --------
    >>> known = verdicts("EleutherAI/pythia-2.8b")["step66000"]
    >>> known.verdict, known.is_fault
    ('ok', False)
    """

    repository: str
    revision: str
    step: int | None = None
    tokens: int | None = None
    commit: str = ""
    sha256: str = ""
    verdict: str = "unknown"
    reason: str = ""
    known_by: str = ""
    source: str = ""
    checked: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether it is known not to be what its name says."""
        return self.verdict not in NO_FAULTS

    @property
    def exit_code(self) -> int:
        """The exit code of the command ``where``: 0 for no fault, 1 for a fault, 2 if nothing is known."""
        return 1 if self.is_fault else 2 if self.verdict == "unknown" else 0

    def __str__(self) -> str:
        """Write its place and its verdict in one line."""
        commit = self.commit or "commit not known"
        verdict = f"{self.verdict} ({self.reason})" if self.reason else self.verdict
        return f"{self.repository} {self.revision} {commit}: {verdict}"


class PublishedTraining(NamedTuple):
    """A training of the atlas: the suite that it belongs to, and its revisions by step."""

    suite: str
    revisions: tuple[PublishedRevision, ...]


@cache
def read_trainings() -> Mapping[str, PublishedTraining]:
    """Read all trainings of the atlas, by the names of their models."""
    models = json.loads(ATLAS.read_text(encoding="utf-8"))["models"]
    return {
        name: PublishedTraining(
            model["suite"], tuple(PublishedRevision(**row) for row in model["revisions"])
        )
        for name, model in models.items()
    }


def verdicts(repository: str) -> dict[str, PublishedRevision]:
    """Return the rows of the revisions of a repository, by their names.

    Parameters
    ----------
    repository : str
        On the Hub, such as ``EleutherAI/pythia-2.8b``.

    Returns
    -------
    dict of str to PublishedRevision
        Empty if the atlas has no such repository: then nothing is known.

    Examples
    --------
    >>> verdicts("EleutherAI/pythia-2.8b")["step1000"].verdict
    'same as main'
    """
    return {
        revision.revision: revision
        for training in read_trainings().values()
        for revision in training.revisions
        if revision.repository == repository
    }


def find(model: str, step: int) -> PublishedRevision:
    """Find a step of a published training.

    Parameters
    ----------
    model : str
        Its name in the atlas or on the Hub, such as ``pythia-2.8b``.
    step : int

    Raises
    ------
    InputError
        If the atlas has no such model, or no such step of it; it names the nearest ones.

    Examples
    --------
    >>> find("pythia-2.8b", step=66000).verdict
    'ok'
    """
    trainings = read_trainings()
    names_by_repository: dict[str, str] = {}
    for name, training in trainings.items():
        repository = training.revisions[0].repository
        names_by_repository |= {repository: name, repository.rpartition("/")[2]: name}
    name = names_by_repository.get(model, model)
    if name not in trainings:
        similar = get_close_matches(model[:100], trainings, n=1)
        hint = f"did you mean `{similar[0]}`?" if similar else f"known: {', '.join(trainings)}"
        raise InputError(f"the atlas has no model `{model}`; {hint}")
    revisions_by_step = {
        revision.step: revision
        for revision in trainings[name].revisions
        if revision.step is not None
    }
    if step not in revisions_by_step:
        nearest = sorted(revisions_by_step, key=lambda other: abs(other - step))[:4]
        steps = ", ".join(f"{other:,}" for other in sorted(nearest)) or "none"
        raise InputError(f"the atlas has no step {step:,} of `{name}`; near it are {steps}")
    return revisions_by_step[step]


def where(model: str, step: int) -> str:
    """Write the place of a step of a published training and its verdict in one line; raises as :func:`find`."""
    return str(find(model, step))
