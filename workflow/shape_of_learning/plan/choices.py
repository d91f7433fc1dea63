"""Plan the specifications under which claims are judged, from section ``choices`` of the configuration."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from shape_of_learning.checkpoints.lock import Checkpoint
from shape_of_learning.claims.claim import (
    Claim,
    ClaimGrid,
    EvidenceModel,
    format_choice,
    format_option,
)
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
from shape_of_learning.plan.settings import RUN_TEXTS, Measurement, Settings, choose_measures
from shape_of_learning.validation import make_unknown_name_error

# The choices that are not estimators.
CHOICE_NAMES = (*ROW_CHOICES, "average_over", "last_layer")
# These choices, and columns of the tables of specifications.
RESERVED_NAMES = (
    *CHOICE_NAMES,
    "claim",
    "rank",
    "is_reference",
    "verdict",
    "estimate",
    "low",
    "high",
    "n",
    "because",
)


class SpecificationGrid:
    """The checked options of section ``choices``.

    Parameters
    ----------
    settings : Settings

    Attributes
    ----------
    rows, last_layer : mapping of str to sequence of str, sequence of str
        Options of each choice of :class:`.SampleVariant`, and of the last layer. If the run's own option is listed, it
        comes first.
    families : dict of str to dict of str to str
        Name of a choice -> its estimators, which can replace one another -> the name of each in the registry.
        An estimator with parameters of its own has them in its name.
    variants : dict of str to Measure
        The measures of all these estimators, by the same names.

    Raises
    ------
    InputError
        If a text, an estimator or a parameter is unknown, if a text has two names, if a name is taken or repeated, or
        if a batch would be too small. The sentence names the key.
    """

    def __init__(self, settings: Settings) -> None:
        self._choices, self._measurement = settings.choices, settings.measurement
        _check_samples(settings)
        run_options = {"text": "own", "windows_share": "1", "batch_share": "1"}
        run_options |= dict(self._measurement)
        self.rows = {
            name: _list_options(getattr(self._choices, name), run_options[name])
            for name in ROW_CHOICES
        }
        self.run_options = {name: str(run_options[name]) for name in ROW_CHOICES}
        last_layer = settings.forward.last_layer.replace("both", AFTER)
        self.last_layer = _list_options(self._choices.last_layer, last_layer)
        self.variants: dict[str, Measure] = {}
        self.families: dict[str, dict[str, str]] = {}
        for family, entries in self._choices.estimators.items():
            key = f"configuration key `choices.estimators.{family}`"
            if family in RESERVED_NAMES:
                raise InputError(f"{key} has the name of another choice or of a column; rename it")
            self.families[family] = self._find_family(key, entries)

    def _find_family(self, key: str, entries: Sequence[Any]) -> dict[str, str]:
        """Look up the estimators of a family, each with its own parameters; list equal estimators once.

        Estimators that need more neighbours than the run searches are left out.
        """
        families = {
            base: family for family, names in self.families.items() for base in names.values()
        }
        bases: dict[str, str] = {}
        for entry in entries:
            base, parameters = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
            run_parameters = self._measurement.parameters.get(base, {})
            measurement = self._measurement.model_copy(
                update={"parameters": {base: {**run_parameters, **parameters}}}
            )
            if not _has_enough_neighbours(base, measurement):
                continue
            try:
                measure = choose_measures(measurement, [base])[base]
            except InputError as error:
                raise InputError(f"{key}: {error}") from None
            if base in families:
                raise InputError(
                    f"{key} names `{base}`, which `{families[base]}` names, too; remove one"
                )
            defaults = {**find_measure(base).parameters, **run_parameters}
            words = ", ".join(f"{name}={value}" for name, value in parameters.items())
            is_default = all(defaults[name] == value for name, value in parameters.items())
            is_new = all(
                self.variants[name].arguments != measure.arguments
                for name, other_base in bases.items()
                if other_base == base
            )
            if is_new:
                name = base if is_default else f"{base}({words})"
                bases[name] = base
                self.variants[name] = replace(measure, name=name)
        return bases

    def list_sample_variants(self) -> list[SampleVariant]:
        """List all combinations of the choices of rows."""
        return [SampleVariant(*options) for options in product(*self.rows.values())]

    def make_claim_grid(self, claim: Claim, measures: Mapping[str, Measure]) -> ClaimGrid:
        """Choose the options that can change a claim on some measures.

        A choice that cannot change the claim keeps its first option. This is so for rows if every measure decides that
        choice itself, for the size of batches if every measure takes all vectors together, for neighbours in the same
        window if no measure searches neighbours, and for layer 0 if the claim or every measure is of blocks. An
        estimator can be replaced by the others of its family. If the claim names several estimators of a family, only
        the parameters of each are a choice.
        """
        fixed_choices = find_fixed_choices(measures.values())
        if claim.of_blocks or all(measure.first_layer == 1 for measure in measures.values()):
            fixed_choices.add("average_over")
        choices, decided_by = dict(self.rows), {}
        for family, variants in self.families.items():
            family_estimators = [name for name in measures if name in variants.values()]
            for name in family_estimators:
                is_alone = len(family_estimators) == 1
                decided_by[name] = family if is_alone else name
                options = [option for option, base in variants.items() if is_alone or base == name]
                choices[decided_by[name]] = _put_first(name, options)
        choices["average_over"] = _put_first(claim.average_over, self._choices.average_over)
        choices["last_layer"] = self.last_layer
        for name in fixed_choices & choices.keys():
            choices[name] = choices[name][:1]
        return ClaimGrid(claim, choices, decided_by)

    def plan_claim(self, claim: Claim, run: Mapping[str, EvidenceModel]) -> ClaimGrid | None:
        """Plan a claim.

        None if the run has too few models or neighbours, or if the claim reads more than measures of hidden states.
        """
        claim = claim.restrict_to_run(run)
        models = claim.list_models(run)
        originals = [run[name].origin for name in models if run[name].kind == "twin"]
        if not models or claim.count_models(models, run) < claim.needed_models:
            return None
        if not claim.estimators or claim.reads:
            return None
        if not all(_has_enough_neighbours(name, self._measurement) for name in claim.estimators):
            return None
        measures = choose_measures(self._measurement, claim.estimators, "both")
        if any(measure.family == WEIGHTS for measure in measures.values()):
            return None
        grid = self.make_claim_grid(claim, measures)
        options = {option for name in grid.decided_by.values() for option in grid.choices[name]}
        measures |= {name: m for name, m in self.variants.items() if name in options}
        grid_models = dict.fromkeys([*models, *(name for name in originals if name in run)])
        return replace(grid, models=list(grid_models), measures=measures)


def _check_samples(settings: Settings) -> None:
    choices, measurement = settings.choices, settings.measurement
    text_names = (*RUN_TEXTS, *settings.corpus.sources)
    for text in choices.text:
        if text not in text_names:
            raise make_unknown_name_error(
                text, text_names, "text", "configuration key `choices.text`"
            )
    source = settings.corpus.source
    if source not in RUN_TEXTS and {"own", source} <= set(choices.text):
        raise InputError(
            f"configuration key `choices.text` names `own` and `{source}`, which are the same windows; remove one"
        )
    share, neighbours = min(choices.batch_share), measurement.neighbours
    if (smallest := share * measurement.batch_vectors) <= neighbours:
        raise InputError(
            f"configuration key `choices.batch_share` has {share:g}, which makes batches of {smallest:.0f} "
            f"vectors, but the neighbour search looks for {neighbours} others (`measurement.neighbours`); raise it"
        )


def find_fixed_choices(measures: Collection[Measure]) -> set[str]:
    """Find the choices of rows, batches and neighbours that change none of these measures."""
    fixed_choices = {
        name for name in CHOICE_NAMES if all(name in measure.rows for measure in measures)
    }
    if all(measure.family in WHOLE for measure in measures):
        fixed_choices.add("batch_share")
    if not any(measure.family == "dimension" for measure in measures):
        fixed_choices.add("same_window")
    return fixed_choices


def _list_options(options: Sequence[Any], run_option: str) -> list[str]:
    names = [option if isinstance(option, str) else f"{option:g}" for option in options]
    return sorted(dict.fromkeys(names), key=lambda option: option != run_option)


def _put_first(first: str, options: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([first, *options]))


def _has_enough_neighbours(name: str, measurement: Measurement) -> bool:
    """Return whether the run searches as many neighbours as an estimator needs."""
    if name not in list_measure_names():
        return True
    measure = find_measure(name)
    neighbours: Any = measure.neighbours
    if isinstance(neighbours, str):
        neighbours = {**measure.parameters, **measurement.parameters.get(name, {})}[neighbours]
    return not isinstance(neighbours, int) or neighbours <= measurement.neighbours


class RunGrid:
    """The claims that a run judges under other specifications, with the checkpoints and measures that they need.

    Raises
    ------
    InputError
        As :class:`SpecificationGrid`, or if `choices.papers` names an unknown paper.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.grid = run, SpecificationGrid(run.settings)
        names, papers = [paper.name for paper in run.papers], run.settings.choices.papers
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
            self.grid.plan_claim(claim, models_by_checkpoints[claim.checkpoints])
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
        """List the estimators that claims need at each checkpoint of a model, in the order of training."""
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
        """List the measures of a checkpoint; InputError if no claim needs the checkpoint."""
        estimators = self.list_estimators(model)
        if revision not in estimators:
            raise InputError(
                f"model `{model}`: no claim of this run is judged under choices at `{revision}`; checkpoints with "
                f"choices: {', '.join(estimators) or 'none'}"
            )
        return [self.measures[name] for name in estimators[revision]]

    def make_grid(self, claim: str) -> ClaimGrid:
        """Return the grid of a claim, without the models and measures, which the judging job does not read.

        Raises
        ------
        InputError
            If the run has no specifications of the claim.
        """
        if claim not in self.claims:
            raise InputError(
                f"claim `{claim}` has no specification curve in this run: its paper is not in `choices.papers`, the "
                "claim needs more than tables of hidden states, or the run has too few models or neighbours; "
                f"claims with a curve: {', '.join(self.claims) or 'none'}"
            )
        grid = self.claims[claim]
        return replace(grid, models=(), measures={}, less=self._describe_reduction(grid))

    def _describe_reduction(self, grid: ClaimGrid) -> str:
        """Describe what the first specification of a claim lacks of the page: data, or the run's own options."""
        first = grid.list_specifications()[0]
        shares = {"windows": first["windows_share"], "vectors of a batch": first["batch_share"]}
        reductions = [
            f"{100 * float(share):g} % of the {rows}"
            for rows, share in shares.items()
            if share != "1"
        ]
        good_checkpoints = {
            name: self.run.list_good_checkpoints(name)
            for name in (grid.models if grid.claim.checkpoints == "training" else ())
        }
        if any(
            len(self._choose_checkpoints(grid.claim, name)) < len(checkpoints)
            for name, checkpoints in good_checkpoints.items()
        ):
            reductions.append(
                f"{self.run.settings.choices.checkpoints} checkpoints of a model at most"
            )
        options = self.grid.run_options
        decisive_names = options.keys() - {"windows_share", "batch_share"}
        decisive_names -= find_fixed_choices(grid.measures.values())
        for name in options:
            if name in decisive_names and first[name] != options[name]:
                reductions.append(f"{format_choice(name)}: {format_option(name, first[name])}")
        return " and ".join(reductions)

    def _choose_checkpoints(self, claim: Claim, model: str) -> Sequence[Checkpoint]:
        """Choose the checkpoints of a model at which a claim is judged: all, or some of a long training."""
        if claim.checkpoints == "last":
            return [self.run.find_last_checkpoint(model)]
        good_checkpoints = [
            checkpoint
            for checkpoint in self.run.list_good_checkpoints(model)
            if checkpoint.step is not None
        ]
        return (
            thin_checkpoints(good_checkpoints, self.run.settings.choices.checkpoints)
            if len(good_checkpoints) > 1
            else []
        )
