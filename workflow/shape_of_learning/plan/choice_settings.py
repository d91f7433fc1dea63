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
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.registry import find_measure, measure_names
from shape_of_learning.plan.measures import chosen_measures
from shape_of_learning.plan.refusals import unknown_name
from shape_of_learning.plan.run import Run
from shape_of_learning.plan.steps import Checkpoint

TEXTS = ("own", "resampled")
OTHER_CHOICES = (*ROW_CHOICES, "average_over", "last_layer")
# Columns of the tables of specifications besides.
NUMBERS = ("claim", "rank", "is_reference", "verdict", "estimate", "low", "high", "n", "because")


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
    sources = settings["corpus"]["sources"]
    for text in choices["text"]:
        if text not in TEXTS and text not in sources:
            where = "configuration key `choices.text`"
            raise unknown_name(text, (*TEXTS, *sources), "text", where)
    if {"own", source := settings["corpus"]["source"]} <= set(choices["text"]):
        raise InputError(
            f"configuration key `choices.text` names `own` and `{source}`, which are the same windows of the "
            "run's text; remove one"
        )
    _check_batches(choices["batch_share"], measurement)
    _check_families(choices["estimators"])
    last_layer = settings["forward"]["last_layer"].replace("both", "after_final_norm")
    own = {"text": "own", "windows_share": "1", "batch_share": "1", **measurement}
    return ChoiceSettings(
        rows={name: _options(choices[name], own[name]) for name in ROW_CHOICES},
        average_over=tuple(choices["average_over"]),
        last_layer=_options(choices["last_layer"], last_layer),
        families={
            name: tuple(_variants(entries, measurement, f"choices.estimators.{name}"))
            for name, entries in choices["estimators"].items()
        },
    )


def _check_batches(shares: Sequence[float], measurement: Mapping[str, Any]) -> None:
    size, searched = min(shares) * measurement["batch_vectors"], measurement["neighbours"]
    if size <= searched:
        raise InputError(
            f"configuration key `choices.batch_share` has {min(shares):g}, which makes batches of {size:.0f} "
            f"vectors, but the neighbour search looks for {searched} others (`measurement.neighbours`); "
            "raise it"
        )


def _check_families(families: Mapping[str, Sequence[Any]]) -> None:
    """Refuse names of other choices, and an estimator in two families."""
    owners: dict[str, str] = {}
    for name, entries in families.items():
        key = f"configuration key `choices.estimators.{name}`"
        if name in (*OTHER_CHOICES, *NUMBERS):
            raise InputError(f"{key} has the name of another choice or of a column; rename it")
        for base in {each if isinstance(each, str) else next(iter(each)) for each in entries}:
            if base in owners:
                raise InputError(
                    f"{key} names `{base}`, which is in `{owners[base]}` already; remove one"
                )
            owners[base] = name
    for name in families:
        if owners.get(name, name) != name:
            raise InputError(
                f"configuration key `choices.estimators.{name}` has the name of an estimator of "
                f"`{owners[name]}`; rename it"
            )


def _options(listed: Sequence[Any], own: str) -> tuple[str, ...]:
    written = [each if isinstance(each, str) else f"{each:g}" for each in listed]
    return tuple(sorted(dict.fromkeys(written), key=lambda each: each != own))


def _variants(entries: Sequence[Any], measurement: Mapping[str, Any], key: str) -> list[Variant]:
    """Look up the estimators of a family, each with its own parameters; equal ones once.

    Those that ask for more neighbours than the run searches are left out.
    """
    found: list[Variant] = []
    for entry in entries:
        base, own = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
        parameters = {base: {**measurement["parameters"].get(base, {}), **own}}
        if not _is_searched(base, {**measurement, "parameters": parameters}):
            continue
        try:
            chosen = chosen_measures({**measurement, "parameters": parameters}, [base])[base]
        except InputError as error:
            said = str(error).replace("measurement.parameters", key)
            raise InputError(said.replace("measurement.estimators", key)) from error
        if chosen.family == "weights":
            raise InputError(
                f"configuration key `{key}` names `{base}`, which is measured of a model's own matrices; "
                "remove it"
            )
        of_run = {**find_measure(base).parameters, **measurement["parameters"].get(base, {})}
        words = ", ".join(f"{name}={value}" for name, value in own.items())
        differs = any(of_run.get(name) != value for name, value in own.items())
        named = replace(chosen, name=f"{base}({words})" if differs else base)
        alike = (replace(named, name=each.measure.name) == each.measure for each in found)
        if not any(alike):
            found.append(Variant(base, named))
    return found


def _is_searched(name: str, measurement: Mapping[str, Any]) -> bool:
    """Whether so many neighbours are searched as an estimator asks for; what there is not, others refuse."""
    if name not in measure_names():
        return True
    measure = find_measure(name)
    needed: Any = measure.neighbours
    if isinstance(needed, str):
        needed = measurement["parameters"].get(name, {}).get(needed, measure.parameters[needed])
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
            if claim.reads or not claim.estimators or not named:
                continue
            if not all(_is_searched(each, settings["measurement"]) for each in claim.estimators):
                continue
            measures = chosen_measures(settings["measurement"], claim.estimators, "both")
            if any(measure.family == "weights" for measure in measures.values()):
                continue
            if name in found:
                raise InputError(
                    f"two papers have a claim `{name}`, whose figures would be one file; rename one in its "
                    "claims.yaml"
                )
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
            run.configuration.claims, run.settings, self.settings, models, papers
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
