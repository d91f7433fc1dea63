"""A model's checkpoints as the Hub has them: pinned to commits, and judged."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from shape_of_learning.checkpoints.integrity import CurvePoint, judged_curve
from shape_of_learning.checkpoints.judged_checkpoint import JudgedCheckpoint
from shape_of_learning.checkpoints.lock import Lock, read_lock
from shape_of_learning.checkpoints.weight_listing import WeightListing
from shape_of_learning.errors import InputError, UnreachableError
from shape_of_learning.plan.models import Model
from shape_of_learning.plan.pinning import is_pinned, pinned, planned_checkpoints
from shape_of_learning.plan.steps import Checkpoint, StepRule


@dataclass(frozen=True)
class Curve:
    """All checkpoints that a model's entry asks for, ordered by step.

    Attributes
    ----------
    model : Model
        With its whole shape, whoever said it; as it was if no revision can be used.
    checkpoints : tuple of Checkpoint
    judged : mapping of str to JudgedCheckpoint
        Name of a checkpoint -> what :func:`.judged_curve` says of it. Where nothing is listed, because it
        is not from the Hub or this could not be asked, only reports condemn it.
    lock : Lock
        What pins them; empty for what is not from the Hub.
    is_new : bool
        Whether the lock file does not hold all of it yet.
    unresolved : str
        Why the Hub has not been asked; empty if it has. Then nothing is pinned.
    """

    model: Model
    checkpoints: tuple[Checkpoint, ...]
    judged: Mapping[str, JudgedCheckpoint]
    lock: Lock = field(default_factory=Lock)
    is_new: bool = False
    unresolved: str = ""

    def bad(self) -> dict[str, str]:
        """Names and verdicts of the checkpoints that are not what they should be, as far as is known yet."""
        return {name: each.verdict for name, each in self.judged.items() if each.is_condemned}

    def measured(self, *, flagged: bool) -> tuple[Checkpoint, ...]:
        """Checkpoints that a run measures: those not known to be bad, and the `flagged` ones if asked for."""
        return tuple(
            each
            for each in self.checkpoints
            if not self.judged[each.name].is_condemned
            or (flagged and not self._is_unusable(each.name))
        )

    @property
    def verdicts(self) -> dict[str, str]:
        """Name of each checkpoint -> the verdict on it."""
        return {name: each.verdict for name, each in self.judged.items()}

    def _is_unusable(self, name: str) -> bool:
        return name in self.lock.revisions and bool(self.lock.revisions[name].listed.problem)


def curve_of(
    model: Model, lock_file: Path, *, unreachable: str = "", say: Callable[[str], None] = print
) -> Curve:
    """Resolve and judge the checkpoints of a model; writes nothing.

    Parameters
    ----------
    model : Model
    lock_file : Path
        What it holds is not asked again; what it lacks is asked of the Hub.
    unreachable : str
        Why the Hub need not be tried, if it has been found out already.
    say : callable
        Shows a line on the terminal while the Hub is asked.

    Raises
    ------
    InputError
        If the lock is damaged, if the Hub refuses, or if it cannot be asked which steps there are or what
        the model is like.
    """
    if not model.source.is_remote:
        return _as_listed(model)
    old = read_lock(lock_file) or Lock()
    lock = old
    if not is_pinned(model, old):
        try:
            if unreachable:
                raise UnreachableError(unreachable)
            lock = pinned(model, old, say)
        except UnreachableError as error:
            _refuse_if_unknown(model, lock_file, error)
            return _as_listed(model, unresolved=str(error))
    checkpoints = planned_checkpoints(model, lock) or []
    is_known = model.shape.is_whole() or lock.shape.layers > 0
    return Curve(
        model.with_shape(lock.shape) if is_known else model,
        tuple(checkpoints),
        _judged(model, checkpoints, lock),
        lock,
        is_new=lock != old,
    )


def _as_listed(model: Model, unresolved: str = "") -> Curve:
    judged = _judged(model, model.checkpoints, Lock())
    return Curve(model, model.checkpoints, judged, unresolved=unresolved)


def _judged(
    model: Model, checkpoints: Sequence[Checkpoint], lock: Lock
) -> dict[str, JudgedCheckpoint]:
    points = [
        CurvePoint(
            each.name,
            each.step,
            each.repository,
            lock.revisions[each.name].listed if lock.revisions else WeightListing(),
            each.revision == "main",
        )
        for each in checkpoints
    ]
    judged = judged_curve(points, lock.mains, model.known_bad, _last_step(model, checkpoints))
    return {
        each.name: replace(each, tokens=checkpoint.tokens)
        for each, checkpoint in zip(judged, checkpoints, strict=True)
    }


def _last_step(model: Model, checkpoints: Sequence[Checkpoint]) -> int | None:
    """The last step of training, where it is known: the model's own, or the last that there is."""
    if model.last_step is not None:
        return model.last_step
    takes_the_last = model.offered is not None and isinstance(model.offered.wanted, StepRule)
    if not takes_the_last:
        return None
    return max((each.step for each in checkpoints if each.step is not None), default=None)


def _refuse_if_unknown(model: Model, lock_file: Path, error: UnreachableError) -> None:
    reason = re.sub(r"^model `[^`]*`: ", "", str(error))  # each sentence names its model once
    if model.offered is not None:
        raise InputError(
            f"model `{model.name}`: its steps are chosen among those that the Hub offers, but {reason}; "
            f"restore {lock_file}, or list the steps"
        ) from error
    if not model.shape.is_whole():
        raise InputError(
            f"model `{model.name}`: its config.json on the Hub says what the entry does not, but {reason}; "
            f"restore {lock_file}, or state `role`, `layers` and `hidden_size`"
        ) from error
