"""Section ``choices`` of the configuration: which specifications claims are judged under."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shape_of_learning.claims.choices import (
    ROW_CHOICES,
    ChoiceSettings,
    ClaimChoices,
    Variant,
    thinned,
)
from shape_of_learning.claims.claim import Claim
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import WEIGHTS, Measure
from shape_of_learning.metrics.registry import find_measure, measure_names
from shape_of_learning.plan.measures import chosen_measures
from shape_of_learning.plan.refusals import unknown_name
from shape_of_learning.plan.run import Run
from shape_of_learning.plan.steps import Checkpoint

TEXTS = ("own", "resampled")
# Names of other choices, and of columns of the tables of specifications.
TAKEN = (
    *(*ROW_CHOICES, "average_over", "last_layer"),
    *("claim", "rank", "is_reference", "verdict", "estimate", "low", "high", "n", "because"),
)


def read_choice_settings(settings: Mapping[str, Any]) -> ChoiceSettings:
    """Read the section.

    Parameters
    ----------
    settings : mapping
        The configuration, which the schema allows.

    Returns
    -------
    ChoiceSettings
        The run's own option of each choice is the first, where it is listed.

    Raises
    ------
    InputError
        One sentence that names the key: a text, an estimator or a parameter that there is not, or one text
        under two names.
    """
    choices, measurement = settings["choices"], settings["measurement"]
    texts = (*TEXTS, *settings["corpus"]["sources"])
    for text in choices["text"]:
        if text not in texts:
            raise unknown_name(text, texts, "text", "configuration key `choices.text`")
    if {"own", source := settings["corpus"]["source"]} <= set(choices["text"]):
        raise InputError(
            f"configuration key `choices.text` names `own` and `{source}`, which are the same windows; remove "
            "one"
        )
    smallest = min(choices["batch_share"]) * measurement["batch_vectors"]
    if smallest <= measurement["neighbours"]:
        raise InputError(
            f"configuration key `choices.batch_share` has {min(choices['batch_share']):g}, which makes batches "
            f"of {smallest:.0f} vectors, but the neighbour search looks for {measurement['neighbours']} others "
            "(`measurement.neighbours`); raise it"
        )
    last_layer = settings["forward"]["last_layer"].replace("both", "after_final_norm")
    own = {"text": "own", "windows_share": "1", "batch_share": "1", **measurement}
    families = {n: _variants(n, listed, measurement) for n, listed in choices["estimators"].items()}
    _check_families(families)
    return ChoiceSettings(
        rows={name: _options(choices[name], own[name]) for name in ROW_CHOICES},
        average_over=tuple(choices["average_over"]),
        last_layer=_options(choices["last_layer"], last_layer),
        families=families,
    )


def _options(listed: Sequence[Any], own: str) -> tuple[str, ...]:
    written = [each if isinstance(each, str) else f"{each:g}" for each in listed]
    return tuple(sorted(dict.fromkeys(written), key=lambda each: each != own))


def _check_families(families: Mapping[str, Sequence[Variant]]) -> None:
    """Refuse names of other choices, and an estimator in two families."""
    owners: dict[str, str] = {}
    for name, variants in families.items():
        key = f"configuration key `choices.estimators.{name}`"
        if name in TAKEN:
            raise InputError(f"{key} has the name of another choice or of a column; rename it")
        for base in {each.base for each in variants}:
            if base in owners:
                raise InputError(f"{key} names `{base}`, which is in `{owners[base]}`; remove one")
            owners[base] = name


def _variants(
    family: str, entries: Sequence[Any], measurement: Mapping[str, Any]
) -> tuple[Variant, ...]:
    """Look up the estimators of a family, each with its own parameters; equal ones once.

    Those that ask for more neighbours than the run searches are left out.
    """
    found: dict[str, Variant] = {}
    for entry in entries:
        base, own = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
        of_run = measurement["parameters"].get(base, {})
        given = {**measurement, "parameters": {base: {**of_run, **own}}}
        if not _is_searched(base, given):
            continue
        try:
            chosen = chosen_measures(given, [base])[base]
        except InputError as error:
            raise InputError(f"configuration key `choices.estimators.{family}`: {error}") from None
        defaults = {**find_measure(base).parameters, **of_run}
        words = ", ".join(f"{name}={value}" for name, value in own.items())
        differs = any(defaults[name] != value for name, value in own.items())
        name = f"{base}({words})" if differs else base
        if all(
            each.measure.arguments != chosen.arguments
            for each in found.values()
            if each.base == base
        ):
            found[name] = Variant(base, replace(chosen, name=name))
    return tuple(found.values())


def _is_searched(name: str, measurement: Mapping[str, Any]) -> bool:
    """Whether so many neighbours are searched as an estimator asks for; what there is not, others refuse."""
    if name not in measure_names():
        return True
    measure = find_measure(name)
    needed: Any = measure.neighbours
    if isinstance(needed, str):
        needed = {**measure.parameters, **measurement["parameters"].get(name, {})}[needed]
    return not isinstance(needed, int) or needed <= measurement["neighbours"]


def claims_with_choices(
    claims: Mapping[str, Mapping[str, Claim]],
    settings: Mapping[str, Any],
    choices: ChoiceSettings,
    models: Mapping[str, Mapping[str, Any]],
    papers: Collection[str],
) -> tuple[dict[str, tuple[ClaimChoices, list[str]]], dict[str, dict[str, Measure]]]:
    """List the claims that are judged under other specifications.

    Parameters
    ----------
    claims : mapping
        Those of each paper of the run.
    settings : mapping
        The configuration.
    choices : ChoiceSettings
    models : mapping of str to mapping
        Of each model of the run what :class:`.EvidenceModel` holds.
    papers : collection of str
        Names of all that there are.

    Returns
    -------
    dict of str to (ClaimChoices, list of str)
        By the claims' names, with the models that are measured for each: claims on hidden states alone, for
        which the run has as many models as they need and searches as many neighbours, of the papers that
        ``choices.papers`` names.
    dict of str to dict of str to Measure
        Of each of these claims what is measured.

    Raises
    ------
    InputError
        If two papers have a claim of one name, or `choices.papers` names one that there is not.
    """
    wanted = settings["choices"]["papers"]
    for paper in wanted or ():
        if paper not in papers:
            raise unknown_name(paper, papers, "paper", "configuration key `choices.papers`")
    found: dict[str, tuple[ClaimChoices, list[str]]] = {}
    variants = {}
    for paper in (each for each in claims if wanted is None or each in wanted):
        for name, claim in claims[paper].items():
            named = _models_of(claim, models)
            is_of_states = claim.estimators and not claim.reads
            searched = all(_is_searched(e, settings["measurement"]) for e in claim.estimators)
            if not (named and is_of_states and searched):
                continue
            measures = chosen_measures(settings["measurement"], claim.estimators, "both")
            if any(measure.family == WEIGHTS for measure in measures.values()):
                continue
            of = choices.of_claim(claim, measures)
            found[name] = of, named
            variants[name] = choices.variants(of, measures)
    return found, variants


class RunChoices:
    """What a run judges under other specifications, and what that takes of which checkpoints."""

    def __init__(self, run: Run) -> None:
        self.run, self.settings = run, read_choice_settings(run.settings)
        models = {each["name"]: each for each in run.evidence_models()}
        papers = [paper.name for paper in run.papers]
        self.claims, self._variants = claims_with_choices(
            run.claims, run.settings, self.settings, models, papers
        )
        # All that is measured for any of them, by the names of tables.
        self.measures = {n: measure for of in self._variants.values() for n, measure in of.items()}
        self.models = list(dict.fromkeys(m for _, models in self.claims.values() for m in models))
        self.figures = {
            f"specification_{name}": f"Specification: {name.replace('_', ' ')}"
            for name in self.claims
        }
        self._wanted: dict[str, dict[str, list[str]]] = {}

    def wanted_of(self, model: str) -> dict[str, list[str]]:
        """Estimators that claims ask of each checkpoint of a model, in the order of training."""
        if model not in self._wanted:
            wanted: dict[str, set[str]] = {}
            for of, models in self.claims.values():
                for each in self._checkpoints(of.claim, model) if model in models else ():
                    wanted.setdefault(each.name, set()).update(self._variants[of.claim.name])
            order = [each.name for each in self.run.checkpoints(model) if each.name in wanted]
            self._wanted[model] = {name: sorted(wanted[name]) for name in order}
        return self._wanted[model]

    def measures_at(self, model: str, revision: str) -> list[Measure]:
        """All that a checkpoint is measured with."""
        return [self.measures[name] for name in self.wanted_of(model)[revision]]

    def _checkpoints(self, claim: Claim, model: str) -> Sequence[Checkpoint]:
        """At which checkpoints of a model a claim is judged, of a long training at some."""
        if claim.checkpoints == "last":
            return [self.run.last_checkpoint(model)]
        bad = self.run.bad(model)
        sound = [c for c in self.run.checkpoints(model) if c.step is not None and c.name not in bad]
        return thinned(sound, self.run.settings["choices"]["checkpoints"]) if len(sound) > 1 else []

    def protocol(self) -> dict[str, Any]:
        """What the captions of curves say of the sample."""
        settings = self.run.settings
        return {
            **settings["sampling"],
            "source": settings["corpus"]["source"],
            "batch_vectors": settings["measurement"]["batch_vectors"],
            "checkpoints": settings["choices"]["checkpoints"],
        }


def _models_of(claim: Claim, models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The models of the run that a claim is on, and originals of twins; none if they are too few."""
    if isinstance(claim.models, str):
        named = [name for name, of in models.items() if claim.is_on(of["kind"], of["role"])]
    else:
        named = [name for name in claim.models if name in models]
    if len(named) < claim.needed:
        return []
    originals = [models[name]["origin"] for name in named if models[name]["kind"] == "twin"]
    return list(dict.fromkeys([*named, *(name for name in originals if name in models)]))
