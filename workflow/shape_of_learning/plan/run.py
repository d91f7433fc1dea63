"""A run: which checkpoints its models have, and what of them tables, figures and claims ask for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.lock import Checkpoint, write_lock
from shape_of_learning.checkpoints.weight_files import list_checkpoint_files, list_tokenizer_files
from shape_of_learning.claims.claim import Claim
from shape_of_learning.errors import InputError
from shape_of_learning.file_hashes import remember_sha256
from shape_of_learning.metrics.measure_entry import WEIGHTS, Measure
from shape_of_learning.plan.curve import CheckpointSeries, plan_curve
from shape_of_learning.plan.models import Model
from shape_of_learning.plan.paper_models import Notice
from shape_of_learning.plan.papers import FigureSpecification, Paper, TableSpecification
from shape_of_learning.validation import make_unknown_name_error

LEAST_STEPS = 1000  # ours: a pretraining of this run with fewer is asked no claim
# Families of measures that are also taken of null models.
CONTROLLED = ("isotropy", "dimension", "linearity")
# Tables of weights that figures read, tables/{kind}/{model}.csv, and the folder of what each is gathered from.
WEIGHT_TABLES = {"weights": "weights", "last_weights": "weights", "weight_points": "weight_points"}
WEIGHT_TABLES |= {"massive": "massive"}  # of hidden states, by the same jobs


@dataclass
class Run:
    """What a configuration asks for, resolved on demand: a figure asks only about its own models.

    Attributes
    ----------
    settings : mapping
        The sections of the configuration, as plain values.
    papers : sequence of Paper
        All that there are.
    models : dict of str to Model
        The models of this run, and before them those from which they are trained further.
    measured : list of str
        The former.
    figures, tables : mapping of str to FigureSpecification or TableSpecification
        Of all papers, the figures with the measures that they draw.
    shown : mapping of str to tuple of str
        Figures and tables of this run -> the models that they show.
    every_measure : mapping of str to Measure
        Those of ``measurements.csv``, and what figures draw besides, with their settings.
    claims : mapping of str to mapping of str to Claim
        Those of each paper of the run that has any.
    notices : list of Notice
        What is left out and why, one sentence each.
    locks : Path
        Folder of the files that pin the revisions of models.
    say : callable
        Shows a line on the terminal.
    """

    settings: Mapping[str, Any]
    papers: Sequence[Paper]
    models: dict[str, Model]
    measured: list[str]
    figures: Mapping[str, FigureSpecification]
    tables: Mapping[str, TableSpecification]
    shown: Mapping[str, tuple[str, ...]]
    every_measure: Mapping[str, Measure]
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
        self._curves: dict[str, CheckpointSeries] = {}
        self._estimators: dict[str, dict[str, list[str]]] = {}
        self._unreachable = ""
        for name, model in self.models.items():
            if not model.shape.is_whole():
                self.models[name] = self._complete_shape(name)

    def find_paper(self, target: str) -> Paper:
        """The paper of a figure or a table."""
        return next(p for p in self.papers if target in p.figures or target in p.tables)

    def name_in_paper(self, target: str) -> str:
        """How readers call a figure or a table of a paper: Figure 1, Loss by step."""
        name = target.removeprefix(self.find_paper(target).prefix).replace("_", " ")
        return f"{name[:1].upper()}{name[1:]}"

    # --- checkpoints

    def lock_file(self, model: str) -> Path:
        """Where the revisions of a model are pinned."""
        return self.locks / f"{model}.yaml"

    def plan_curve(self, name: str) -> CheckpointSeries:
        """The checkpoints of a model, with a verdict on each; the Hub is asked for what no lock says."""
        if name not in self._curves:
            curve = plan_curve(
                self.models[name], self.lock_file(name), unreachable=self._unreachable, say=self.say
            )
            self._curves[name] = curve
            self._tell(name, curve)
            if curve.unasked and not self._unreachable:
                self._unreachable = curve.unasked
                so = "what no lock says is planned as entries say, unchecked"
                self.say(f"NOTE: {self._unreachable}; {so}")
        return self._curves[name]

    def write_locks(self) -> None:
        """Pin what has been resolved."""
        for name, curve in self._curves.items():
            if curve.is_new:
                write_lock(self.lock_file(name), curve.lock)
                self.say(f"{self.lock_file(name)} is written: commit it with your results")

    def resolve(self) -> list[str]:
        """Resolve all models of the Hub, for which no file is needed; InputError if it cannot be asked."""
        for name in self.list_models("repository"):
            if reason := self.plan_curve(name).unasked:
                raise InputError(reason)
        return []

    def _complete_shape(self, name: str) -> Model:
        """A model with what its entry does not say: its lock does, the Hub, or the model that it begins with."""
        origin = self.models[name].origin
        if origin is None:
            return self.plan_curve(name).model
        return self.models[name].complete_shape(self._complete_shape(origin.name).shape)

    def list_models(self, *kinds: str) -> list[str]:
        """Names of the models that come from there."""
        return [name for name, model in self.models.items() if model.kind in kinds]

    def list_bad(self, model: str) -> dict[str, str]:
        """Names of the checkpoints that are not what they should be, and verdicts."""
        return self.plan_curve(model).list_bad()

    def list_checkpoints(self, name: str) -> tuple[Checkpoint, ...]:
        """The checkpoints of a model that are measured."""
        curve = self.plan_curve(name)
        measured = curve.list_measured(flagged=self.flagged)
        if not measured:
            remedy = "" if self.flagged else ", or set key `bad_checkpoints` to `flag`"
            raise InputError(
                f"model `{name}`: none of its {len(curve.checkpoints)} revisions is what it should be: "
                f"{curve.bad_in_words}; correct the entry, or remove it from key `models`{remedy}"
            )
        return measured

    def require_measured(self, name: str, revision: str) -> None:
        """Refuse a checkpoint that is asked for by name and not measured."""
        measured = [checkpoint.name for checkpoint in self.list_checkpoints(name)]
        if revision in measured:
            return
        if judged := self.plan_curve(name).judged.get(revision):
            raise InputError(f"model `{name}`: `{revision}` is left out: {judged.verdict}")
        kind = f"revision of model `{name}`"
        raise make_unknown_name_error(
            revision, measured, kind, "the target, or what it is made from"
        )

    def _tell(self, name: str, curve: CheckpointSeries) -> None:
        """Say which revisions of a model are left out, and that it is not pinned yet."""
        if left_out := len(curve.checkpoints) - len(curve.list_measured(flagged=self.flagged)):
            total = f"{left_out} of {len(curve.checkpoints)} revisions are left out"
            self.say(f"NOTE: model `{name}`: {total}; bad ones are {curve.bad_in_words}")
        if curve.is_new:
            pins = f"a run writes {self.lock_file(name)} as it starts"
            self.say(f"NOTE: model `{name}` is not pinned yet; {pins}")

    def find_last_checkpoint(self, name: str) -> Checkpoint:
        """The last checkpoint of a model that is what it should be; a flagged one if there is no other."""
        measured, bad = self.list_checkpoints(name), self.list_bad(name)
        return ([each for each in measured if each.name not in bad] or list(measured))[-1]

    def find_origin(self, name: str) -> dict[str, str]:
        """The model and the revision that a fine-tuning begins with."""
        model = self.models[name]
        assert model.origin is not None
        revision = model.origin_revision or self.find_last_checkpoint(model.origin.name).name
        return {"model": model.origin.name, "revision": revision}

    def describe_weights(self, name: str, revision: str) -> str:
        """What decides the weights of a checkpoint that no job of this run makes, wherever they lie."""
        model = self.models[name]
        if model.kind == "repository":
            return self.plan_curve(name).describe_weights(revision)
        if model.kind == "path":
            files = list_checkpoint_files(Path(model.local_folders[revision]))
            files += list_tokenizer_files(Path(model.tokenizer)) if model.tokenizer else []
            return " ".join(f"{file.name} {remember_sha256(file)}" for file in files)
        return ""

    # --- what is measured

    @cached_property
    def measurement_scope(self) -> dict[tuple[str, str], bool]:
        """Model and estimator -> whether it is measured at every checkpoint, or at the last one alone."""
        asked = [name for name in self.estimators if name in self.measures]
        wanted = dict.fromkeys(product(self.measured, asked), True)
        for figure, models in self.list_drawn_figures():
            for each in product(models, self.list_estimators(figure)):
                wanted[each] = wanted.get(each, False) or figure.draws_every_checkpoint
        return wanted

    def list_drawn_figures(self) -> list[tuple[FigureSpecification, tuple[str, ...]]]:
        """The figures of the run, each with its models."""
        return [(self.figures[n], models) for n, models in self.shown.items() if n in self.figures]

    def list_estimators(self, figure: FigureSpecification) -> list[str]:
        """The estimators of a figure that tables of estimates hold."""
        return [name for name in figure.estimators if name in self.measures]

    def list_estimators_by_checkpoint(self, model: str) -> dict[str, list[str]]:
        """By checkpoint of a model, the estimators that are wanted of it, in the order of their names."""
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
        """The measures of a checkpoint, of one family or of all."""
        found = [
            self.measures[name] for name in self.list_estimators_by_checkpoint(model)[revision]
        ]
        return [each for each in found if family in ("", each.family)]

    def list_gathered_curves(self, model: str) -> list[dict[str, Any]]:
        """The estimators of a model, each with the checkpoints at which it is measured."""
        at = self.list_estimators_by_checkpoint(model)
        return [
            {
                "estimator": name,
                "family": self.measures[name].family,
                "conditions": self.measures[name].conditions,
                "revisions": [revision for revision, wanted in at.items() if name in wanted],
            }
            for of, name in self.measurement_scope
            if of == model
        ]

    # --- null models

    def list_control_checkpoints(self, name: str) -> list[Checkpoint]:
        """The checkpoints of a model that figures draw beside its null models."""
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
        """What null models are measured by: the estimators of figures that draw them."""
        drawn = {
            name
            for figure, models in self.list_drawn_figures()
            if "controls" in figure.reads and model in models
            for name in figure.estimators
        }
        found = [m for m in self.list_measures(model, revision) if m.family in CONTROLLED]
        return [measure for measure in found if measure.name in drawn]

    # --- what is measured of models themselves, and further tables

    def list_weight_models(self, kind: str) -> list[str]:
        """The models that a table of weights is made of: those of figures that read it, or all if a key asks."""
        if kind == "weights" and any(name in self.weight_measures for name in self.estimators):
            return list(self.models)
        return [name for name in self.models if name in self._find_readers(kind)]

    def _find_readers(self, kind: str) -> set[str]:
        """The models of the figures and tables that read tables of a kind."""
        targets = {**self.figures, **self.tables}
        return {n for target, of in self.shown.items() if kind in targets[target].reads for n in of}

    def list_weight_checkpoints(self, kind: str, name: str) -> list[Checkpoint]:
        """The checkpoints of a model that are in a table of weights."""
        if name not in self.list_weight_models(kind):
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

    def describe_matrices(self, model: str, revision: str) -> dict[str, Any]:
        """What is measured of the matrices of a checkpoint."""

        def is_in(*kinds: str) -> bool:
            asked = [
                checkpoint
                for kind in kinds
                for checkpoint in self.list_weight_checkpoints(kind, model)
            ]
            return revision in {each.name for each in asked}

        names = self.weight_measures if is_in("weights", "last_weights") else []
        return {
            "measures": [self.every_measure[name].make_job() for name in names],
            "points": is_in("weight_points"),
            "massive": is_in("massive"),
            "seed": self.settings["seed"],
        }

    def list_weight_tables(self) -> list[tuple[str, str]]:
        """Kind and model of the tables of weights: of all checkpoints of a model where a figure reads these."""
        whole, last = self.list_weight_models("weights"), self.list_weight_models("last_weights")
        return [
            ("weights" if name in whole else "last_weights", name)
            for name in self.models
            if name in {*whole, *last}
        ]

    def list_tables_read(self, kinds: Iterable[str]) -> list[tuple[str, str]]:
        """Kind and model of the tables of these kinds that figures or tables of the run read."""
        found: list[tuple[str, str]] = []
        for kind in kinds:
            others = [(kind, name) for name in self.models if name in self._find_readers(kind)]
            found += self.list_weight_tables() if kind == "weights" else others
        return found

    # --- claims

    def list_claimed_models(self, paper: str) -> list[str]:
        """Models of which the run measures any estimator of a paper's claims."""
        claims = self.claims[paper].values()
        estimators = {name for claim in claims for name in claim.all_estimators}
        measured = {model for model, estimator in self.measurement_scope if estimator in estimators}
        return [name for name in self.judged_models if name in measured]

    @cached_property
    def judged_models(self) -> list[str]:
        """The measured models that claims are asked of: not those of a pretraining of this run that is short."""
        return [name for name in self.measured if not is_short(self.models[name])]

    def list_claimed_tables(self, paper: str) -> list[tuple[str, str]]:
        """Kind and model of further tables that the run makes and claims read."""
        kinds = {kind for c in self.claims[paper].values() for kind in c.reads}
        models = set(self.list_claimed_models(paper))
        models.update(self.list_weight_models("weights") if "weights" in kinds else ())
        judged = [("verdicts", name) for name in self.judged_models if name in models]
        read = [(k, m) for k, m in self.list_tables_read(sorted(kinds)) if m in self.judged_models]
        return [*read, *judged]

    def list_controlled_models(self) -> list[str]:
        """The models that figures draw beside null models."""
        return [name for name in self.models if name in self._find_readers("controls")]

    def describe_evidence_models(self) -> list[dict[str, Any]]:
        """What claims ask of the models besides their numbers."""
        return [self.models[name].make_evidence() for name in self.judged_models]


def is_short(model: Model) -> bool:
    """Whether a model, or the one that it begins with, is pretrained by this run for too short to judge papers by."""
    if model.origin is not None:
        return is_short(model.origin)
    return model.kind == "pretraining" and (model.last_step or 0) < LEAST_STEPS


def thin_checkpoints(checkpoints: Sequence[Any], most: int) -> list[Any]:
    """Choose at most so many of a sequence, evenly by rank; the first and the last are among them."""
    if len(checkpoints) <= most:
        return list(checkpoints)
    ranks = {round(place * (len(checkpoints) - 1) / (most - 1)) for place in range(most)}
    return [checkpoints[rank] for rank in sorted(ranks)]


def collect_suspect_limits(measures: Mapping[str, Measure]) -> dict[str, float]:
    """The share of near-duplicates up to which the conditions of an estimator hold."""
    limits = {name: measure.suspect_above for name, measure in measures.items()}
    return {name: limit for name, limit in limits.items() if limit is not None}
