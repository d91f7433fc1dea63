"""A run: the models, checkpoints, measures, figures and claims that a configuration asks for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path, PurePath
from typing import Any

from shape_of_learning.checkpoints.job import (
    CheckpointJudgementJob,
    DownloadJob,
    ListingJob,
    PinnedCheckpoint,
)
from shape_of_learning.checkpoints.lock import (
    EMPTY,
    MAIN,
    Checkpoint,
    Lock,
    Place,
    is_weight_file,
    read_lock,
    write_lock,
)
from shape_of_learning.checkpoints.verdict import JudgedCheckpoint, format_verdict, judge_listing
from shape_of_learning.claims.claim import Claim, EvidenceModel
from shape_of_learning.embeddings.protocol import MatrixProtocol, Weights
from shape_of_learning.errors import InputError, UnreachableError
from shape_of_learning.files import read_yaml
from shape_of_learning.metrics.measure_entry import WEIGHTS, Measure, drop_labels_and_rules
from shape_of_learning.metrics.registry import list_measure_names
from shape_of_learning.metrics.series import MeasuredModel, MeasuredSeries, ModelTablesJob
from shape_of_learning.plan.entries import (
    Entry,
    FinetuningEntry,
    HubEntry,
    PretrainingEntry,
    WrittenEntries,
    expand_seeds,
    find_origins,
    read_entries,
    read_models,
    sort_checkpoints,
)
from shape_of_learning.plan.papers import (
    FigureEntry,
    Notice,
    Paper,
    TableEntry,
    check_names,
    check_targets,
    choose_figure_measures,
    choose_papers,
    choose_target_models,
    collect_figures,
    collect_sections,
    collect_tables,
)
from shape_of_learning.plan.settings import add_sections, choose_measures
from shape_of_learning.plan.steps import OfferedSteps
from shape_of_learning.tasks.entry import TaskEntry
from shape_of_learning.training.job import FinetuningJob, PretrainingJob
from shape_of_learning.validation import make_unknown_name_error, validate_yaml
from shape_of_learning.words import capitalise


@dataclass(frozen=True)
class CheckpointSeries:
    """The checkpoints of a model, by step, each with a verdict and, from the Hub, its lock.

    Attributes
    ----------
    model : Entry
        With its whole shape, from its entry, its lock or the Hub; with that of its entry if no revision can be used.
    checkpoints : tuple of Checkpoint
    judged : mapping of str to JudgedCheckpoint
        Name of a checkpoint -> its verdict by :func:`.judge_listing`. Only reports condemn a checkpoint without a
        listing: it is not from the Hub, or the Hub could not be asked.
    lock : Lock
        The commits and files of their revisions; empty for a model that is not from the Hub.
    is_new : bool
        Whether the lock file does not hold all of it yet.
    unasked : str
        The reason why the Hub could not be asked for revisions that the lock lacks; empty if it has all.
    """

    model: Entry
    checkpoints: tuple[Checkpoint, ...]
    judged: Mapping[str, JudgedCheckpoint]
    lock: Lock = EMPTY
    is_new: bool = False
    unasked: str = ""

    def list_bad(self) -> dict[str, str]:
        """Return the verdicts on the checkpoints that are known to be bad, by name."""
        return {
            name: format_verdict(checkpoint.verdict)
            for name, checkpoint in self.judged.items()
            if checkpoint.is_condemned
        }

    def format_bad(self) -> str:
        """Write these names and verdicts in a row."""
        return ", ".join(f"`{name}` ({verdict})" for name, verdict in self.list_bad().items())

    def list_measured(self, *, flagged: bool) -> tuple[Checkpoint, ...]:
        """List the checkpoints that a run measures: the good ones, and if `flagged` the readable bad ones."""
        locked = self.lock.revisions
        unusable = {name for name in self.judged if name in locked and locked[name].problem}
        bad = unusable if flagged else {*self.list_bad()}
        return tuple(checkpoint for checkpoint in self.checkpoints if checkpoint.name not in bad)

    def make_listing_job(self) -> ListingJob:
        """Make the job that lists the checkpoints with their files and verdicts."""
        checkpoints = []
        for checkpoint in self.checkpoints:
            locked = self.lock.revisions.get(checkpoint.name)
            pinned = PinnedCheckpoint(
                revision=checkpoint.revision,
                step=checkpoint.step,
                tokens=checkpoint.tokens,
                commit=locked.commit if locked else None,
                files=dict(sorted(locked.files.items())) if locked else {},
                verdict=self.judged[checkpoint.name].verdict,
            )
            checkpoints.append(pinned)
        return ListingJob(self.model.name, tuple(checkpoints))


def resolve_checkpoints(
    model: Entry, lock_file: Path, *, unreachable: str = "", say: Callable[[str], None] = print
) -> CheckpointSeries:
    """Resolve and judge the checkpoints of a model; writes nothing.

    Parameters
    ----------
    model : Entry
    lock_file : Path
        The Hub is asked only for revisions that it lacks.
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
    if not is_pinned or _list_main_branches(list_checkpoints(model, old) or [], old):
        try:
            if unreachable:
                raise UnreachableError(unreachable)
            say(f"model `{model.name}`: asking the Hub for the commits and files of its revisions")
            lock = pin_model(model, old)
        except UnreachableError as error:
            unasked = error.reason
            lock = old if is_pinned else EMPTY
            is_unknown = model.hub_steps is not None and not model.hub_steps.is_list
            if not is_pinned and (is_unknown or not model.shape.is_whole()):
                raise InputError(
                    f"model `{model.name}`: {unasked}; without the Hub its entry must state its steps and "
                    "its shape"
                ) from error
    series = _judge_model(model, lock)
    return replace(series, lock=lock, is_new=lock not in (old, EMPTY), unasked=unasked)


