"""The configuration, parsed once at the door into a :class:`.Run`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.files import read_yaml
from shape_of_learning.metrics.registry import measure_names
from shape_of_learning.plan.entry_files import Entries, expand_seeds, read_entries
from shape_of_learning.plan.measures import choose_measures
from shape_of_learning.plan.models import Model, find_origins, read_models
from shape_of_learning.plan.paper_models import (
    Notice,
    check_targets,
    choose_figure_measures,
    choose_papers,
    choose_target_models,
)
from shape_of_learning.plan.papers import Paper, check_names, collect_figures, collect_tables
from shape_of_learning.plan.run import Run
from shape_of_learning.plan.settings import Settings
from shape_of_learning.plan.texts import TaskEntry
from shape_of_learning.validation import make_unknown_name_error, validate_yaml


def add_defaults(given: Mapping[str, Any], defaults: Path) -> dict[str, Any]:
    """Complete what the user says by a file with all keys: sections key by key; lists are replaced."""
    return merge_settings(read_yaml(defaults), given)


def merge_settings(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Lay what is given over defaults, key by key."""
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
    is_closed: Callable[[Model], bool] = lambda model: False,
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
        Shows a line on the terminal: what is left out and why, and how planning goes on.
    is_closed : callable
        Whether the Hub does not show a gated model to us. By default it is not asked.

    Raises
    ------
    InputError
        One sentence that names the key.
    """
    entries: Entries = {}
    for folder in model_folders:
        entries |= read_entries(folder)
    entries, settings = expand_seeds(entries, settings)
    typed = validate_yaml(Settings, settings, "configuration")
    settings = typed.model_dump(exclude_unset=True)
    source, sources = settings["corpus"]["source"], settings["corpus"]["sources"]
    if source not in sources:
        raise make_unknown_name_error(source, sources, "source", "key `corpus.source`")
    for paper in papers:
        check_names(paper, measure_names(), entries)
    figures = choose_figure_measures(collect_figures(papers), settings["measurement"]["estimators"])
    tables = collect_tables(papers)
    targets = {**figures, **tables}
    check_targets(typed.figures.targets, targets, entries)
    chosen = choose_papers(settings["papers"], settings["figures"], papers)
    entries = _set_steps(entries, settings["training_steps"])
    models = read_models(entries, settings["models"])
    for each in [*models.values(), *find_origins(models.values()).values()]:
        _check_task(each, typed.tasks)
    reasons = {
        name: why for name, each in models.items() if (why := _explain_absence(each, is_closed))
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
        claims={paper.name: paper.claims for paper in chosen if paper.claims},
        notices=notices,
        locks=locks,
        say=say,
    )
    for each in run.models.values():  # of which the run may have found the roles
        _check_task(each, typed.tasks)
    for words in _group_notices(notices):  # when nothing can be refused any more
        say(f"NOTE: {words}")
    return run


def _group_notices(notices: Sequence[Notice]) -> list[str]:
    """Say the notices that a user has not chosen, those on figures that are left out in one sentence."""
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


def _explain_absence(model: Model, is_closed: Callable[[Model], bool]) -> str:
    """Why a model cannot be had, or one that it is trained from; nothing if it can."""
    for each in (model, *find_origins([model]).values()):
        if each.gated and is_closed(each):
            rests = "" if each is model else f" rests on `{each.name}`, which"
            return (
                f"model `{model.name}`{rests} is gated, and left out: accept its licence on the Hub and set "
                "HF_TOKEN to a token of that account"
            )
    return ""


def _check_task(model: Model, tasks: Mapping[str, TaskEntry]) -> None:
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


def _set_steps(entries: Entries, training_steps: Mapping[str, Any]) -> Entries:
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
                "`training.steps` in the place of which others could be chosen; remove the key"
            )
        changed[name] = file, {**entry, "training": {**training, "steps": steps}}
    return changed
