"""Section ``choices`` of the configuration: which specifications claims are judged under."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from shape_of_learning.checkpoints.lock import Checkpoint
from shape_of_learning.claims.claim import Claim, ClaimGrid, EvidenceModel
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import (
    AFTER,
    ROW_CHOICES,
    WEIGHTS,
    WHOLE,
    Measure,
    SampleVariant,
)
from shape_of_learning.metrics.registry import find_measure, list_measure_names
from shape_of_learning.plan.run import Run, thin_checkpoints
from shape_of_learning.plan.settings import choose_measures
from shape_of_learning.validation import make_unknown_name_error

# Names of other choices, and of columns of the tables of specifications.
TAKEN = (
    *(*ROW_CHOICES, "average_over", "last_layer"),
    *("claim", "rank", "is_reference", "verdict", "estimate", "low", "high", "n", "because"),
)


class SpecificationGrid:
    """The options of section ``choices``, checked.

    Parameters
    ----------
    settings : mapping
        The configuration, which the schema allows.

    Attributes
    ----------
    rows, last_layer : mapping of str to sequence of str, sequence of str
        Options of the choices of :class:`.SampleVariant`, and of what the last layer is; the run's own one is the
        first, where it is listed.
    families : dict of str to dict of str to str
        Name of a choice -> estimators of which one can take the place of another, with parameters of their
        own in their names -> the name of each in the registry.
    variants : dict of str to Measure
        All these estimators.

    Raises
    ------
    InputError
        One sentence that names the key: a text, an estimator or a parameter that there is not, or one text
        under two names.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._choices, self._measurement = settings["choices"], settings["measurement"]
        _check_samples(settings)
        own = {"text": "own", "windows_share": "1", "batch_share": "1", **self._measurement}
        self.rows = {name: _list_options(self._choices[name], own[name]) for name in ROW_CHOICES}
        last_layer = settings["forward"]["last_layer"].replace("both", AFTER)
        self.last_layer = _list_options(self._choices["last_layer"], last_layer)
        self.variants: dict[str, Measure] = {}
        self.families: dict[str, dict[str, str]] = {}
        for family, entries in self._choices["estimators"].items():
            key = f"configuration key `choices.estimators.{family}`"
            if family in TAKEN:
                raise InputError(f"{key} has the name of another choice or of a column; rename it")
            self.families[family] = self._find_family(key, entries)

    def _find_family(self, key: str, entries: Sequence[Any]) -> dict[str, str]:
        """Look up the estimators of a family, each with its own parameters; equal ones once.

        Those that ask for more neighbours than the run searches are left out.
        """
        elsewhere = {base: name for name, of in self.families.items() for base in of.values()}
        found: dict[str, str] = {}
        for entry in entries:
            base, own = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
            of_run = self._measurement["parameters"].get(base, {})
            given = {**self._measurement, "parameters": {base: {**of_run, **own}}}
            if not _is_searched(base, given):
                continue
            try:
                chosen = choose_measures(given, [base])[base]
            except InputError as error:
                raise InputError(f"{key}: {error}") from None
            if base in elsewhere:
                raise InputError(
                    f"{key} names `{base}`, which is in `{elsewhere[base]}`; remove one"
                )
            defaults = {**find_measure(base).parameters, **of_run}
            words = ", ".join(f"{name}={value}" for name, value in own.items())
            differs = any(defaults[name] != value for name, value in own.items())
            alike = [self.variants[name] for name, other in found.items() if other == base]
            if all(measure.arguments != chosen.arguments for measure in alike):
                name = f"{base}({words})" if differs else base
                found[name] = base
                self.variants[name] = replace(chosen, name=name)
        return found

    def list_row_sets(self) -> list[SampleVariant]:
        """List all combinations of the choices of rows."""
        return [SampleVariant(*options) for options in product(*self.rows.values())]

    def make_claim_grid(self, claim: Claim, measures: Mapping[str, Measure]) -> ClaimGrid:
        """Choose the options that can change a claim on some measures.

        A choice of rows does, unless all of its measures make that choice for themselves; the size of
        batches, unless all take all vectors together; whose neighbours count, if one is of neighbours; whether
        layer 0 counts, unless all are of blocks; and
        an estimator, if another one is in its family. Where the claim itself names several of a family, each
        has its own parameters to choose.
        """
        listed = measures.values()
        untouched = {name for name in TAKEN if all(name in measure.rows for measure in listed)}
        if all(measure.family in WHOLE for measure in listed):
            untouched.add("batch_share")
        if not any(measure.family == "dimension" for measure in listed):
            untouched.add("same_window")
        if all(measure.first_layer == 1 for measure in listed) or claim.of_blocks:
            untouched.add("average_over")
        choices, decided_by = dict(self.rows), {}
        for family, variants in self.families.items():
            named = [name for name in measures if name in variants.values()]
            for name in named:
                is_alone = len(named) == 1
                decided_by[name] = family if is_alone else name
                others = [other for other, base in variants.items() if is_alone or base == name]
                choices[decided_by[name]] = _put_own_first(name, others)
        choices["average_over"] = _put_own_first(claim.average_over, self._choices["average_over"])
        choices["last_layer"] = self.last_layer
        for name in untouched & choices.keys():
            choices[name] = choices[name][:1]
        return ClaimGrid(claim, choices, decided_by)

    def plan_claim(self, claim: Claim, run: Mapping[str, EvidenceModel]) -> ClaimGrid | None:
        """Plan a claim on hidden states alone, for which a run has enough models and searched neighbours."""
        claim = claim.restrict_to_run(run)
        models = claim.list_models(run)
        originals = [run[name].origin for name in models if run[name].kind == "twin"]
        if not models or claim.count_models(models, run) < claim.needed_models:
            return None
        if not claim.estimators or claim.reads:
            return None
        if not all(_is_searched(name, self._measurement) for name in claim.estimators):
            return None
        measures = choose_measures(self._measurement, claim.estimators, "both")
        if any(measure.family == WEIGHTS for measure in measures.values()):
            return None
        planned = self.make_claim_grid(claim, measures)
        options = {
            option for name in planned.decided_by.values() for option in planned.choices[name]
        }
        measures |= {name: m for name, m in self.variants.items() if name in options}
        with_originals = dict.fromkeys([*models, *(name for name in originals if name in run)])
        return replace(planned, models=list(with_originals), measures=measures)


