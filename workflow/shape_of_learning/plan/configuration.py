"""The configuration, parsed once at the door into what the rules ask for."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.registry import ChosenMeasure
from shape_of_learning.plan.measures import chosen_measures
from shape_of_learning.plan.model_list import Entries, Model, read_entries, read_models
from shape_of_learning.plan.schema import unknown_name, validate

INTRINSIC_DIMENSION = ("two_nn", "mada", "mom")
ANISOTROPY_MEASURES = (
    "anisotropy",
    "anisotropy_uncentered",
    "average_cosine",
    "average_cosine_centered",
)


@dataclass(frozen=True)
class FigureSpecification:
    """What one figure draws: estimators (none: just the loss), and which checkpoints of which models."""

    estimators: tuple[str, ...]
    needs_training_steps: bool


FIGURES: dict[str, FigureSpecification] = {
    "figure_1": FigureSpecification(("anisotropy",), False),
    "figure_2": FigureSpecification(("anisotropy",), True),
    "figure_3": FigureSpecification(("anisotropy",), True),
    "figure_4": FigureSpecification(("two_nn",), True),
    "figure_5": FigureSpecification(INTRINSIC_DIMENSION, True),
    "anisotropy_measures": FigureSpecification(ANISOTROPY_MEASURES, False),
    "loss_by_step": FigureSpecification((), True),
}


@dataclass(frozen=True)
class Configuration:
    """A validated configuration.

    Attributes
    ----------
    models : dict of str to Model
        The models of this run, without those that were left out.
    estimators : tuple of str
        Those of ``measurements.csv``.
    measures : dict of str to ChosenMeasure
        These, and what figures draw besides, with their settings.
    figures : dict of str to tuple of str
        The models that each figure draws; a figure without any is absent.
    table_1 : tuple of str
        The models of Table 1.
    notices : tuple of str
        What is left out and why, one sentence each.
    settings : mapping
        The sections as they were written.
    """

    models: dict[str, Model]
    estimators: tuple[str, ...]
    measures: dict[str, ChosenMeasure]
    figures: dict[str, tuple[str, ...]]
    table_1: tuple[str, ...]
    notices: tuple[str, ...]
    settings: Mapping[str, Any]


def read_configuration(
    settings: Mapping[str, Any], *model_folders: Path, has_hub_token: bool
) -> Configuration:
    """Validate the settings and the model entries that they name.

    Parameters
    ----------
    settings : mapping
        The merged configuration files and command line.
    *model_folders : Path
        Folders of the model list. Of two entries of one name that of the later folder is taken.
    has_hub_token : bool
        Whether gated repositories can be asked for at all.

    Raises
    ------
    InputError
        One sentence that names the key.
    """
    validate(settings, "config", "configuration")
    corpus, measurement = settings["corpus"], settings["measurement"]
    if corpus["source"] not in corpus["sources"]:
        raise unknown_name(corpus["source"], corpus["sources"], "source", "key `corpus.source`")
    if settings["embeddings"]["keep"] and not settings["embeddings"]["dump"]:
        raise InputError(
            "configuration key `embeddings.keep` is true, but with `embeddings.dump: false` nothing "
            "is written that could be kept; set one of them"
        )
    entries: Entries = {}
    for folder in model_folders:
        entries |= read_entries(folder)
    for figure, listed in settings["figures"].items():
        for name in listed if isinstance(listed, list) else ():
            if name not in entries:
                raise unknown_name(name, entries, "model", f"configuration key `figures.{figure}`")
    entries = _with_steps(entries, settings["training_steps"])
    models = read_models(entries, settings["models"])
    notices = []
    for model in list(models.values()):
        if model.gated and not has_hub_token:
            reason = f"model `{model.name}` is gated and no Hugging Face token is set"
            remedy = "accept its licence on the Hub and set HF_TOKEN"
            if settings["gated_models"] == "fail":
                raise InputError(f"{reason}; {remedy}, or remove it from key `models`")
            notices.append(f"{reason}: it is left out; {remedy} to include it")
            del models[model.name]
    if not models:
        raise InputError("configuration key `models` names gated models only; set HF_TOKEN")
    figures, table_1 = _figures(settings["figures"], models, notices)
    estimators = tuple(measurement["estimators"])
    drawn = (name for figure in figures for name in FIGURES[figure].estimators)
    return Configuration(
        models,
        estimators,
        chosen_measures(measurement, dict.fromkeys([*estimators, *drawn])),
        figures,
        table_1,
        tuple(notices),
        settings,
    )


def _with_steps(entries: Entries, training_steps: Mapping[str, Any]) -> Entries:
    """Let the configuration choose the training steps of some models."""
    changed = dict(entries)
    for name, steps in training_steps.items():
        if name not in entries:
            raise unknown_name(name, entries, "model", "configuration key `training_steps`")
        file, entry = entries[name]
        if "revision" not in entry.get("training", {}):
            raise InputError(
                f"configuration key `training_steps.{name}`: the entry in {file} has no "
                "`training.revision` from which the names of other steps could be made; remove the key"
            )
        changed[name] = file, {**entry, "training": {**entry["training"], "steps": steps}}
    return changed


def _figures(
    wanted: Mapping[str, Any],
    models: Mapping[str, Model],
    notices: list[str],
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    def present(figure: str, suits: Any) -> tuple[str, ...]:
        listed = wanted.get(figure, "all")
        names = [n for n in (models if listed == "all" else listed) if n in models]
        return tuple(name for name in names if suits(models[name]))

    figures = {}
    for figure, specification in FIGURES.items():
        needs = specification.needs_training_steps
        names = present(figure, lambda model, needs=needs: model.has_training_steps or not needs)
        if names:
            figures[figure] = names
            continue
        listed = wanted.get(figure, "all")
        asked = (
            "any model" if listed == "all" else " or ".join(f"`{n}`" for n in listed) or "a model"
        )
        kind = " with training steps" if needs else ""
        notices.append(
            f"{figure} is left out: key `models` names none of what it draws ({asked}{kind})"
        )
    table_1 = present("table_1", lambda model: model.table_1 is not None)
    if not table_1:
        notices.append("table_1 is left out: no model of this configuration has a `table_1` entry")
    return figures, table_1