def is_closed(model: Entry) -> bool:
    """Return whether the Hub hides a gated model from us: there is no token, or it has no access."""
    from shape_of_learning.checkpoints import hub

    place = model.checkpoints[-1] if model.checkpoints else model.hub_steps
    assert place is not None
    return hub.lacks_access(place.repository, where=f"model `{model.name}`")


def list_checkpoints(model: Entry, lock: Lock) -> list[Checkpoint] | None:
    """List the checkpoints of a model by step; None if a lock does not say which they are."""
    checkpoints = list(model.checkpoints)
    if model.hub_steps is not None and model.hub_steps.is_list:
        place = model.hub_steps.repository, model.hub_steps.subfolder
        at_place = (r for r in lock.revisions.values() if (r.repository, r.subfolder) == place)
        names = [revision.revision for revision in at_place]
        if not model.hub_steps.has_all(names):
            return None
        checkpoints = model.hub_steps.name_steps(checkpoints, names)
    elif model.hub_steps is not None:
        chosen = lock.chosen.get(str(model.hub_steps))
        if chosen is None or not set(chosen) <= set(lock.revisions):
            return None
        places = (lock.revisions[name].place for name in chosen)
        in_folders = model.hub_steps.folders_of
        names = [place.subfolder if in_folders else place.revision for place in places]
        checkpoints += map(model.hub_steps.make_checkpoint, names)
    return list(sort_checkpoints(checkpoints))


def _is_pinned(model: Entry, lock: Lock) -> bool:
    """Return whether a lock holds all that a plan must know of a model."""
    checkpoints = list_checkpoints(model, lock)
    return (
        checkpoints is not None
        and not _list_places(checkpoints, lock)
        and model.tokenizer == (lock.tokenizer.repository if lock.tokenizer else "")
        and (model.shape.is_whole() or lock.shape.layers > 0)
    )


def pin_model(model: Entry, old: Lock) -> Lock:
    """Ask the Hub for what an old lock does not hold, and add it.

    Raises
    ------
    InputError
        If the Hub refuses, or offers no such steps.
    UnreachableError
        If it cannot be asked.
    """
    # Imported here, since a plan with locks does not need the Hub's client.
    from shape_of_learning.checkpoints import hub

    where = f"model `{model.name}`"
    checkpoints, chosen, offered = list_checkpoints(model, old), old.chosen, model.hub_steps
    if checkpoints is None:
        assert offered is not None
        commits = hub.list_commits(offered.repository, where=where)
        names = list_offered_names(offered, commits, where)
        if offered.is_list:
            checkpoints = offered.name_steps(model.checkpoints, names)
        elif new := [offered.make_checkpoint(branch) for branch in offered.choose(names)]:
            checkpoints = list(sort_checkpoints([*model.checkpoints, *new]))
            chosen = {**chosen, str(offered): [checkpoint.name for checkpoint in new]}
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
        # The weights beside a tokenizer are not compared.
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
    """List the branches and tags among which steps are chosen, or the folders of one of them."""
    from shape_of_learning.checkpoints import hub

    if not offered.folders_of:
        return commits
    if offered.folders_of not in commits:
        return []
    commit = commits[offered.folders_of]
    files = hub.list_files(offered.repository, offered.folders_of, commit, where=where)
    return {f"{PurePath(path).parent}" for path in files if is_weight_file(path)}