def _check_samples(settings: Mapping[str, Any]) -> None:
    choices, measurement = settings["choices"], settings["measurement"]
    known = ("own", "resampled", *settings["corpus"]["sources"])
    for text in choices["text"]:
        if text not in known:
            raise make_unknown_name_error(text, known, "text", "configuration key `choices.text`")
    if {"own", source := settings["corpus"]["source"]} <= set(choices["text"]):
        raise InputError(
            f"configuration key `choices.text` names `own` and `{source}`, which are the same windows; remove "
            "one"
        )
    share, searched = min(choices["batch_share"]), measurement["neighbours"]
    if (smallest := share * measurement["batch_vectors"]) <= searched:
        raise InputError(
            f"configuration key `choices.batch_share` has {share:g}, which makes batches of {smallest:.0f} "
            f"vectors, but the neighbour search looks for {searched} others (`measurement.neighbours`); raise it"
        )


def _list_options(listed: Sequence[Any], own: str) -> list[str]:
    written = [option if isinstance(option, str) else f"{option:g}" for option in listed]
    return sorted(dict.fromkeys(written), key=lambda option: option != own)


def _put_own_first(own: str, options: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([own, *options]))


def _is_searched(name: str, measurement: Mapping[str, Any]) -> bool:
    """Return whether the run searches as many neighbours as an estimator asks for."""
    if name not in list_measure_names():
        return True
    measure = find_measure(name)
    needed: Any = measure.neighbours
    if isinstance(needed, str):
        needed = {**measure.parameters, **measurement["parameters"].get(name, {})}[needed]
    return not isinstance(needed, int) or needed <= measurement["neighbours"]


