"""The checkpoints of a model: which there are by its entry, its lock and the Hub, and their verdicts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from shape_of_learning.checkpoints.job import ListingJob, PinnedCheckpoint
from shape_of_learning.checkpoints.lock import (
    EMPTY,
    MAIN,
    Checkpoint,
    Lock,
    Place,
    is_weight_file,
    read_lock,
)
from shape_of_learning.checkpoints.verdict import JudgedCheckpoint, format_verdict, judge_listing
from shape_of_learning.errors import InputError, UnreachableError
from shape_of_learning.plan.entries import Entry, sort_checkpoints
from shape_of_learning.plan.steps import OfferedSteps


@dataclass(frozen=True)
class CheckpointSeries:
    """The checkpoints of a model, by step, with their verdicts and, for a model of the Hub, the lock.

    Attributes
    ----------
    model : Entry
        Its shape is completed from the lock or the Hub, unless no revision is usable.
    checkpoints : tuple of Checkpoint
    judgements : mapping of str to JudgedCheckpoint
        Name of a checkpoint -> its verdict by :func:`.judge_listing`. Without a listing from the Hub only published
        reports make a checkpoint bad.
    lock : Lock
        The commits and files of the revisions; empty for a model that is not from the Hub.
    is_new : bool
        Whether the lock holds more than its file.
    hub_failure : str
        The reason why the Hub could not be asked for revisions that the lock lacks; empty if the lock has all.
    """

    model: Entry
    checkpoints: tuple[Checkpoint, ...]
    judgements: Mapping[str, JudgedCheckpoint]
    lock: Lock = EMPTY
    is_new: bool = False
    hub_failure: str = ""

    def list_bad_verdicts(self) -> dict[str, str]:
        """Return the verdicts on the bad checkpoints, by name."""
        return {
            name: format_verdict(checkpoint.verdict)
            for name, checkpoint in self.judgements.items()
            if checkpoint.is_bad
        }

    def format_bad_checkpoints(self) -> str:
        """Write the names of the bad checkpoints and their verdicts in a row."""
        return ", ".join(
            f"`{name}` ({verdict})" for name, verdict in self.list_bad_verdicts().items()
        )

    def list_measured_checkpoints(self, *, include_flagged: bool) -> tuple[Checkpoint, ...]:
        """List the checkpoints that a run measures: the good ones, and if `include_flagged` the readable bad ones."""
        revisions = self.lock.revisions
        unusable = {
            name for name in self.judgements if name in revisions and revisions[name].problem
        }
        bad = unusable if include_flagged else {*self.list_bad_verdicts()}
        return tuple(checkpoint for checkpoint in self.checkpoints if checkpoint.name not in bad)

    def make_listing_job(self) -> ListingJob:
        """Make the job that lists the checkpoints with their files and verdicts."""
        checkpoints = []
        for checkpoint in self.checkpoints:
            pinned_revision = self.lock.revisions.get(checkpoint.name)
            pinned_checkpoint = PinnedCheckpoint(
                revision=checkpoint.revision,
                step=checkpoint.step,
                tokens=checkpoint.tokens,
                commit=pinned_revision.commit if pinned_revision else None,
                files=dict(sorted(pinned_revision.files.items())) if pinned_revision else {},
                verdict=self.judgements[checkpoint.name].verdict,
            )
            checkpoints.append(pinned_checkpoint)
        return ListingJob(self.model.name, tuple(checkpoints))


def resolve_checkpoints(
    model: Entry, lock_file: Path, *, known_failure: str = "", say: Callable[[str], None] = print
) -> CheckpointSeries:
    """Resolve and judge the checkpoints of a model, without writing a file.

    Parameters
    ----------
    model : Entry
    lock_file : Path
        The Hub is asked only for revisions and main branches that this file lacks.
    known_failure : str
        The reason why an earlier question to the Hub failed, so that it is not asked again.
    say : callable
        Shows a line on the terminal when the Hub is asked.

    Raises
    ------
    InputError
        If the lock is damaged, if the Hub refuses, or if the Hub cannot be reached and neither the lock nor the
        entry tells the steps and the shape of the model.
    """
    if model.kind != "repository":
        return _judge_model(model, EMPTY)
    lock = old_lock = read_lock(lock_file) or EMPTY
    is_pinned, hub_failure = _is_pinned(model, old_lock), ""
    if not is_pinned or _list_main_branches(list_checkpoints(model, old_lock) or [], old_lock):
        try:
            if known_failure:
                raise UnreachableError(known_failure)
            say(f"model `{model.name}`: asking the Hub for the commits and files of its revisions")
            lock = pin_model(model, old_lock)
        except UnreachableError as error:
            hub_failure = error.reason
            lock = old_lock if is_pinned else EMPTY
            is_unknown = model.hub_steps is not None and not model.hub_steps.is_list
            if not is_pinned and (is_unknown or not model.shape.is_whole()):
                raise InputError(
                    f"model `{model.name}`: {hub_failure}; without the Hub its entry must state its steps and "
                    "its shape"
                ) from error
    series = _judge_model(model, lock)
    return replace(series, lock=lock, is_new=lock not in (old_lock, EMPTY), hub_failure=hub_failure)


def is_closed(model: Entry) -> bool:
    """Return whether the Hub hides a gated model from this user, who has no token or no access."""
    from shape_of_learning.checkpoints import hub

    source = model.checkpoints[-1] if model.checkpoints else model.hub_steps
    assert source is not None
    return hub.lacks_access(source.repository, where=f"model `{model.name}`")


def list_checkpoints(model: Entry, lock: Lock) -> list[Checkpoint] | None:
    """List the checkpoints of a model by step; None if that needs the Hub, since the lock lacks revisions."""
    checkpoints = list(model.checkpoints)
    if model.hub_steps is not None and model.hub_steps.is_list:
        repository_and_folder = model.hub_steps.repository, model.hub_steps.subfolder
        revisions = (
            r
            for r in lock.revisions.values()
            if (r.repository, r.subfolder) == repository_and_folder
        )
        names = [revision.revision for revision in revisions]
        if not model.hub_steps.has_all(names):
            return None
        checkpoints = model.hub_steps.name_steps(checkpoints, names)
    elif model.hub_steps is not None:
        chosen_names = lock.chosen.get(str(model.hub_steps))
        if chosen_names is None or not set(chosen_names) <= set(lock.revisions):
            return None
        places = (lock.revisions[name].place for name in chosen_names)
        are_folders = model.hub_steps.folder_revision
        names = [place.subfolder if are_folders else place.revision for place in places]
        checkpoints += map(model.hub_steps.make_checkpoint, names)
    return list(sort_checkpoints(checkpoints))


def _is_pinned(model: Entry, lock: Lock) -> bool:
    """Return whether a lock holds all facts about a model that a plan needs from the Hub."""
    checkpoints = list_checkpoints(model, lock)
    return (
        checkpoints is not None
        and not _list_places(checkpoints, lock)
        and model.tokenizer == (lock.tokenizer.repository if lock.tokenizer else "")
        and (model.shape.is_whole() or lock.shape.layers > 0)
    )


def pin_model(model: Entry, old_lock: Lock) -> Lock:
    """Return a lock with the revisions, shape and tokenizer that an old_lock lock lacks, from the Hub.

    Raises
    ------
    InputError
        If the Hub refuses, or if it offers no steps like those of the entry.
    UnreachableError
        If the Hub cannot be asked.
    """
    # Imported here, since a plan with locks does not need the Hub's client.
    from shape_of_learning.checkpoints import hub

    where = f"model `{model.name}`"
    checkpoints = list_checkpoints(model, old_lock)
    chosen_names = old_lock.chosen
    hub_steps = model.hub_steps
    if checkpoints is None:
        assert hub_steps is not None
        commits = hub.list_commits(hub_steps.repository, where=where)
        names = list_offered_names(hub_steps, commits, where)
        if hub_steps.is_list:
            checkpoints = hub_steps.name_steps(model.checkpoints, names)
        elif new_checkpoints := [
            hub_steps.make_checkpoint(name) for name in hub_steps.choose_branches(names, where)
        ]:
            checkpoints = list(sort_checkpoints([*model.checkpoints, *new_checkpoints]))
            chosen_names = {**chosen_names, str(hub_steps): [c.name for c in new_checkpoints]}
        else:
            kind, key = "branch", "training.revision"
            if hub_steps.folder_revision:
                kind, key = "folder", "subfolder"
            raise InputError(
                f"{where}: `{hub_steps.repository}` has no {kind} like `{hub_steps.template.pattern}`; correct "
                f"`repository` or `{key}`"
            )
    new_places = _list_places(checkpoints, old_lock)
    repositories = _list_main_branches(checkpoints, old_lock)
    revisions = dict(old_lock.revisions)
    mains = dict(old_lock.mains)
    if new_places or repositories:
        new_revisions, new_mains = hub.resolve(new_places, repositories, where=where)
        revisions |= new_revisions
        mains |= new_mains
    tokenizer = old_lock.tokenizer if model.tokenizer else None
    if model.tokenizer and (tokenizer is None or tokenizer.repository != model.tokenizer):
        revisions_by_name, _ = hub.resolve({"": Place(model.tokenizer, MAIN)}, [], where=where)
        main = revisions_by_name[""]
        if not main.commit:
            raise InputError(
                f"{where}: `{model.tokenizer}` has no main branch; correct `tokenizer`"
            )
        # The weights beside a tokenizer are not compared.
        tokenizer = main.model_copy(update={"files": {}, "other_format": {}, "problem": ""})
    usable = [
        revisions[checkpoint.name]
        for checkpoint in checkpoints
        if not revisions[checkpoint.name].problem
    ]
    shape = old_lock.shape
    if usable and (new_places or not shape.layers):
        shape = hub.read_listed_shape(usable[-1], where=where)
    return Lock(
        shape=shape, chosen=chosen_names, revisions=revisions, mains=mains, tokenizer=tokenizer
    )


def list_offered_names(
    hub_steps: OfferedSteps, commits: Mapping[str, str], where: str
) -> Iterable[str]:
    """List the branches and tags of a repository, or the folders of one revision, among which steps are chosen."""
    from shape_of_learning.checkpoints import hub

    if not hub_steps.folder_revision:
        return commits
    if hub_steps.folder_revision not in commits:
        return []
    commit = commits[hub_steps.folder_revision]
    files = hub.list_files(hub_steps.repository, hub_steps.folder_revision, commit, where=where)
    return {f"{PurePath(path).parent}" for path in files if is_weight_file(path)}


def _list_places(checkpoints: Sequence[Checkpoint], lock: Lock) -> dict[str, Place]:
    """List the places of the checkpoints that a lock does not hold."""
    places = {c.name: Place(c.repository, c.revision, c.subfolder) for c in checkpoints}
    pinned_places = {name: revision.place for name, revision in lock.revisions.items()}
    return {name: place for name, place in places.items() if pinned_places.get(name) != place}


def _list_main_branches(checkpoints: Sequence[Checkpoint], lock: Lock) -> set[str]:
    """List the repositories whose main branch has to be compared but is not in the lock."""
    return {
        checkpoint.repository for checkpoint in checkpoints if checkpoint.revision != MAIN
    } - set(lock.mains)


def _judge_model(model: Entry, lock: Lock) -> CheckpointSeries:
    """Judge the checkpoints of a model by a lock, or by reports alone if the lock is empty."""
    checkpoints = list_checkpoints(model, lock) or list(model.checkpoints)
    last = model.last_step
    if (
        last is None
        and model.hub_steps is not None
        and not isinstance(model.hub_steps.step_choice, list)
    ):
        # Unlike a list of steps, `all`, `log` and `linear` include the last step of the Hub.
        last = max(
            (checkpoint.step for checkpoint in checkpoints if checkpoint.step is not None),
            default=None,
        )
    judgements = judge_listing(checkpoints, lock.revisions, lock.mains, model.known_bad, last)
    if lock.shape.layers or any(not revision.problem for revision in lock.revisions.values()):
        model = model.complete_shape(lock.shape)
    return CheckpointSeries(
        model, tuple(checkpoints), {checkpoint.name: checkpoint for checkpoint in judgements}
    )