def _list_places(checkpoints: Sequence[Checkpoint], lock: Lock) -> dict[str, Place]:
    """List the places of the checkpoints that a lock does not hold."""
    places = {c.name: Place(c.repository, c.revision, c.subfolder) for c in checkpoints}
    known = {name: revision.place for name, revision in lock.revisions.items()}
    return {name: place for name, place in places.items() if known.get(name) != place}


def _list_main_branches(checkpoints: Sequence[Checkpoint], lock: Lock) -> set[str]:
    """List the repositories whose main branch should be compared and is not in the lock."""
    return {
        checkpoint.repository for checkpoint in checkpoints if checkpoint.revision != MAIN
    } - set(lock.mains)


def _judge_model(model: Entry, lock: Lock) -> CheckpointSeries:
    """Judge the checkpoints of a model by a lock; by reports alone if the lock is empty."""
    checkpoints = list_checkpoints(model, lock) or list(model.checkpoints)
    last = model.last_step
    if (
        last is None
        and model.hub_steps is not None
        and not isinstance(model.hub_steps.wanted, list)
    ):
        # A rule takes the last that there is.
        last = max(
            (checkpoint.step for checkpoint in checkpoints if checkpoint.step is not None),
            default=None,
        )
    judged = judge_listing(checkpoints, lock.revisions, lock.mains, model.known_bad, last)
    if lock.shape.layers or any(not revision.problem for revision in lock.revisions.values()):
        model = model.complete_shape(lock.shape)
    return CheckpointSeries(
        model, tuple(checkpoints), {checkpoint.name: checkpoint for checkpoint in judged}
    )


LEAST_STEPS = 1000  # of a pretraining of this run on which claims are judged
# Families of measures that are also taken of null models.
CONTROLLED = ("isotropy", "dimension", "linearity")
# Tables that figures read, tables/{kind}/{model}.csv, each gathered from one file per checkpoint in this folder: of
# weights, and the massive tokens of hidden states, which the same jobs find.
CHECKPOINT_TABLES = {
    "weights": "weights",
    "last_weights": "weights",
    "weight_points": "weight_points",
    "massive": "massive",
}