class RunGrid:
    """The claims that a run judges under other specifications, and the checkpoints and measures that they need.

    Raises
    ------
    InputError
        As :class:`SpecificationGrid`, or if `choices.papers` names one that there is not.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.settings = run, SpecificationGrid(run.settings)
        names, papers = [paper.name for paper in run.papers], run.settings["choices"]["papers"]
        for paper in papers or ():
            if paper not in names:
                raise make_unknown_name_error(
                    paper, names, "paper", "configuration key `choices.papers`"
                )
        models = {model.name: model for model in run.list_evidence_models()}
        trainings = {
            name: model
            for name, model in models.items()
            if len(run.resolve_checkpoints(name).checkpoints) > 1
        }
        models_by_checkpoints = {"training": trainings, "last": models}
        grids = [
            self.settings.plan_claim(claim, models_by_checkpoints[claim.checkpoints])
            for paper, claims in run.claims.items()
            if papers is None or paper in papers
            for claim in claims.values()
        ]
        self.claims = {grid.claim.name: grid for grid in grids if grid}
        # The measures and models of all claims together, by the names of tables.
        self.measures = {
            name: m for grid in self.claims.values() for name, m in grid.measures.items()
        }
        self.models = list(
            dict.fromkeys(model for grid in self.claims.values() for model in grid.models)
        )
        self._estimators: dict[str, dict[str, list[str]]] = {}

    def list_estimators(self, model: str) -> dict[str, list[str]]:
        """List the estimators that claims need of each checkpoint of a model, in the order of training."""
        if model not in self._estimators:
            estimators: dict[str, set[str]] = {
                checkpoint.name: set() for checkpoint in self.run.list_checkpoints(model)
            }
            for grid in self.claims.values():
                if model in grid.models:
                    for checkpoint in self._choose_checkpoints(grid.claim, model):
                        estimators[checkpoint.name].update(grid.measures)
            self._estimators[model] = {
                checkpoint: sorted(names) for checkpoint, names in estimators.items() if names
            }
        return self._estimators[model]

    def list_measures(self, model: str, revision: str) -> list[Measure]:
        """List the measures of a checkpoint."""
        return [self.measures[name] for name in self.list_estimators(model)[revision]]

    def make_grid(self, claim: str) -> ClaimGrid:
        """Return the grid of a claim without models and measures, which the job that judges does not read.

        Raises
        ------
        InputError
            If the run has no specifications of the claim.
        """
        if claim not in self.claims:
            raise InputError(
                f"claim `{claim}` has no specification curve in this run: its paper is not in `choices.papers`, it "
                "reads other tables than those of hidden states, or the run has too few models or neighbours for it; "
                f"there are curves of {', '.join(self.claims) or 'no claims'}"
            )
        grid = self.claims[claim]
        return replace(grid, models=(), measures={}, less=self._describe_reduction(grid))

    def _describe_reduction(self, grid: ClaimGrid) -> str:
        """Describe by how much the first specification of a claim is smaller than the claim's page."""
        first = grid.list_specifications()[0]
        shares = {"windows": first["windows_share"], "vectors of a batch": first["batch_share"]}
        less = [
            f"{100 * float(share):g} % of the {rows}"
            for rows, share in shares.items()
            if share != "1"
        ]
        sound = {
            name: [
                c.name
                for c in self.run.list_checkpoints(name)
                if c.name not in self.run.list_bad(name)
            ]
            for name in (grid.models if grid.claim.checkpoints == "training" else ())
        }
        if any(
            len(self._choose_checkpoints(grid.claim, name)) < len(checkpoints)
            for name, checkpoints in sound.items()
        ):
            less.append(
                f"{self.run.settings['choices']['checkpoints']} checkpoints of a model at most"
            )
        return " and ".join(less)

    def _choose_checkpoints(self, claim: Claim, model: str) -> Sequence[Checkpoint]:
        """Choose the checkpoints of a model at which a claim is judged; some, of a long training."""
        if claim.checkpoints == "last":
            return [self.run.find_last_checkpoint(model)]
        bad = self.run.list_bad(model)
        sound = [
            c for c in self.run.list_checkpoints(model) if c.step is not None and c.name not in bad
        ]
        return (
            thin_checkpoints(sound, self.run.settings["choices"]["checkpoints"])
            if len(sound) > 1
            else []
        )
