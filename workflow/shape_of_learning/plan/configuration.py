"""The configuration, parsed once at the door into what the rules ask for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shape_of_learning.claims.claim import Claim
from shape_of_learning.errors import InputError
from shape_of_learning.files import read_yaml
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.registry import measure_names
from shape_of_learning.plan.claim_list import CLAIMS, check_claims
from shape_of_learning.plan.measures import chosen_measures
from shape_of_learning.plan.model import Model
from shape_of_learning.plan.models import Entries, origins_of, read_entries, read_models
from shape_of_learning.plan.paper_models import (
    check_estimators,
    check_targets,
    chosen_papers,
    models_of_targets,
    with_chosen_measures,
)
from shape_of_learning.plan.papers import Paper, figures_of, tables_of
from shape_of_learning.plan.refusals import unknown_name, validated
from shape_of_learning.plan.settings import Settings
from shape_of_learning.plan.texts import Task


@dataclass(frozen=True)
class Configuration:
    """A validated configuration.

    Attributes
    ----------
    models : dict of str to Model
        The models of this run, without those that were left out.
    origins : dict of str to Model
        Models from which these are trained further, measured themselves or not.
    estimators : tuple of str
        Those of ``measurements.csv``.
    measures : dict of str to Measure
        These, and what figures draw besides, with their settings.
    figures, tables : dict of str to tuple of str
        The models that each figure or table of a paper shows; one without any is absent.
    claims : dict of str to Mapping of str to Claim
        Those of each paper of the run that has any.
    notices : tuple of str
        What is left out and why, one sentence each.
    settings : mapping
        The sections, as plain values.
    """

    models: dict[str, Model]
    origins: dict[str, Model]
    estimators: tuple[str, ...]
    measures: dict[str, Measure]
    figures: dict[str, tuple[str, ...]]
    tables: dict[str, tuple[str, ...]]
    claims: dict[str, Mapping[str, Claim]]
    notices: tuple[str, ...]
    settings: Mapping[str, Any]


def with_defaults(given: Mapping[str, Any], defaults: Path) -> dict[str, Any]:
    """Complete what the user says by a file with all keys: sections key by key; lists are replaced."""
    return _merged(read_yaml(defaults), given)


def _merged(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(defaults[key], value)
        for key, value in given.items()
        if isinstance(value, Mapping) and isinstance(defaults.get(key), Mapping)
    }
    return {**defaults, **given, **both}


def read_configuration(
    settings: Mapping[str, Any],
    *model_folders: Path,
    papers: Sequence[Paper],
    has_hub_token: bool,
    is_closed: Callable[[Model], bool] = lambda model: False,
) -> Configuration:
    """Validate the settings and the model entries that they name.

    Parameters
    ----------
    settings : mapping
        The merged configuration files and command line.
    *model_folders : Path
        Folders of the model list. Of two entries of one name that of the later folder is taken.
    papers : sequence of Paper
        All that there are: their figures and tables are keys of ``figures``.
    has_hub_token : bool
        Whether gated repositories can be asked for at all.
    is_closed : callable
        Whether the Hub refuses a gated model to that token. By default it is not asked.

    Raises
    ------
    InputError
        One sentence that names the key.
    """
    typed = validated(Settings, settings, "configuration")
    settings = typed.model_dump(exclude_unset=True)
    corpus, measurement = settings["corpus"], settings["measurement"]
    if corpus["source"] not in corpus["sources"]:
        raise unknown_name(corpus["source"], corpus["sources"], "source", "key `corpus.source`")
    entries: Entries = {}
    for folder in model_folders:
        entries |= read_entries(folder)
    drawn = with_chosen_measures(figures_of(papers), settings)
    written = tables_of(papers)
    check_estimators(drawn, measure_names())
    for paper in papers:
        check_claims(paper.claims, paper.folder / CLAIMS, measure_names(), entries)
    check_targets(typed.figures.targets, (*drawn, *written), entries)
    chosen = chosen_papers(settings["papers"], settings["figures"], papers)
    drawn = {name: drawn[name] for name in figures_of(chosen)}
    written = tables_of(chosen)
    entries = _with_recipe(entries, settings["pretraining"])
    entries = _with_steps(entries, settings["training_steps"])
    models = read_models(entries, settings["models"])
    apart = measurement["for_figures_only"]
    for name in apart:
        if name not in entries:
            where = "configuration key `measurement.for_figures_only`"
            raise unknown_name(name, entries, "model", where)
    for each in [*models.values(), *origins_of(models.values()).values()]:
        _check_task(each, typed.tasks)
    notices: list[str] = []
    for model in list(models.values()):
        needed = [model, *origins_of([model]).values()]
        if coded := [each.name for each in needed if each.needs_code]:
            whose = "its" if coded[0] == model.name else f"it rests on `{coded[0]}`, whose"
            reason = f"{whose} architecture is code from the Hub, which is never run"
            notices.append(f"model `{model.name}` is left out: {reason}")
            del models[model.name]
            continue
        shut = [m for m in needed if m.gated and (not has_hub_token or is_closed(m))]
        if shut:
            token = "the Hub refuses it to the Hugging Face token"
            lacking = token if has_hub_token else "no Hugging Face token is set"
            rests = "" if shut[0] is model else f" rests on `{shut[0].name}`, which"
            reason = f"model `{model.name}`{rests} is gated and {lacking}"
            remedy = "accept its licence on the Hub and set HF_TOKEN to a token of that account"
            if settings["gated_models"] == "fail":
                raise InputError(f"{reason}; {remedy}, or remove it from key `models`")
            notices.append(f"{reason}: it is left out; {remedy} to include it")
            del models[model.name]
    if not models:
        raise InputError(
            f"configuration key `models` names only models that are left out: {'; '.join(notices)}"
        )
    figures = models_of_targets(settings["figures"], drawn, models, apart, notices)
    tables = models_of_targets(settings["figures"], written, models, apart, notices)
    estimators = tuple(measurement["estimators"])
    drawn_by = {name: figure for figure in figures for name in drawn[figure].estimators}
    drawn_by = {name: figure for name, figure in drawn_by.items() if name not in estimators}
    return Configuration(
        models=models,
        origins=origins_of(models.values()),
        estimators=estimators,
        measures=chosen_measures(
            measurement, [*estimators, *drawn_by], settings["forward"]["last_layer"], drawn_by
        ),
        figures=figures,
        tables=tables,
        claims={paper.name: paper.claims for paper in chosen if paper.claims},
        notices=tuple(notices),
        settings=settings,
    )


def _check_task(model: Model, tasks: Mapping[str, Task]) -> None:
    """Refuse a fine-tuning on an unknown task, or of pairs that its tokenizer cannot tell apart."""
    if model.origin is None:
        return
    name, where = model.recipe["task"], f"model `{model.name}`: `finetuning.task`"
    if name not in tasks:
        raise unknown_name(name, tasks, "task", where)
    if tasks[name].has_pairs and not model.separates_texts:
        raise InputError(
            f"{where} is `{name}`, which has pairs of texts, but the tokenizer of the decoder "
            f"`{model.origin.name}` has no separator; name a task of single texts or an encoder"
        )


def _with_recipe(entries: Entries, recipe: Mapping[str, Any]) -> Entries:
    """Let the configuration choose parts of the recipe of all that is pretrained."""
    size = {name: recipe[name] for name in ("layers", "hidden_size") if name in recipe}
    rest = {name: value for name, value in recipe.items() if name not in size}
    changed = dict(entries)
    for name, (file, entry) in entries.items() if recipe else ():
        if isinstance(entry, dict) and isinstance(entry.get("pretraining"), dict):
            own = {k: value for k, value in entry.items() if k != "table_1"}  # of another recipe
            where = f"{file} with configuration key `pretraining`"
            changed[name] = (
                where,
                {
                    **own,
                    **size,
                    "pretraining": {**entry["pretraining"], **rest},
                },
            )
    return changed


def _with_steps(entries: Entries, training_steps: Mapping[str, Any]) -> Entries:
    """Let the configuration choose the training steps of some models."""
    changed = dict(entries)
    for name, steps in training_steps.items():
        if name not in entries:
            raise unknown_name(name, entries, "model", "configuration key `training_steps`")
        file, entry = entries[name]
        entry = entry if isinstance(entry, dict) else {}
        trained = "finetuning" in entry or "pretraining" in entry
        training = entry.get("training", {"steps": "all"} if trained else None)
        if not isinstance(training, dict) or "steps" not in training:
            raise InputError(
                f"configuration key `training_steps.{name}`: the entry in {file} has no "
                "`training.steps` in the place of which others could be chosen; remove the key"
            )
        changed[name] = file, {**entry, "training": {**training, "steps": steps}}
    return changed
