"""A model's checkpoints as the Hub has them: pinned to commits, and judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shape_of_learning.checkpoints.integrity import OK, CurvePoint, verdicts
from shape_of_learning.checkpoints.integrity_table import integrity_table_is, write_integrity_table
from shape_of_learning.checkpoints.lock import Lock, LockedRevision, read_lock, write_lock
from shape_of_learning.checkpoints.weight_listing import WeightListing
from shape_of_learning.errors import InputError, UnreachableError
from shape_of_learning.plan.checkpoint_list import Checkpoint
from shape_of_learning.plan.model_list import Model


@dataclass(frozen=True)
class Curve:
    """All checkpoints that a model's entry asks for, ordered by step.

    Attributes
    ----------
    checkpoints : tuple of Checkpoint
        Pinned to commits where they are from the Hub.
    verdicts : mapping of str to str
        Name of a checkpoint -> what :func:`.verdicts` says; ``ok`` for what is not from the Hub.
    usable : frozenset of str
        Names of those that could be measured whatever their verdict.
    tokenizer_commit : str
        Pins the tokenizer where it is in another repository.
    unresolved : str
        Why the Hub has not been asked; empty if it has. Then nothing is pinned or judged.
    """

    checkpoints: tuple[Checkpoint, ...]
    verdicts: Mapping[str, str]
    usable: frozenset[str]
    tokenizer_commit: str = ""
    unresolved: str = ""

    def bad(self) -> dict[str, str]:
        """Names and verdicts of the checkpoints that are not what they should be."""
        return {name: verdict for name, verdict in self.verdicts.items() if verdict != OK}

    def measured(self, *, flagged: bool) -> tuple[Checkpoint, ...]:
        """Checkpoints that a run measures: the good ones, and the `flagged` ones if asked for."""
        return tuple(
            checkpoint
            for checkpoint in self.checkpoints
            if self.verdicts[checkpoint.name] == OK or (flagged and checkpoint.name in self.usable)
        )


def curve_of(model: Model, lock_file: Path, table: Path, *, unreachable: str = "") -> Curve:
    """Resolve and judge the checkpoints of a model.

    Parameters
    ----------
    model : Model
    lock_file : Path
        What it holds is not asked again; what it lacks is asked of the Hub and added to it.
    table : Path
        The gate's table of the model. The rule that writes it runs once, before any download; here it is
        brought up to date when the curve changes, since a rule that ran again would make Snakemake either
        fetch all revisions anew or overlook what else has changed.
    unreachable : str
        Why the Hub need not be tried, if it has been found out already.

    Raises
    ------
    InputError
        If the lock is damaged, if the Hub refuses, or if steps are chosen by a rule and it cannot be asked.
    """
    if model.source != "hub":
        return _as_listed(model)
    lock = read_lock(lock_file) or Lock()
    checkpoints = _known(model, lock)
    if checkpoints is None:
        try:
            if unreachable:
                raise UnreachableError(unreachable)
            lock, checkpoints = _resolved(model, lock)
        except UnreachableError as error:
            if model.offered is not None:
                raise InputError(
                    f"model `{model.name}`: its steps are chosen among those that the Hub offers, but "
                    f"{error}; restore {lock_file}, or list the steps"
                ) from error
            return _as_listed(model, unresolved=str(error))
    judged = _judged(model, lock, checkpoints)
    if judged != read_lock(lock_file):
        write_lock(lock_file, judged)
    if table.exists() and not integrity_table_is(table, judged):
        write_integrity_table(table, judged)
    return Curve(
        tuple(replace(c, commit=judged.revisions[c.name].listed.commit) for c in checkpoints),
        judged.curve,
        frozenset(name for name in judged.curve if not judged.revisions[name].listed.problem),
        judged.tokenizer.listed.commit if judged.tokenizer else "",
    )


def _as_listed(model: Model, unresolved: str = "") -> Curve:
    names = [checkpoint.name for checkpoint in model.checkpoints]
    return Curve(
        model.checkpoints, dict.fromkeys(names, OK), frozenset(names), unresolved=unresolved
    )


def _known(model: Model, lock: Lock) -> list[Checkpoint] | None:
    """The checkpoints of a model by step, if a lock knows all of them."""
    checkpoints = list(model.checkpoints)
    if model.offered is not None:
        chosen = lock.chosen.get(str(model.offered))
        if chosen is None or not set(chosen) <= set(lock.revisions):
            return None
        revisions = [lock.revisions[name].revision for name in chosen]
        checkpoints += map(model.offered.checkpoint, revisions)
    if any(not _same_place(lock.revisions.get(c.name), c) for c in checkpoints):
        return None
    if model.tokenizer != (lock.tokenizer.repository if lock.tokenizer else ""):
        return None
    return sorted(checkpoints, key=_by_step)


def _resolved(model: Model, old: Lock) -> tuple[Lock, list[Checkpoint]]:
    """Ask the Hub for what the old lock does not hold."""
    from shape_of_learning.checkpoints.resolution import resolve
    from shape_of_learning.hub.hub_errors import invisible
    from shape_of_learning.hub.listing import commits_of

    where = f"model `{model.name}`"
    checkpoints, chosen = list(model.checkpoints), dict(old.chosen)
    if model.offered is not None:
        branches = commits_of(model.offered.repository, where=where)
        if branches is None:
            raise invisible(model.offered.repository, where=where)
        offered = [model.offered.checkpoint(b) for b in model.offered.choose(branches)]
        if not offered:
            raise InputError(
                f"{where}: `{model.offered.repository}` has no branch like "
                f"`{model.offered.template.pattern}`; correct `repository` or `training.revision`"
            )
        chosen[str(model.offered)] = [checkpoint.name for checkpoint in offered]
        checkpoints += offered
    asked = {
        c.name: LockedRevision(c.repository, c.revision, c.subfolder, c.step, c.tokens)
        for c in checkpoints
        if not _same_place(old.revisions.get(c.name), c)
    }
    found, mains = resolve(asked, where=where)
    tokenizer = old.tokenizer
    if model.tokenizer != (tokenizer.repository if tokenizer else ""):
        tokenizer = _resolved_tokenizer(model, where)
    lock = Lock(old.curve, chosen, {**old.revisions, **found}, {**mains, **old.mains}, tokenizer)
    return lock, sorted(checkpoints, key=_by_step)


def _resolved_tokenizer(model: Model, where: str) -> LockedRevision | None:
    from shape_of_learning.checkpoints.resolution import resolve

    if not model.tokenizer:
        return None
    found, _ = resolve({"": LockedRevision(model.tokenizer, "main")}, where=where)
    return replace(found[""], listed=WeightListing(found[""].listed.commit))


def _judged(model: Model, lock: Lock, checkpoints: Sequence[Checkpoint]) -> Lock:
    points = [
        CurvePoint(
            c.name, c.step, c.repository, lock.revisions[c.name].listed, c.revision == "main"
        )
        for c in checkpoints
    ]
    # The tokens are the entry's, which may have been corrected since.
    tokens = {c.name: replace(lock.revisions[c.name], tokens=c.tokens) for c in checkpoints}
    return replace(
        lock,
        curve=verdicts(points, lock.mains, model.known_bad),
        revisions={**lock.revisions, **tokens},
    )


def _same_place(locked: LockedRevision | None, checkpoint: Checkpoint) -> bool:
    return locked is not None and (
        (locked.repository, locked.revision, locked.subfolder, locked.step)
        == (checkpoint.repository, checkpoint.revision, checkpoint.subfolder, checkpoint.step)
    )


def _by_step(checkpoint: Checkpoint) -> int:
    return checkpoint.step or 0
