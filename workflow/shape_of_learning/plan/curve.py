"""A model's checkpoints as the Hub has them: pinned to commits, and judged."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.listed_files import folders_of
from shape_of_learning.checkpoints.lock import EMPTY, MAIN, Checkpoint, Lock, Place, read_lock
from shape_of_learning.checkpoints.verdicts import JudgedCheckpoint, judge_listing
from shape_of_learning.errors import InputError, UnreachableError
from shape_of_learning.plan.models import Model
from shape_of_learning.plan.steps import OfferedSteps


@dataclass(frozen=True)
class CheckpointSeries:
    """All checkpoints that a model's entry asks for, ordered by step.

    Attributes
    ----------
    model : Model
        With its whole shape, whoever said it; as it was if no revision can be used.
    checkpoints : tuple of Checkpoint
    judged : mapping of str to JudgedCheckpoint
        Name of a checkpoint -> what :func:`.judge_listing` says of it. Where nothing is listed, because it
        is not from the Hub or this could not be asked, only reports condemn it.
    lock : Lock
        What pins them; empty for what is not from the Hub.
    is_new : bool
        Whether the lock file does not hold all of it yet.
    unasked : str
        Why the Hub could not be asked for what the lock lacks; empty if it has all.
    """

    model: Model
    checkpoints: tuple[Checkpoint, ...]
    judged: Mapping[str, JudgedCheckpoint]
    lock: Lock = EMPTY
    is_new: bool = False
    unasked: str = ""

    def list_bad(self) -> dict[str, str]:
        """Names and verdicts of the checkpoints that are not what they should be, as far as is known yet."""
        return {name: each.verdict for name, each in self.judged.items() if each.is_condemned}

    @property
    def bad_in_words(self) -> str:
        """The same in a row."""
        return ", ".join(f"`{name}` ({verdict})" for name, verdict in self.list_bad().items())

    def list_measured(self, *, flagged: bool) -> tuple[Checkpoint, ...]:
        """Checkpoints that a run measures: those not known to be bad, and the `flagged` ones if asked for."""
        locked = self.lock.revisions
        unusable = {name for name in self.judged if name in locked and locked[name].problem}
        bad = unusable if flagged else {*self.list_bad()}
        return tuple(checkpoint for checkpoint in self.checkpoints if checkpoint.name not in bad)

    def describe_weights(self, name: str) -> str:
        """What decides the weights of a checkpoint: the commit and the hashes that are pinned, and the tokenizer's."""
        if name not in self.lock.revisions:
            return ""
        locked = self.lock.revisions[name]
        tokenizer = self.lock.tokenizer.commit if self.lock.tokenizer else ""
        hashes = [file.hash for file in locked.files.values()]
        return " ".join([locked.commit, locked.subfolder, *hashes, tokenizer])

    def describe_download(self, name: str) -> dict[str, Any]:
        """What a download is told: of the revision, and of the tokenizer if it has another repository."""
        locked, tokenizer = self.lock.revisions.get(name), self.lock.tokenizer
        return {
            "pinned": locked.model_dump() if locked else None,
            "tokenizer": tokenizer.model_dump() if tokenizer else None,
        }

    def make_rows(self) -> list[list[object]]:
        """What ``results/checkpoints/{model}.csv`` says of each; without a commit if nothing is pinned."""
        rows: list[list[object]] = []
        for checkpoint in self.checkpoints:
            locked = self.lock.revisions.get(checkpoint.name)
            files = dict(sorted(locked.files.items())) if locked else {}
            size = sum(file.bytes for file in files.values()) if files else None
            where = [
                checkpoint.step,
                checkpoint.tokens,
                checkpoint.revision,
                locked.commit if locked else None,
            ]
            listing = [" ".join(files), size, " ".join(file.hash for file in files.values())]
            rows.append([*where, *listing, self.judged[checkpoint.name].verdict])
        return rows


