"""Asking the Hub for what the lock of a model does not say."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from shape_of_learning.checkpoints.lock import Lock, LockedRevision
from shape_of_learning.checkpoints.weight_listing import WeightListing
from shape_of_learning.errors import InputError
from shape_of_learning.plan.models import Model
from shape_of_learning.plan.steps import Checkpoint

WAITING_SECONDS = 10.0  # between two lines on the terminal
ASKING_SECONDS = (
    1800.0  # for all questions on one model: a thousand revisions take that, at the Hub's own pace
)


def planned_checkpoints(model: Model, lock: Lock) -> list[Checkpoint] | None:
    """List the checkpoints of a model by step; None if a lock does not say which they are."""
    checkpoints = list(model.checkpoints)
    if model.offered is not None:
        chosen = lock.chosen.get(str(model.offered))
        if chosen is None or not set(chosen) <= set(lock.revisions):
            return None
        revisions = [lock.revisions[name].revision for name in chosen]
        checkpoints += map(model.offered.checkpoint, revisions)
    return sorted(checkpoints, key=_step)


def is_pinned(model: Model, lock: Lock) -> bool:
    """Whether a lock answers all that a plan asks of a model."""
    checkpoints = planned_checkpoints(model, lock)
    return (
        checkpoints is not None
        and all(_is_same_place(lock.revisions.get(each.name), each) for each in checkpoints)
        and model.tokenizer == (lock.tokenizer.repository if lock.tokenizer else "")
        and (model.shape.is_whole() or lock.shape.layers > 0)
    )


def pinned(model: Model, old: Lock, say: Callable[[str], None]) -> Lock:
    """Resolve what an old lock does not hold.

    Parameters
    ----------
    model : Model
        From the Hub.
    old : Lock
        Empty if there is none. What it holds is not asked again.
    say : callable
        Shows a line on the terminal: what is asked, and every ten seconds for whom it waits.

    Returns
    -------
    Lock
        With all that the model's entry asks for, and all that the old one held.

    Raises
    ------
    InputError
        If the Hub refuses, or offers no such steps.
    UnreachableError
        If it cannot be asked.
    """
    # Imported here, since where locks answer nobody needs the Hub's client.
    from shape_of_learning.checkpoints.resolution import listed_shape, resolve
    from shape_of_learning.hub.hub_errors import shown_endpoint
    from shape_of_learning.hub.retries import ending_in

    where = f"model `{model.name}`"
    with said_while_waiting(where, shown_endpoint(), say), ending_in(ASKING_SECONDS):
        checkpoints, lock = _with_steps(model, old, where)
        asked = {
            each.name: LockedRevision(each.repository, each.revision, each.subfolder)
            for each in checkpoints
            if not _is_same_place(old.revisions.get(each.name), each)
        }
        found, mains = resolve(asked, where=where) if asked else ({}, {})
        revisions = {**old.revisions, **found}
        listed = [revisions[each.name] for each in checkpoints]
        usable = [each for each in listed if not each.listed.problem]
        return replace(
            lock,
            revisions=revisions,
            mains={**mains, **old.mains},
            tokenizer=_tokenizer(model, old, where),
            shape=listed_shape(usable[-1], where=where) if usable else old.shape,
        )


def _with_steps(model: Model, old: Lock, where: str) -> tuple[list[Checkpoint], Lock]:
    """Checkpoints by step, and the lock with what was chosen among those that the Hub offers."""
    from shape_of_learning.hub.hub_errors import invisible
    from shape_of_learning.hub.listing import commits_of

    known, offered = planned_checkpoints(model, old), model.offered
    if known is not None or offered is None:
        return known or [], old
    branches = commits_of(offered.repository, where=where)
    if branches is None:
        raise invisible(offered.repository, where=where)
    chosen = [offered.checkpoint(branch) for branch in offered.choose(branches)]
    if not chosen:
        raise InputError(
            f"{where}: `{offered.repository}` has no branch like `{offered.template.pattern}`; correct "
            "`repository` or `training.revision`"
        )
    choice = {**old.chosen, str(offered): [each.name for each in chosen]}
    return sorted([*model.checkpoints, *chosen], key=_step), replace(old, chosen=choice)


def _tokenizer(model: Model, old: Lock, where: str) -> LockedRevision | None:
    from shape_of_learning.checkpoints.resolution import resolve

    if not model.tokenizer:
        return None
    if old.tokenizer is not None and old.tokenizer.repository == model.tokenizer:
        return old.tokenizer
    found, _ = resolve({"": LockedRevision(model.tokenizer, "main")}, where=where)
    return replace(found[""], listed=WeightListing(found[""].listed.commit))


def _step(checkpoint: Checkpoint) -> int:
    return checkpoint.step or 0


def _is_same_place(locked: LockedRevision | None, checkpoint: Checkpoint) -> bool:
    return locked is not None and (
        (locked.repository, locked.revision, locked.subfolder)
        == (checkpoint.repository, checkpoint.revision, checkpoint.subfolder)
    )


@contextmanager
def said_while_waiting(where: str, host: str, say: Callable[[str], None]) -> Iterator[None]:
    """Say that the Hub is asked, and every ten seconds that it is waited for, with what it last refused."""
    last = _LastLine()
    retries = logging.getLogger("shape_of_learning.hub")
    retries.addHandler(last)
    level = retries.level
    retries.setLevel(logging.INFO)
    ended, begun = threading.Event(), time.monotonic()

    def keep_saying() -> None:
        while not ended.wait(WAITING_SECONDS):
            say(f"{where}: waiting for {host}, {time.monotonic() - begun:.0f} s{last.line}")

    say(f"{where}: asking the Hub for the commits and files of its revisions")
    thread = threading.Thread(target=keep_saying, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        retries.setLevel(level)
        retries.removeHandler(last)


class _LastLine(logging.Handler):
    """Keeps what was logged last."""

    line = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.line = f" ({record.getMessage()})"
