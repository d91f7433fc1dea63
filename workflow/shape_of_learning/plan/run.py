"""A run: the models, checkpoints, measures, figures and claims that a configuration asks for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.job import CheckpointJudgementJob, DownloadJob
from shape_of_learning.checkpoints.lock import Checkpoint, write_lock
from shape_of_learning.checkpoints.verdict import format_verdict
from shape_of_learning.claims.claim import Claim, EvidenceModel
from shape_of_learning.embeddings.protocol import MatrixProtocol, Weights
from shape_of_learning.errors import InputError
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
from shape_of_learning.plan.series import CheckpointSeries, resolve_checkpoints
from shape_of_learning.plan.settings import Settings, add_sections, choose_measures
from shape_of_learning.tasks.entry import TaskEntry
from shape_of_learning.training.job import FinetuningJob, PretrainingJob
from shape_of_learning.validation import make_unknown_name_error, validate_yaml
from shape_of_learning.words import capitalise

# Claims are not judged on a pretraining of this run with fewer steps.
MIN_STEPS_FOR_CLAIMS = 1000
# Families of measures that null models get, too.
CONTROL_FAMILIES = ("isotropy", "dimension", "linearity")
# Kind of a table that figures read, tables/{kind}/{model}.csv -> the folder with its file for each checkpoint.
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
    settings : Settings
    papers : sequence of Paper
        All papers, whether the run has their figures or not.
    models : dict of str to Entry
        First the models that others are fine-tuned from, then the models of this run.
    measured_models : list of str
        The names of the models of this run.
    figures, tables : mapping of str to FigureEntry or TableEntry
        The figures and tables of all papers; each figure has the measures that it draws.
    shown_models : mapping of str to tuple of str
        Figure or table of this run -> the models that it shows.
    all_measures : mapping of str to Measure
        The configured measures of ``measurements.csv`` and of the figures of this run.
    tasks : mapping of str to TaskEntry
        Section ``tasks`` of the configuration.
    claims : mapping of str to mapping of str to Claim
        Paper of this run with claims -> its claims, by name.
    notices : list of Notice
        The models, figures and tables that are left out, with reasons.
    locks : Path
        Folder of the files that pin the revisions of models.
    say : callable
        Shows a line on the terminal.
    """

    settings: Settings
    papers: Sequence[Paper]
    models: dict[str, Entry]
    measured_models: list[str]
    figures: Mapping[str, FigureEntry]
    tables: Mapping[str, TableEntry]
    shown_models: Mapping[str, tuple[str, ...]]
    all_measures: Mapping[str, Measure]
    tasks: Mapping[str, TaskEntry]
    claims: Mapping[str, Mapping[str, Claim]]
    notices: list[Notice]
    locks: Path
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self.estimators: list[str] = self.settings.measurement.estimators
        self.includes_flagged = self.settings.bad_checkpoints == "flag"
        measures = self.all_measures
        self.measures = {n: m for n, m in measures.items() if m.family != WEIGHTS}
        self.weight_measures = sorted(n for n, m in measures.items() if m.family == WEIGHTS)
        self._series: dict[str, CheckpointSeries] = {}
        self._estimators: dict[str, dict[str, list[str]]] = {}
        self._hub_failure = ""
        for name, model in self.models.items():
            if not model.shape.is_whole():
                self.models[name] = self._complete_shape(name)

    def find_paper(self, target: str) -> Paper:
        """Find the paper of a figure or a table."""
        return next(p for p in self.papers if target in p.figures or target in p.tables)

    def name_in_paper(self, target: str) -> str:
        """Return the name of a figure or a table in its paper, such as Figure 1 or Loss by step."""
        return capitalise(target.removeprefix(self.find_paper(target).prefix).replace("_", " "))

    # --- checkpoints

    def name_lock_file(self, model: str) -> Path:
        """Return the file that pins the revisions of a model."""
        return self.locks / f"{model}.yaml"

    def resolve_checkpoints(self, name: str) -> CheckpointSeries:
        """Return the checkpoints of a model with their verdicts; ask the Hub if the lock lacks some."""
        if name not in self._series:
            series = resolve_checkpoints(
                self.models[name],
                self.name_lock_file(name),
                known_failure=self._hub_failure,
                say=self.say,
            )
            self._series[name] = series
            self._announce(name, series)
            if series.hub_failure and not self._hub_failure:
                self._hub_failure = series.hub_failure
                self.say(
                    f"NOTE: {self._hub_failure}; models without a lock are planned from their entries and not checked"
                )
        return self._series[name]

    def write_locks(self) -> None:
        """Write the locks of the models that were resolved."""
        for name, series in self._series.items():
            if series.is_new:
                write_lock(self.name_lock_file(name), series.lock)
                self.say(f"{self.name_lock_file(name)} is written: commit it with your results")

    def resolve(self) -> list[str]:
        """Resolve all models of the Hub; return an empty list, so that a rule can have this as its input.

        Raises
        ------
        InputError
            If the Hub cannot be asked.
        """
        for name in self.list_models("repository"):
            if reason := self.resolve_checkpoints(name).hub_failure:
                raise InputError(reason)
        return []

    def _complete_shape(self, name: str) -> Entry:
        """Complete the shape of a model from its lock, the Hub, or the model that it is fine-tuned from."""
        origin = self.models[name].origin
        if origin is None:
            return self.resolve_checkpoints(name).model
        return self.models[name].complete_shape(self._complete_shape(origin.name).shape)

    def list_models(self, kind: str) -> list[str]:
        """List the models whose weights come from a kind of source."""
        return [name for name, model in self.models.items() if model.kind == kind]

    def list_bad_verdicts(self, model: str) -> dict[str, str]:
        """Return the verdicts on the bad checkpoints of a model, by name."""
        return self.resolve_checkpoints(model).list_bad_verdicts()

    def list_checkpoints(self, name: str) -> tuple[Checkpoint, ...]:
        """List the checkpoints of a model that are measured."""
        series = self.resolve_checkpoints(name)
        checkpoints = series.list_measured_checkpoints(include_flagged=self.includes_flagged)
        if not checkpoints:
            remedy = "" if self.includes_flagged else ", or set key `bad_checkpoints` to `flag`"
            raise InputError(
                f"model `{name}`: all {len(series.checkpoints)} of its revisions are bad: "
                f"{series.format_bad_checkpoints()}; correct the entry, or remove it from key `models`{remedy}"
            )
        return checkpoints

    def list_good_checkpoints(self, name: str) -> list[Checkpoint]:
        """List the measured checkpoints of a model that are not bad."""
        bad = self.list_bad_verdicts(name)
        return [
            checkpoint for checkpoint in self.list_checkpoints(name) if checkpoint.name not in bad
        ]

    def find_checkpoint(self, name: str, revision: str) -> Checkpoint:
        """Find a measured checkpoint of a model by its name."""
        return next(c for c in self.list_checkpoints(name) if c.name == revision)

    def require_checkpoint(self, name: str, revision: str) -> None:
        """Refuse the name of a checkpoint that the run does not measure."""
        names = [checkpoint.name for checkpoint in self.list_checkpoints(name)]
        if revision in names:
            return
        if judgement := self.resolve_checkpoints(name).judgements.get(revision):
            verdict = format_verdict(judgement.verdict)
            raise InputError(f"model `{name}`: `{revision}` is left out: {verdict}")
        kind = f"revision of model `{name}`"
        raise make_unknown_name_error(revision, names, kind, "the target, or what it is made from")

    def _announce(self, name: str, series: CheckpointSeries) -> None:
        """Say how many revisions of a model are left out, and whether it is not pinned yet."""
        total = len(series.checkpoints)
        measured_checkpoints = series.list_measured_checkpoints(
            include_flagged=self.includes_flagged
        )
        if missing := total - len(measured_checkpoints):
            self.say(
                f"NOTE: model `{name}`: {missing} of {total} revisions are left out; bad ones are "
                f"{series.format_bad_checkpoints()}"
            )
        if series.is_new:
            self.say(
                f"NOTE: model `{name}` is not pinned yet; a run writes {self.name_lock_file(name)} as it starts"
            )

    def find_last_checkpoint(self, name: str) -> Checkpoint:
        """Find the last good checkpoint of a model; the last flagged checkpoint if none is good."""
        return (self.list_good_checkpoints(name) or self.list_checkpoints(name))[-1]

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
        return PretrainingJob(name, model.make_recipe(self.settings.seed))

    def make_finetuning_job(self, name: str) -> FinetuningJob:
        """Make the job that fine-tunes a model."""
        model = self.models[name]
        assert isinstance(model, FinetuningEntry)
        origin = self.describe_weights(*self.find_origin(name))
        return FinetuningJob(name, origin, model.make_recipe())

    def describe_weights(self, name: str, revision: str) -> Weights:
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
        pinned_revision = lock.revisions.get(revision)
        return DownloadJob(name, revision, pinned_revision, lock.tokenizer, self.models[name].shape)

    def make_checkpoint_judgement_job(self, name: str) -> CheckpointJudgementJob:
        """Make the job that judges the checkpoints of a model when they have been measured."""
        return CheckpointJudgementJob(
            name,
            checkpoints=tuple(self.resolve_checkpoints(name).judgements.values()),
            measured_names=tuple(checkpoint.name for checkpoint in self.list_checkpoints(name)),
            policy=self.settings.bad_checkpoints,
            # A user's own folders may hold a pretraining or a fine-tuning.
            is_from_scratch=self.models[name].kind in ("repository", "pretraining"),
        )

    def identify_weights(self, name: str, revision: str) -> str:
        """Return the commit and hashes that identify the weights of a checkpoint; empty if this run makes them."""
        return self.models[name].weights_identity(revision, self.resolve_checkpoints(name).lock)

    # --- measures of hidden states

    @cached_property
    def measurement_scope(self) -> dict[tuple[str, str], bool]:
        """Model and estimator -> whether the run measures it at every checkpoint, or only at the last one."""
        estimators = [name for name in self.estimators if name in self.measures]
        scope = dict.fromkeys(product(self.measured_models, estimators), True)
        for figure, models in self.list_drawn_figures():
            for pair in product(models, self.list_estimators(figure)):
                scope[pair] = scope.get(pair, False) or figure.draws_every_checkpoint
        return scope

    def list_drawn_figures(self) -> list[tuple[FigureEntry, tuple[str, ...]]]:
        """List the figures of the run, each with its models."""
        return [
            (self.figures[n], models)
            for n, models in self.shown_models.items()
            if n in self.figures
        ]

    def list_estimators(self, figure: FigureEntry) -> list[str]:
        """List the estimators of a figure that are measured of hidden states, and so are in tables of estimates."""
        return [name for name in figure.estimators if name in self.measures]

    def list_estimators_by_checkpoint(self, model: str) -> dict[str, list[str]]:
        """List the estimators at each checkpoint of a model, sorted by name."""
        if model not in self._estimators:
            last = self.find_last_checkpoint(model).name
            model_estimators = sorted(
                (name, always) for (m, name), always in self.measurement_scope.items() if m == model
            )
            self._estimators[model] = {
                checkpoint.name: [
                    name for name, always in model_estimators if always or checkpoint.name == last
                ]
                for checkpoint in self.list_checkpoints(model)
            }
        return self._estimators[model]

    def list_measures(self, model: str, revision: str, family: str = "") -> list[Measure]:
        """List the measures of a checkpoint: those of one family, or all if `family` is empty."""
        measures = [
            self.measures[name] for name in self.list_estimators_by_checkpoint(model)[revision]
        ]
        return [measure for measure in measures if family in ("", measure.family)]

    def make_model_tables_job(self, name: str, folder: str) -> ModelTablesJob:
        """Describe a model, and each of its estimators with the checkpoints at which it is measured."""
        shape = self.models[name].shape
        estimators = self.list_estimators_by_checkpoint(name)
        model = MeasuredModel(
            name=name,
            role=shape.role,
            layers=shape.layers,
            checkpoints=tuple((c.name, c.step, c.tokens) for c in self.list_checkpoints(name)),
            average_over=self.settings.figures.average_over,
            width=shape.hidden_size or 0,
        )
        series = (
            MeasuredSeries(
                estimator=estimator,
                family=self.measures[estimator].family,
                conditions=self.measures[estimator].conditions,
                revisions=tuple(r for r, names in estimators.items() if estimator in names),
            )
            for measured_model, estimator in self.measurement_scope
            if measured_model == name
        )
        return ModelTablesJob(folder, model, tuple(series))

    # --- null models

    def list_control_checkpoints(self, name: str) -> list[Checkpoint]:
        """List the checkpoints of a model that figures draw beside its null models."""
        control_figures = [
            figure
            for figure, models in self.list_drawn_figures()
            if "controls" in figure.reads and name in models
        ]
        if not control_figures:
            return []
        last = self.find_last_checkpoint(name)
        if not any(figure.draws_every_checkpoint for figure in control_figures):
            return [last]
        good_checkpoints = self.list_good_checkpoints(name)
        return thin_checkpoints(good_checkpoints, self.settings.controls.checkpoints) or [last]

    def list_control_measures(self, model: str, revision: str) -> list[Measure]:
        """List the measures of the null models of a checkpoint, for the figures that draw these."""
        estimators = {
            name
            for figure, models in self.list_drawn_figures()
            if "controls" in figure.reads and model in models
            for name in figure.estimators
        }
        measures = [m for m in self.list_measures(model, revision) if m.family in CONTROL_FAMILIES]
        return [measure for measure in measures if measure.name in estimators]

    # --- measures of weights, and further tables

    def list_table_models(self, kind: str) -> list[str]:
        """List the models that have a table of a kind, because a figure or a table of the run reads it.

        If `measurement.estimators` lists a measure of weights, all models have a table of weights.
        """
        if kind == "weights" and any(name in self.weight_measures for name in self.estimators):
            return list(self.measured_models)
        readers = self._find_readers(kind)
        return [name for name in self.models if name in readers]

    def _find_readers(self, kind: str) -> set[str]:
        """Find the models of the figures and tables that read tables of a kind."""
        targets = {**self.figures, **self.tables}
        return {
            n
            for target, models in self.shown_models.items()
            if kind in targets[target].reads
            for n in models
        }

    def list_table_checkpoints(self, kind: str, name: str) -> list[Checkpoint]:
        """List the checkpoints of a model that are in its table of a kind."""
        if name not in self.list_table_models(kind):
            return []
        if kind in ("weights", "massive"):
            return list(self.list_checkpoints(name))
        last = self.find_last_checkpoint(name)
        if kind == "last_weights":
            return [last]
        checkpoints = self.list_good_checkpoints(name) or [last]
        return list(dict.fromkeys([checkpoints[0], checkpoints[len(checkpoints) // 2], last]))

    def make_matrix_protocol(self, model: str, revision: str) -> MatrixProtocol:
        """Choose the measures of a checkpoint's own matrices, and whether its massive tokens are listed."""

        def is_in(*kinds: str) -> bool:
            checkpoints = (c for kind in kinds for c in self.list_table_checkpoints(kind, model))
            return any(checkpoint.name == revision for checkpoint in checkpoints)

        names = self.weight_measures if is_in("weights", "last_weights") else []
        return MatrixProtocol(
            measures=drop_labels_and_rules(self.all_measures[name] for name in names),
            points=is_in("weight_points"),
            massive=is_in("massive"),
            seed=self.settings.seed,
        )

    def list_weight_tables(self) -> list[tuple[str, str]]:
        """List kind and model of the tables of weights, of all checkpoints if a figure or a key needs these."""
        whole, last = self.list_table_models("weights"), self.list_table_models("last_weights")
        return [
            ("weights" if name in whole else "last_weights", name)
            for name in self.models
            if name in {*whole, *last}
        ]

    def list_tables_read(self, kinds: Iterable[str]) -> list[tuple[str, str]]:
        """List kind and model of the tables of some kinds that figures or tables of the run read."""
        tables: list[tuple[str, str]] = []
        for kind in kinds:
            readers = self._find_readers(kind)
            kind_tables = [(kind, name) for name in self.models if name in readers]
            tables += self.list_weight_tables() if kind == "weights" else kind_tables
        return tables

    # --- claims

    def list_claimed_models(self, paper: str) -> list[str]:
        """List the models on which the run measures an estimator of a paper's claims."""
        claims = self.claims[paper].values()
        estimators = {name for claim in claims for name in claim.all_estimators}
        measured_models = {
            model for model, estimator in self.measurement_scope if estimator in estimators
        }
        return [name for name in self.models_for_claims if name in measured_models]

    @cached_property
    def models_for_claims(self) -> list[str]:
        """Models that claims are judged on: not those of a short pretraining of this run."""
        return [name for name in self.measured_models if not is_short(self.models[name])]

    def list_claimed_tables(self, paper: str) -> list[tuple[str, str]]:
        """List kind and model of the further tables that claims of a paper read."""
        kinds = {kind for c in self.claims[paper].values() for kind in c.reads}
        models = set(self.list_claimed_models(paper))
        models.update(self.list_table_models("weights") if "weights" in kinds else ())
        verdict_tables = [("verdicts", name) for name in self.models_for_claims if name in models]
        read_tables = [
            (k, m) for k, m in self.list_tables_read(sorted(kinds)) if m in self.models_for_claims
        ]
        return [*read_tables, *verdict_tables]

    def list_evidence_models(self) -> tuple[EvidenceModel, ...]:
        """List the models that claims are judged on."""
        return tuple(self.models[name].make_evidence() for name in self.models_for_claims)


def is_short(model: Entry) -> bool:
    """Return whether this run pretrains the model, or its origin, for fewer steps than claims need."""
    if model.origin is not None:
        return is_short(model.origin)
    return model.kind == "pretraining" and (model.last_step or 0) < MIN_STEPS_FOR_CLAIMS


def thin_checkpoints(checkpoints: Sequence[Any], limit: int) -> list[Any]:
    """Choose at most `limit` checkpoints, evenly by rank, with the first and the last."""
    if len(checkpoints) <= limit:
        return list(checkpoints)
    ranks = {round(place * (len(checkpoints) - 1) / (limit - 1)) for place in range(limit)}
    return [checkpoints[rank] for rank in sorted(ranks)]


def collect_near_duplicate_limits(measures: Mapping[str, Measure]) -> dict[str, float | None]:
    """Collect the share of near-duplicates up to which each intrinsic dimension can be trusted; None for any share."""
    return {
        name: measure.near_duplicate_limit
        for name, measure in measures.items()
        if measure.conditions.is_dimension
    }


def add_defaults(settings: Mapping[str, Any], defaults: Path) -> dict[str, Any]:
    """Add missing keys, also within sections, from a file of defaults; lists are not merged."""
    return merge_settings(read_yaml(defaults), settings)


def merge_settings(defaults: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Replace defaults by settings, key by key."""
    both = {
        key: merge_settings(defaults[key], value)
        for key, value in settings.items()
        if isinstance(value, Mapping) and isinstance(defaults.get(key), Mapping)
    }
    return {**defaults, **settings, **both}


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
        Folders of model entries. Of two entries with one name the later folder's counts.
    papers : sequence of Paper
        All papers, whose figures and tables are keys of ``figures``.
    locks : Path
        Folder of the files that pin the revisions of models.
    say : callable
        Shows a line on the terminal: the models and targets that are left out, with reasons, and the progress.
    is_closed : callable
        Tells whether the Hub hides a gated model from this user. By default the Hub is not asked.

    Raises
    ------
    InputError
        One sentence that names the key.
    """
    entries: WrittenEntries = {}
    for folder in model_folders:
        entries |= read_entries(folder)
    entries, settings = expand_seeds(entries, settings)
    configuration = validate_yaml(add_sections(collect_sections(papers)), settings, "configuration")
    source, sources = configuration.corpus.source, configuration.corpus.sources
    if source not in sources:
        raise make_unknown_name_error(source, sources, "source", "key `corpus.source`")
    for paper in papers:
        check_names(paper, list_measure_names(), entries)
    figures = choose_figure_measures(collect_figures(papers), configuration.measurement.estimators)
    tables = collect_tables(papers)
    targets = {**figures, **tables}
    check_targets(configuration.figures.targets, targets, entries)
    chosen_papers = choose_papers(configuration.papers, configuration.figures.targets, papers)
    entries = _set_steps(entries, configuration.training_steps)
    models = read_models(entries, configuration.models)
    for model in [*models.values(), *find_origins(models.values()).values()]:
        _check_task(model, configuration.tasks)
    reasons = {
        name: why for name, model in models.items() if (why := _explain_absence(model, is_closed))
    }
    models = {name: model for name, model in models.items() if name not in reasons}
    notices = [Notice(why) for why in reasons.values()]
    if not models:
        raise InputError(
            f"configuration key `models` names only models that are left out: {'; '.join(reasons.values())}"
        )
    run_targets = {
        name: targets[name]
        for name in (*collect_figures(chosen_papers), *collect_tables(chosen_papers))
    }
    shown_models = choose_target_models(configuration.figures.targets, run_targets, models, notices)
    measurement = configuration.measurement
    last_layer = configuration.forward.last_layer
    drawn_estimators = [
        name for target in shown_models if target in figures for name in figures[target].estimators
    ]
    measures = choose_measures(
        measurement, [*measurement.estimators, *drawn_estimators], last_layer
    )
    run = Run(
        settings=configuration,
        papers=papers,
        models={**find_origins(models.values()), **models},
        measured_models=list(models),
        figures=figures,
        tables=tables,
        shown_models=shown_models,
        all_measures=measures,
        tasks=configuration.tasks,
        claims={paper.name: paper.claims for paper in chosen_papers if paper.claims},
        notices=notices,
        locks=locks,
        say=say,
    )
    for model in run.models.values():  # again, since the run may have read roles from the Hub
        _check_task(model, configuration.tasks)
    for words in _group_notices(notices):  # last, since an error above would make notes pointless
        say(f"NOTE: {words}")
    return run


def _group_notices(notices: Sequence[Notice]) -> list[str]:
    """Write the notices that the configuration does not explain; one sentence for all excluded figures."""
    targets: dict[str, list[str]] = {}
    sentences = []
    for notice in notices:
        if notice.is_left_out and not notice.is_chosen:
            targets.setdefault(notice.words, []).append(notice.target)
        elif not notice.is_left_out:
            sentences.append(str(notice))
    parts = [
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} left out: {why}"
        for why, names in targets.items()
    ]
    return [*sentences, *(["; ".join(parts)] if parts else [])]


def _explain_absence(model: Entry, is_closed: Callable[[Entry], bool]) -> str:
    """Say why a model, or a model that it is fine-tuned from, cannot be downloaded; empty if it can."""
    for needed_model in (model, *find_origins([model]).values()):
        if isinstance(needed_model, HubEntry) and needed_model.gated and is_closed(needed_model):
            rests = "" if needed_model is model else f" rests on `{needed_model.name}`, which"
            return (
                f"model `{model.name}`{rests} is gated, and left out: accept its licence on the Hub and set "
                "HF_TOKEN to a token of that account"
            )
    return ""


def _check_task(model: Entry, tasks: Mapping[str, TaskEntry]) -> None:
    """Refuse a fine-tuning on an unknown task, or of a decoder on pairs of texts."""
    if model.origin is None:
        return
    name = model.recipe["task"]
    where = f"model `{model.name}`: `finetuning.task`"
    if name not in tasks:
        raise make_unknown_name_error(name, tasks, "task", where)
    if tasks[name].has_pairs and model.shape.role == "decoder":
        raise InputError(
            f"{where} is `{name}`, which has pairs of texts, but `{model.origin.name}` is a decoder; name a "
            "task of single texts or an encoder"
        )


def _set_steps(entries: WrittenEntries, training_steps: Mapping[str, Any]) -> WrittenEntries:
    """Replace the training steps of entries by those of key ``training_steps``."""
    new_entries = dict(entries)
    for name, steps in training_steps.items():
        if name not in entries:
            raise make_unknown_name_error(
                name, entries, "model", "configuration key `training_steps`"
            )
        file, entry = entries[name]
        content = entry if isinstance(entry, dict) else {}
        default = {"steps": "all"} if {"finetuning", "pretraining"} & content.keys() else {}
        training = content.get("training") or {}
        training = {**default, **training} if isinstance(training, dict) else training
        if not isinstance(training, dict) or "steps" not in training:
            raise InputError(
                f"configuration key `training_steps.{name}`: the entry in {file} has no "
                "`training.steps` that could be replaced; remove the key"
            )
        new_entries[name] = file, {**content, "training": {**training, "steps": steps}}
    return new_entries