@dataclass
class Run:
    """The run of a configuration; checkpoints are resolved when a rule asks for them.

    Attributes
    ----------
    settings : mapping
        The sections of the configuration, as plain values.
    papers : sequence of Paper
        All that there are.
    models : dict of str to Entry
        First the models that others are fine-tuned from, then the models of this run.
    measured : list of str
        The names of the models of this run.
    figures, tables : mapping of str to FigureEntry or TableEntry
        Of all papers, the figures with the measures that they draw.
    shown : mapping of str to tuple of str
        Figures and tables of this run -> the models that they show.
    every_measure : mapping of str to Measure
        Those of ``measurements.csv``, and what figures draw besides, with their settings.
    tasks : mapping of str to TaskEntry
        Section ``tasks`` of the configuration.
    claims : mapping of str to mapping of str to Claim
        Those of each paper of the run that has any.
    notices : list of Notice
        What is left out, and why.
    locks : Path
        Folder of the files that pin the revisions of models.
    say : callable
        Shows a line on the terminal.
    """

    settings: Mapping[str, Any]
    papers: Sequence[Paper]
    models: dict[str, Entry]
    measured: list[str]
    figures: Mapping[str, FigureEntry]
    tables: Mapping[str, TableEntry]
    shown: Mapping[str, tuple[str, ...]]
    every_measure: Mapping[str, Measure]
    tasks: Mapping[str, TaskEntry]
    claims: Mapping[str, Mapping[str, Claim]]
    notices: list[Notice]
    locks: Path
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self.estimators: list[str] = self.settings["measurement"]["estimators"]
        self.flagged = self.settings["bad_checkpoints"] == "flag"
        measures = self.every_measure
        self.measures = {n: m for n, m in measures.items() if m.family != WEIGHTS}
        self.weight_measures = sorted(n for n, m in measures.items() if m.family == WEIGHTS)
        self._series: dict[str, CheckpointSeries] = {}
        self._estimators: dict[str, dict[str, list[str]]] = {}
        self._unreachable = ""
        for name, model in self.models.items():
            if not model.shape.is_whole():
                self.models[name] = self._complete_shape(name)

    def find_paper(self, target: str) -> Paper:
        """Find the paper of a figure or a table."""
        return next(p for p in self.papers if target in p.figures or target in p.tables)

    def name_in_paper(self, target: str) -> str:
        """Name a figure or a table as readers do: Figure 1, Loss by step."""
        return capitalise(target.removeprefix(self.find_paper(target).prefix).replace("_", " "))

    # --- checkpoints

    def lock_file(self, model: str) -> Path:
        """Return the file that pins the revisions of a model."""
        return self.locks / f"{model}.yaml"

    def resolve_checkpoints(self, name: str) -> CheckpointSeries:
        """Return the checkpoints of a model with their verdicts; ask the Hub for what the lock lacks."""
        if name not in self._series:
            series = resolve_checkpoints(
                self.models[name], self.lock_file(name), unreachable=self._unreachable, say=self.say
            )
            self._series[name] = series
            self._announce(name, series)
            if series.unasked and not self._unreachable:
                self._unreachable = series.unasked
                so = "models without a lock are planned from their entries and not checked"
                self.say(f"NOTE: {self._unreachable}; {so}")
        return self._series[name]

    def write_locks(self) -> None:
        """Write the locks of the models that were resolved."""
        for name, series in self._series.items():
            if series.is_new:
                write_lock(self.lock_file(name), series.lock)
                self.say(f"{self.lock_file(name)} is written: commit it with your results")

    def resolve(self) -> list[str]:
        """Resolve all models of the Hub, for which no file is needed; InputError if it cannot be asked."""
        for name in self.list_models("repository"):
            if reason := self.resolve_checkpoints(name).unasked:
                raise InputError(reason)
        return []

    def _complete_shape(self, name: str) -> Entry:
        """Complete the shape of a model by its lock, the Hub, or the model that it begins with."""
        origin = self.models[name].origin
        if origin is None:
            return self.resolve_checkpoints(name).model
        return self.models[name].complete_shape(self._complete_shape(origin.name).shape)

    def list_models(self, *kinds: str) -> list[str]:
        """List the models of some sources."""
        return [name for name, model in self.models.items() if model.kind in kinds]

    def list_bad(self, model: str) -> dict[str, str]:
        """Return the verdicts on the bad checkpoints of a model, by name."""
        return self.resolve_checkpoints(model).list_bad()

    def list_checkpoints(self, name: str) -> tuple[Checkpoint, ...]:
        """List the checkpoints of a model that are measured."""
        series = self.resolve_checkpoints(name)
        measured = series.list_measured(flagged=self.flagged)
        if not measured:
            remedy = "" if self.flagged else ", or set key `bad_checkpoints` to `flag`"
            raise InputError(
                f"model `{name}`: none of its {len(series.checkpoints)} revisions is what it should be: "
                f"{series.format_bad()}; correct the entry, or remove it from key `models`{remedy}"
            )
        return measured

    def find_checkpoint(self, name: str, revision: str) -> Checkpoint:
        """Find a checkpoint of a model that is measured."""
        return next(c for c in self.list_checkpoints(name) if c.name == revision)

    def require_measured(self, name: str, revision: str) -> None:
        """Refuse a checkpoint that is asked for by name and not measured."""
        measured = [checkpoint.name for checkpoint in self.list_checkpoints(name)]
        if revision in measured:
            return
        if judged := self.resolve_checkpoints(name).judged.get(revision):
            verdict = format_verdict(judged.verdict)
            raise InputError(f"model `{name}`: `{revision}` is left out: {verdict}")
        kind = f"revision of model `{name}`"
        raise make_unknown_name_error(
            revision, measured, kind, "the target, or what it is made from"
        )

    def _announce(self, name: str, series: CheckpointSeries) -> None:
        """Say which revisions of a model are left out, and that it is not pinned yet."""
        if left_out := len(series.checkpoints) - len(series.list_measured(flagged=self.flagged)):
            total = f"{left_out} of {len(series.checkpoints)} revisions are left out"
            self.say(f"NOTE: model `{name}`: {total}; bad ones are {series.format_bad()}")
        if series.is_new:
            pins = f"a run writes {self.lock_file(name)} as it starts"
            self.say(f"NOTE: model `{name}` is not pinned yet; {pins}")

    def find_last_checkpoint(self, name: str) -> Checkpoint:
        """Find the last good checkpoint of a model; a flagged one if there is no other."""
        measured, bad = self.list_checkpoints(name), self.list_bad(name)
        good = [checkpoint for checkpoint in measured if checkpoint.name not in bad]
        return (good or measured)[-1]

    def find_origin(self, name: str) -> tuple[str, str]:
        """Find the model and the revision that a fine-tuning begins with."""
        model = self.models[name]
        assert isinstance(model, FinetuningEntry)
        revision = model.origin_revision or self.find_last_checkpoint(model.origin.name).name
        return model.origin.name, revision

    def make_pretraining_job(self, name: str) -> PretrainingJob:
        """Make the job that pretrains a model."""
        model = self.models[name]
        assert isinstance(model, PretrainingEntry)
        return PretrainingJob(name, model.make_recipe(self.settings["seed"]))

    def make_finetuning_job(self, name: str) -> FinetuningJob:
        """Make the job that fine-tunes a model."""
        model = self.models[name]
        assert isinstance(model, FinetuningEntry)
        origin = self.find_weights(*self.find_origin(name))
        return FinetuningJob(name, origin, model.make_recipe())

    def find_weights(self, name: str, revision: str) -> Weights:
        """Describe the weights of a checkpoint that a job reads."""
        return Weights(
            name,
            revision,
            self.models[name].shape,
            is_download=self.models[name].kind == "repository",
            identity=self.identify_weights(name, revision),
        )

    def make_download_job(self, name: str, revision: str) -> DownloadJob:
        """Make the job that downloads a checkpoint as its lock pins it."""
        lock = self.resolve_checkpoints(name).lock
        pinned = lock.revisions.get(revision)
        return DownloadJob(name, revision, pinned, lock.tokenizer, self.models[name].shape)

    def make_checkpoint_judgement_job(self, name: str) -> CheckpointJudgementJob:
        """Make the job that judges the checkpoints of a model when they have been measured."""
        return CheckpointJudgementJob(
            name,
            checkpoints=tuple(self.resolve_checkpoints(name).judged.values()),
            measured=tuple(checkpoint.name for checkpoint in self.list_checkpoints(name)),
            policy=self.settings["bad_checkpoints"],
            # A user's own folders may hold a pretraining or a fine-tuning.
            from_scratch=self.models[name].kind in ("repository", "pretraining"),
        )

    def identify_weights(self, name: str, revision: str) -> str:
        """Return what decides the weights of a checkpoint; nothing if a job of this run makes them."""
        return self.models[name].weights_identity(revision, self.resolve_checkpoints(name).lock)

    # --- what is measured

    @cached_property
    def measurement_scope(self) -> dict[tuple[str, str], bool]:
        """Entry and estimator -> whether it is measured at every checkpoint, or at the last one alone."""
        asked = [name for name in self.estimators if name in self.measures]
        wanted = dict.fromkeys(product(self.measured, asked), True)
        for figure, models in self.list_drawn_figures():
            for pair in product(models, self.list_estimators(figure)):
                wanted[pair] = wanted.get(pair, False) or figure.draws_every_checkpoint
        return wanted

    def list_drawn_figures(self) -> list[tuple[FigureEntry, tuple[str, ...]]]:
        """List the figures of the run, each with its models."""
        return [(self.figures[n], models) for n, models in self.shown.items() if n in self.figures]

    def list_estimators(self, figure: FigureEntry) -> list[str]:
        """List the estimators of a figure that are in tables of estimates."""
        return [name for name in figure.estimators if name in self.measures]

    def list_estimators_by_checkpoint(self, model: str) -> dict[str, list[str]]:
        """List the estimators of each checkpoint of a model, sorted by name."""
        if model not in self._estimators:
            last = self.find_last_checkpoint(model).name
            own = sorted(
                (name, always) for (m, name), always in self.measurement_scope.items() if m == model
            )
            self._estimators[model] = {
                checkpoint.name: [name for name, always in own if always or checkpoint.name == last]
                for checkpoint in self.list_checkpoints(model)
            }
        return self._estimators[model]

    def list_measures(self, model: str, revision: str, family: str = "") -> list[Measure]:
        """List the measures of a checkpoint, of one family or of all."""
        found = [
            self.measures[name] for name in self.list_estimators_by_checkpoint(model)[revision]
        ]
        return [measure for measure in found if family in ("", measure.family)]

    def make_model_tables_job(self, name: str, folder: str) -> ModelTablesJob:
        """Describe a model, and each of its estimators with the checkpoints at which it is measured."""
        shape, estimators = self.models[name].shape, self.list_estimators_by_checkpoint(name)
        model = MeasuredModel(
            name=name,
            role=shape.role,
            layers=shape.layers,
            checkpoints=tuple((c.name, c.step, c.tokens) for c in self.list_checkpoints(name)),
            average_over=self.settings["figures"]["average_over"],
            width=shape.hidden_size or 0,
        )
        series = (
            MeasuredSeries(
                estimator=estimator,
                family=self.measures[estimator].family,
                conditions=self.measures[estimator].conditions,
                revisions=tuple(r for r, measured in estimators.items() if estimator in measured),
            )
            for measured_model, estimator in self.measurement_scope
            if measured_model == name
        )
        return ModelTablesJob(folder, model, tuple(series))

    # --- null models

    def list_control_checkpoints(self, name: str) -> list[Checkpoint]:
        """List the checkpoints of a model that figures draw beside its null models."""
        drawn = [
            figure
            for figure, models in self.list_drawn_figures()
            if "controls" in figure.reads and name in models
        ]
        if not drawn:
            return []
        last = self.find_last_checkpoint(name)
        if not any(figure.draws_every_checkpoint for figure in drawn):
            return [last]
        sound = [
            checkpoint
            for checkpoint in self.list_checkpoints(name)
            if checkpoint.name not in self.list_bad(name)
        ]
        return thin_checkpoints(sound, self.settings["controls"]["checkpoints"]) or [last]

    def list_control_measures(self, model: str, revision: str) -> list[Measure]:
        """List the measures of null models: the estimators of figures that draw them."""
        drawn = {
            name
            for figure, models in self.list_drawn_figures()
            if "controls" in figure.reads and model in models
            for name in figure.estimators
        }
        found = [m for m in self.list_measures(model, revision) if m.family in CONTROLLED]
        return [measure for measure in found if measure.name in drawn]

    # --- what is measured of models themselves, and further tables

    def list_table_models(self, kind: str) -> list[str]:
        """List the models with a table of this kind: those of figures that read it, or all if a key asks."""
        if kind == "weights" and any(name in self.weight_measures for name in self.estimators):
            return list(self.models)
        return [name for name in self.models if name in self._find_readers(kind)]

    def _find_readers(self, kind: str) -> set[str]:
        """Find the models of the figures and tables that read tables of a kind."""
        targets = {**self.figures, **self.tables}
        return {n for target, of in self.shown.items() if kind in targets[target].reads for n in of}

    def list_table_checkpoints(self, kind: str, name: str) -> list[Checkpoint]:
        """List the checkpoints of a model that are in its table of this kind."""
        if name not in self.list_table_models(kind):
            return []
        if kind in ("weights", "massive"):
            return list(self.list_checkpoints(name))
        last = self.find_last_checkpoint(name)
        if kind == "last_weights":
            return [last]
        shown = [c for c in self.list_checkpoints(name) if c.name not in self.list_bad(name)] or [
            last
        ]
        return list(dict.fromkeys([shown[0], shown[len(shown) // 2], last]))

    def make_matrix_protocol(self, model: str, revision: str) -> MatrixProtocol:
        """List the measures of a checkpoint itself, beside those of its hidden states."""

        def is_in(*kinds: str) -> bool:
            checkpoints = (c for kind in kinds for c in self.list_table_checkpoints(kind, model))
            return any(checkpoint.name == revision for checkpoint in checkpoints)

        names = self.weight_measures if is_in("weights", "last_weights") else []
        return MatrixProtocol(
            measures=drop_labels_and_rules(self.every_measure[name] for name in names),
            points=is_in("weight_points"),
            massive=is_in("massive"),
            seed=self.settings["seed"],
        )

    def list_weight_tables(self) -> list[tuple[str, str]]:
        """List kind and model of the tables of weights: all checkpoints of a model if a figure reads them."""
        whole, last = self.list_table_models("weights"), self.list_table_models("last_weights")
        return [
            ("weights" if name in whole else "last_weights", name)
            for name in self.models
            if name in {*whole, *last}
        ]

    def list_tables_read(self, kinds: Iterable[str]) -> list[tuple[str, str]]:
        """List kind and model of the tables of some kinds that figures or tables of the run read."""
        found: list[tuple[str, str]] = []
        for kind in kinds:
            others = [(kind, name) for name in self.models if name in self._find_readers(kind)]
            found += self.list_weight_tables() if kind == "weights" else others
        return found

    # --- claims

    def list_claimed_models(self, paper: str) -> list[str]:
        """List the models with an estimator of a paper's claims."""
        claims = self.claims[paper].values()
        estimators = {name for claim in claims for name in claim.all_estimators}
        measured = {model for model, estimator in self.measurement_scope if estimator in estimators}
        return [name for name in self.models_for_claims if name in measured]

    @cached_property
    def models_for_claims(self) -> list[str]:
        """Models that claims are judged on: not those of a short pretraining of this run."""
        return [name for name in self.measured if not is_short(self.models[name])]

    def list_claimed_tables(self, paper: str) -> list[tuple[str, str]]:
        """List kind and model of further tables that the run makes and claims read."""
        kinds = {kind for c in self.claims[paper].values() for kind in c.reads}
        models = set(self.list_claimed_models(paper))
        models.update(self.list_table_models("weights") if "weights" in kinds else ())
        judged = [("verdicts", name) for name in self.models_for_claims if name in models]
        read = [
            (k, m) for k, m in self.list_tables_read(sorted(kinds)) if m in self.models_for_claims
        ]
        return [*read, *judged]

    def list_evidence_models(self) -> tuple[EvidenceModel, ...]:
        """List the models that claims are asked of."""
        return tuple(self.models[name].make_evidence() for name in self.models_for_claims)


def is_short(model: Entry) -> bool:
    """Return whether this run pretrains a model, or its origin, for fewer steps than claims need."""
    if model.origin is not None:
        return is_short(model.origin)
    return model.kind == "pretraining" and (model.last_step or 0) < LEAST_STEPS


def thin_checkpoints(checkpoints: Sequence[Any], most: int) -> list[Any]:
    """Choose at most `most` checkpoints, evenly by rank, with the first and the last."""
    if len(checkpoints) <= most:
        return list(checkpoints)
    ranks = {round(place * (len(checkpoints) - 1) / (most - 1)) for place in range(most)}
    return [checkpoints[rank] for rank in sorted(ranks)]


def collect_near_duplicate_limits(measures: Mapping[str, Measure]) -> dict[str, float | None]:
    """Collect the share of near-duplicates up to which each intrinsic dimension can be trusted; None if any."""
    return {
        name: measure.near_duplicate_limit
        for name, measure in measures.items()
        if measure.conditions.is_dimension
    }


def add_defaults(given: Mapping[str, Any], defaults: Path) -> dict[str, Any]:
    """Add the keys of a file with all keys, section by section; lists are replaced."""
    return merge_settings(read_yaml(defaults), given)


def merge_settings(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Replace defaults by the given values, key by key."""
    both = {
        key: merge_settings(defaults[key], value)
        for key, value in given.items()
        if isinstance(value, Mapping) and isinstance(defaults.get(key), Mapping)
    }
    return {**defaults, **given, **both}


def read_run(
    settings: Mapping[str, Any],
    *model_folders: Path,
    papers: Sequence[Paper],
    locks: Path = Path("config/locks"),
    say: Callable[[str], None] = print,
    is_closed: Callable[[Entry], bool] = lambda model: False,
) -> Run:
    """Validate the settings and the model entries that they name.

    Parameters
    ----------
    settings : mapping
        The merged configuration files and command line.
    *model_folders : Path
        Folders of the model list. Of two entries of one name that of the later folder is taken.
    papers : sequence of Paper
        All that there are: their figures and tables are keys of ``figures``.
    locks : Path
        Folder of the files that pin the revisions of models.
    say : callable
        Shows a line on the terminal: the models and targets that are left out, with reasons, and the progress.
    is_closed : callable
        Whether the Hub does not show a gated model to us. By default it is not asked.

    Raises
    ------
    InputError
        One sentence that names the key.
    """
    entries: WrittenEntries = {}
    for folder in model_folders:
        entries |= read_entries(folder)
    entries, settings = expand_seeds(entries, settings)
    sections = collect_sections(papers)
    typed = validate_yaml(add_sections(sections), settings, "configuration")
    settings = typed.model_dump(exclude_unset=True)
    settings |= {key: getattr(typed, key).model_dump() for key in sections}
    source, sources = settings["corpus"]["source"], settings["corpus"]["sources"]
    if source not in sources:
        raise make_unknown_name_error(source, sources, "source", "key `corpus.source`")
    for paper in papers:
        check_names(paper, list_measure_names(), entries)
    figures = choose_figure_measures(collect_figures(papers), settings["measurement"]["estimators"])
    tables = collect_tables(papers)
    targets = {**figures, **tables}
    check_targets(typed.figures.targets, targets, entries)
    chosen = choose_papers(settings["papers"], settings["figures"], papers)
    entries = _set_steps(entries, settings["training_steps"])
    models = read_models(entries, settings["models"])
    for model in [*models.values(), *find_origins(models.values()).values()]:
        _check_task(model, typed.tasks)
    reasons = {
        name: why for name, model in models.items() if (why := _explain_absence(model, is_closed))
    }
    models = {name: model for name, model in models.items() if name not in reasons}
    notices = [Notice(why) for why in reasons.values()]
    if not models:
        raise InputError(
            f"configuration key `models` names only models that are left out: {'; '.join(reasons.values())}"
        )
    of_run = {name: targets[name] for name in (*collect_figures(chosen), *collect_tables(chosen))}
    shown = choose_target_models(settings["figures"], of_run, models, notices)
    measurement, last_layer = settings["measurement"], settings["forward"]["last_layer"]
    drawn = [name for target in shown if target in figures for name in figures[target].estimators]
    measures = choose_measures(measurement, [*measurement["estimators"], *drawn], last_layer)
    run = Run(
        settings=settings,
        papers=papers,
        models={**find_origins(models.values()), **models},
        measured=list(models),
        figures=figures,
        tables=tables,
        shown=shown,
        every_measure=measures,
        tasks=typed.tasks,
        claims={paper.name: paper.claims for paper in chosen if paper.claims},
        notices=notices,
        locks=locks,
        say=say,
    )
    for model in run.models.values():  # again, since the run may have found their roles
        _check_task(model, typed.tasks)
    for words in _group_notices(notices):  # when nothing can be refused any more
        say(f"NOTE: {words}")
    return run


def _group_notices(notices: Sequence[Notice]) -> list[str]:
    """Write the notices that a user has not chosen; one sentence for all figures that are left out."""
    targets: dict[str, list[str]] = {}
    others = []
    for notice in notices:
        if notice.is_left_out and not notice.is_chosen:
            targets.setdefault(notice.words, []).append(notice.target)
        elif not notice.is_left_out:
            others.append(str(notice))
    parts = [
        f"{', '.join(of)} {'is' if len(of) == 1 else 'are'} left out: {why}"
        for why, of in targets.items()
    ]
    return [*others, *(["; ".join(parts)] if parts else [])]


def _explain_absence(model: Entry, is_closed: Callable[[Entry], bool]) -> str:
    """Say why a model, or one that it is trained from, cannot be downloaded; nothing if it can."""
    for needed in (model, *find_origins([model]).values()):
        if isinstance(needed, HubEntry) and needed.gated and is_closed(needed):
            rests = "" if needed is model else f" rests on `{needed.name}`, which"
            return (
                f"model `{model.name}`{rests} is gated, and left out: accept its licence on the Hub and set "
                "HF_TOKEN to a token of that account"
            )
    return ""


def _check_task(model: Entry, tasks: Mapping[str, TaskEntry]) -> None:
    """Refuse a fine-tuning on an unknown task, or of a decoder on pairs of texts."""
    if model.origin is None:
        return
    name, where = model.recipe["task"], f"model `{model.name}`: `finetuning.task`"
    if name not in tasks:
        raise make_unknown_name_error(name, tasks, "task", where)
    if tasks[name].has_pairs and model.shape.role == "decoder":
        raise InputError(
            f"{where} is `{name}`, which has pairs of texts, but `{model.origin.name}` is a decoder; name a "
            "task of single texts or an encoder"
        )


def _set_steps(entries: WrittenEntries, training_steps: Mapping[str, Any]) -> WrittenEntries:
    """Let the configuration choose the training steps of some models."""
    changed = dict(entries)
    for name, steps in training_steps.items():
        if name not in entries:
            raise make_unknown_name_error(
                name, entries, "model", "configuration key `training_steps`"
            )
        file, entry = entries[name]
        own = {"steps": "all"} if {"finetuning", "pretraining"} & entry.keys() else {}
        training = entry.get("training", own)
        if "steps" not in training:
            raise InputError(
                f"configuration key `training_steps.{name}`: the entry in {file} has no "
                "`training.steps` that could be replaced; remove the key"
            )
        changed[name] = file, {**entry, "training": {**training, "steps": steps}}
    return changed