def plan_curve(
    model: Model, lock_file: Path, *, unreachable: str = "", say: Callable[[str], None] = print
) -> CheckpointSeries:
    """Resolve and judge the checkpoints of a model; writes nothing.

    Parameters
    ----------
    model : Model
    lock_file : Path
        What it holds is not asked again; what it lacks is asked of the Hub.
    unreachable : str
        Why the Hub need not be tried, if it has been found out already.
    say : callable
        Shows a line on the terminal when the Hub is asked.

    Raises
    ------
    InputError
        If the lock is damaged, if the Hub refuses, or if it cannot be asked which steps there are or what
        the model is like.
    """
    if model.kind != "repository":
        return _judge_model(model, EMPTY)
    lock = old = read_lock(lock_file) or EMPTY
    is_pinned, unasked = _is_pinned(model, old), ""
    if not is_pinned or _list_main_branches(plan_checkpoints(model, old) or [], old):
        try:
            if unreachable:
                raise UnreachableError(unreachable)
            say(f"model `{model.name}`: asking the Hub for the commits and files of its revisions")
            lock = pin_model(model, old)
        except UnreachableError as error:
            unasked = re.sub(r"^model `[^`]*`: ", "", str(error))
            lock = old if is_pinned else EMPTY
            is_unknown = model.offered is not None and not model.offered.is_list
            if not is_pinned and (is_unknown or not model.shape.is_whole()):
                raise InputError(
                    f"model `{model.name}`: {unasked}; without the Hub its entry must state its steps and "
                    "its shape"
                ) from error
    curve = _judge_model(model, lock)
    return replace(curve, lock=lock, is_new=lock not in (old, EMPTY), unasked=unasked)


def is_closed(model: Model) -> bool:
    """Whether the Hub does not show a gated model to the token that there is, or there is none."""
    from shape_of_learning.checkpoints import hub

    place = model.checkpoints[-1] if model.checkpoints else model.offered
    assert place is not None
    return hub.is_closed(place.repository, where=f"model `{model.name}`")


def plan_checkpoints(model: Model, lock: Lock) -> list[Checkpoint] | None:
    """List the checkpoints of a model by step; None if a lock does not say which they are."""
    checkpoints = list(model.checkpoints)
    if model.offered is not None and model.offered.is_list:
        place = model.offered.repository, model.offered.subfolder
        at_place = (r for r in lock.revisions.values() if (r.repository, r.subfolder) == place)
        names = [each.revision for each in at_place]
        if not model.offered.has_all(names):
            return None
        checkpoints = model.offered.name_steps(checkpoints, names)
    elif model.offered is not None:
        chosen = lock.chosen.get(str(model.offered))
        if chosen is None or not set(chosen) <= set(lock.revisions):
            return None
        places = (lock.revisions[name].place for name in chosen)
        in_folders = model.offered.folders_of
        names = [place.subfolder if in_folders else place.revision for place in places]
        checkpoints += map(model.offered.make_checkpoint, names)
    return sorted(checkpoints, key=lambda each: each.step or 0)


def _is_pinned(model: Model, lock: Lock) -> bool:
    """Whether a lock answers all that a plan must know of a model."""
    checkpoints = plan_checkpoints(model, lock)
    return (
        checkpoints is not None
        and not _list_places(checkpoints, lock)
        and model.tokenizer == (lock.tokenizer.repository if lock.tokenizer else "")
        and (model.shape.is_whole() or lock.shape.layers > 0)
    )


def pin_model(model: Model, old: Lock) -> Lock:
    """Ask the Hub for what an old lock does not hold, and add it.

    Raises
    ------
    InputError
        If the Hub refuses, or offers no such steps.
    UnreachableError
        If it cannot be asked.
    """
    # Imported here, since where locks answer nobody needs the Hub's client.
    from shape_of_learning.checkpoints import hub

    where = f"model `{model.name}`"
    checkpoints, chosen, offered = plan_checkpoints(model, old), old.chosen, model.offered
    if checkpoints is None:
        assert offered is not None
        commits = hub.list_commits(offered.repository, where=where)
        names = list_offered_names(offered, commits, where)
        if offered.is_list:
            checkpoints = offered.name_steps(model.checkpoints, names)
        elif new := [offered.make_checkpoint(branch) for branch in offered.choose(names)]:
            checkpoints = sorted([*model.checkpoints, *new], key=lambda each: each.step or 0)
            chosen = {**chosen, str(offered): [each.name for each in new]}
        else:
            raise InputError(
                f"{where}: `{offered.repository}` has no branch like `{offered.template.pattern}`; correct "
                "`repository` or `training.revision`"
            )
    asked, repositories = _list_places(checkpoints, old), _list_main_branches(checkpoints, old)
    revisions, mains = dict(old.revisions), dict(old.mains)
    if asked or repositories:
        found, of_mains = hub.resolve(asked, repositories, where=where)
        revisions |= found
        mains |= of_mains
    tokenizer = old.tokenizer if model.tokenizer else None
    if model.tokenizer and (tokenizer is None or tokenizer.repository != model.tokenizer):
        found, _ = hub.resolve({"": Place(model.tokenizer, MAIN)}, [], where=where)
        if not found[""].commit:
            raise InputError(
                f"{where}: `{model.tokenizer}` has no main branch; correct `tokenizer`"
            )
        # Which weights lie beside it is nobody's concern.
        tokenizer = found[""].model_copy(update={"files": {}, "other_format": {}, "problem": ""})
    usable = [
        revisions[checkpoint.name]
        for checkpoint in checkpoints
        if not revisions[checkpoint.name].problem
    ]
    shape = old.shape
    if usable and (asked or not shape.layers):
        shape = hub.read_listed_shape(usable[-1], where=where)
    return Lock(shape=shape, chosen=chosen, revisions=revisions, mains=mains, tokenizer=tokenizer)


def list_offered_names(
    offered: OfferedSteps, commits: Mapping[str, str], where: str
) -> Iterable[str]:
    """The branches and tags among which steps are chosen, or the folders of one of them."""
    from shape_of_learning.checkpoints import hub

    if not offered.folders_of:
        return commits
    if offered.folders_of not in commits:
        return []
    commit = commits[offered.folders_of]
    return folders_of(hub.list_files(offered.repository, offered.folders_of, commit, where=where))


def _list_places(checkpoints: Sequence[Checkpoint], lock: Lock) -> dict[str, Place]:
    """Where the checkpoints are that a lock does not hold."""
    places = {c.name: Place(c.repository, c.revision, c.subfolder) for c in checkpoints}
    known = {name: each.place for name, each in lock.revisions.items()}
    return {name: place for name, place in places.items() if known.get(name) != place}


def _list_main_branches(checkpoints: Sequence[Checkpoint], lock: Lock) -> set[str]:
    """Repositories whose main branch should be compared, and was not asked for when the lock was written."""
    return {
        checkpoint.repository for checkpoint in checkpoints if checkpoint.revision != MAIN
    } - set(lock.mains)


def _judge_model(model: Model, lock: Lock) -> CheckpointSeries:
    """What a lock says of the checkpoints of a model; of an empty one, what reports say of them."""
    checkpoints = plan_checkpoints(model, lock) or list(model.checkpoints)
    last = model.last_step
    if last is None and model.offered is not None and not isinstance(model.offered.wanted, list):
        # A rule takes the last that there is.
        last = max(
            (checkpoint.step for checkpoint in checkpoints if checkpoint.step is not None),
            default=None,
        )
    judged = judge_listing(checkpoints, lock.revisions, lock.mains, model.known_bad, last)
    if lock.shape.layers or any(not revision.problem for revision in lock.revisions.values()):
        model = model.complete_shape(lock.shape)
    return CheckpointSeries(model, tuple(checkpoints), {each.name: each for each in judged})
