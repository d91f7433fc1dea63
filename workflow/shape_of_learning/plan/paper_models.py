"""Which models each figure and table of the papers shows."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.registry import find_measure, measure_names
from shape_of_learning.plan.model import Model
from shape_of_learning.plan.models import Entries
from shape_of_learning.plan.papers import ALL, FigureSpecification, Paper, TableSpecification
from shape_of_learning.plan.refusals import unknown_name

SETTINGS = ("average_over", "progress", "measures")  # keys of `figures` that are no targets
# What `draws` in a paper.yaml allows, in the words of a notice.
KINDS = {
    "fine_tunings": " with `finetuning`, measured at the first and the last step",
    "twins": " together with a twin, both at the last step",
}


def check_targets(wanted: Mapping[str, Any], targets: Collection[str], entries: Entries) -> None:
    """Refuse keys of section ``figures`` that no paper has, and models that have no entry.

    Raises
    ------
    InputError
        One sentence that names the key.
    """
    for target, listed in wanted.items():
        if target not in targets:
            raise unknown_name(target, (*targets, *SETTINGS), "key", "key `figures`")
        for name in listed if isinstance(listed, list) else ():
            if name not in entries:
                raise unknown_name(name, entries, "model", f"configuration key `figures.{target}`")


def chosen_papers(
    names: Sequence[str] | None, wanted: Mapping[str, Any], papers: Sequence[Paper]
) -> list[Paper]:
    """Choose the papers whose figures and tables a run has.

    Parameters
    ----------
    names : sequence of str or None
        Key ``papers`` of the configuration; None for those of which `wanted` names a target.
    wanted : mapping
        Section ``figures`` of the configuration.
    papers : sequence of Paper

    Raises
    ------
    InputError
        If there is no paper of a name.
    """
    if names is None:
        return [each for each in papers if {*each.figures, *each.tables} & wanted.keys()]
    known = {paper.name: paper for paper in papers}
    for name in names:
        if name not in known:
            raise unknown_name(name, known, "paper", "configuration key `papers`")
    return [known[name] for name in names]


def with_chosen_measures(
    figures: Mapping[str, FigureSpecification], settings: Mapping[str, Any]
) -> dict[str, FigureSpecification]:
    """Say of each figure what it draws: by its paper, or by key ``figures.measures`` of the configuration.

    Raises
    ------
    InputError
        If that names a figure or a measure that there is not, or whose measures cannot be chosen.
    """
    known, chosen = measure_names(), settings["figures"]["measures"]
    free = [target for target, figure in figures.items() if figure.any_measures]
    for target, names in chosen.items():
        where = f"configuration key `figures.measures.{target}`"
        if target not in free:
            raise unknown_name(target, free, "figure", "configuration key `figures.measures`")
        for name in names:
            if name not in known:
                raise unknown_name(name, known, "estimator", where)
            if not _is_of_layers(name):
                raise InputError(
                    f"{where} names `{name}`, which is no measure of layers; remove it"
                )
    every = settings["measurement"]["estimators"]
    of_layers = [name for name in every if name in known and _is_of_layers(name)]
    return {
        target: figure.model_copy(
            update={
                "estimators": tuple(
                    chosen.get(target, of_layers if figure.estimators == ALL else figure.estimators)
                )
            }
        )
        for target, figure in figures.items()
    }


def _is_of_layers(name: str) -> bool:
    return find_measure(name).family != "weights"


def by_family_and_size(models: Iterable[Model]) -> list[Model]:
    """Order models as figures name them: families as they come, in each the smaller ones first."""
    listed = list(models)
    families = list(dict.fromkeys(model.family for model in listed))

    def place(model: Model) -> tuple[int, int]:
        layers, width = model.shape.layers or 0, model.shape.hidden_size or 0
        return families.index(model.family), layers * width**2  # about a twelfth of its parameters

    return sorted(listed, key=place)


def check_estimators(figures: Mapping[str, FigureSpecification], known: Collection[str]) -> None:
    """Refuse figures of what cannot be measured; InputError as above."""
    for target, figure in figures.items():
        for name in figure.estimators:
            if name not in known:
                where = f"{figure.folder / 'paper.yaml'}, the estimators of `{target}`"
                raise unknown_name(name, known, "estimator", where)


def models_of_targets(
    wanted: Mapping[str, Any],
    targets: Mapping[str, FigureSpecification] | Mapping[str, TableSpecification],
    models: Mapping[str, Model],
    apart: Collection[str],
    notices: list[str],
) -> dict[str, tuple[str, ...]]:
    """List the models of each figure or table, and note each that is left out for want of any.

    Parameters
    ----------
    wanted : mapping
        Section ``figures`` of the configuration; a target that it does not name shows all models.
    targets : mapping of str to FigureSpecification or TableSpecification
    models : mapping of str to Model
        Those of this run.
    apart : collection of str
        Which of them only those targets show that name them; ``all`` does not mean these.
    notices : list of str
        Is added to.

    Raises
    ------
    InputError
        If two models of a figure have the same label, there are more than it has room for, or one of another
        role than it draws is named.
    """
    found = {}
    for target, shown in targets.items():
        listed = wanted.get(target, "all")
        if listed == "all":
            names = [name for name in models if name not in apart]
        else:
            names = [name for name in listed if name in models]
        kind = KINDS.get(shown.draws or "", "")
        if isinstance(shown, FigureSpecification):
            names = _of_figure(target, shown, listed, names, models)
            kind = kind or (" with training steps" if shown.needs_training_steps else "")
        elif not shown.reads:
            names = [name for name in names if models[name].table_1 is not None]
            kind = " whose entry has `table_1`"
        names = _drawable(target, listed, names, shown.draws, models)
        is_rare = isinstance(shown, FigureSpecification) and shown.published and listed == "all"
        if names:
            if isinstance(shown, FigureSpecification):
                _refuse_too_many(target, names, shown.most_models, target in wanted)
                _refuse_equal_labels(target, [models[name] for name in names])
            found[target] = tuple(names)
        elif listed == []:
            notices.append(f"{target} is left out: key `figures.{target}` is an empty list")
        elif not is_rare:  # as in nearly every run
            asked = " or ".join(f"`{name}`" for name in listed) if listed != "all" else "any model"
            if listed == "all" and apart:
                asked = "any model outside of `measurement.for_figures_only`"
            notices.append(
                f"{target} is left out: key `models` names none of what it draws ({asked}{kind})"
            )
    return found


def _of_figure(
    target: str,
    figure: FigureSpecification,
    listed: Any,
    names: list[str],
    models: Mapping[str, Model],
) -> list[str]:
    """The models that a figure can draw."""
    names = _of_role(target, listed, names, figure.role, models)
    if figure.needs_training_steps:
        names = [name for name in names if models[name].has_training_steps]
    if figure.published:
        published = {row["model"] for row in figure.published_rows}
        names = [name for name in names if name in published]
    return names


def _refuse_too_many(target: str, names: list[str], most: int | None, is_named: bool) -> None:
    if most is None or len(names) <= most:
        return
    such, key = f"such as [{', '.join(names[:most])}]", f"configuration key `figures.{target}`"
    raise InputError(
        f"{key} names {len(names)} models, but has room for {most}; name fewer, {such}"
        if is_named
        else f"{target} has room for {most} of the {len(names)} models that it can draw; say which in {key}, "
        f"{such}"
    )


def _of_role(
    figure: str, listed: Any, names: list[str], role: str | None, models: Mapping[str, Model]
) -> list[str]:
    """Leave out models of another role than a figure draws; one that the configuration names is refused."""
    others = [name for name in names if role and models[name].shape.role not in ("", role)]
    if others and listed != "all":
        raise InputError(
            f"configuration key `figures.{figure}` names `{others[0]}`, but {role}s alone can be drawn "
            "there; remove it"
        )
    return [name for name in names if name not in others]


def _drawable(
    target: str, listed: Any, names: list[str], draws: str | None, models: Mapping[str, Model]
) -> list[str]:
    """Leave out models of another kind than a target draws; one that is named as a fine-tuning is refused."""
    if draws == "twins":
        return _twins(names, models)
    if draws is None:
        return names
    lacking = {name: lacks for name in names if (lacks := _no_fine_tuning(models[name]))}
    if lacking and listed != "all":
        name, lacks = next(iter(lacking.items()))
        raise InputError(f"configuration key `figures.{target}` names `{name}`, {lacks}")
    return [name for name in names if name not in lacking]


def _no_fine_tuning(model: Model) -> str:
    """Say what a model lacks to be drawn before and after its fine-tuning; nothing if it is."""
    if model.kind != "finetuning":
        return "which has no `finetuning` in its entry; name fine-tuned models, or `all` of these"
    measured = {each.step for each in model.checkpoints}
    if measured >= {0, model.last_step}:
        return ""
    return (
        f"of which steps 0 and {model.last_step}, the first and the last one, are drawn; put both into its "
        "`training.steps`, or remove it"
    )


def _twins(names: list[str], models: Mapping[str, Model]) -> list[str]:
    """Those of the models that stand for the same steps as a twin of theirs which is among them."""
    recipes = {
        name: model.recipe
        for name, model in ((name, models[name]) for name in names)
        if model.kind == "pretraining" and model.checkpoints[-1].step == model.last_step
    }
    pairs = [(name, recipe.get("twin_of")) for name, recipe in recipes.items()]
    paired = {name for pair in pairs if pair[1] in recipes for name in pair}
    return [name for name in names if name in paired]


def _refuse_equal_labels(figure: str, models: Sequence[Model]) -> None:
    seen: dict[str, str] = {}
    for model in models:
        if model.label in seen:
            raise InputError(
                f"models `{seen[model.label]}` and `{model.name}` both have the label `{model.label}`, by "
                f"which {figure} could not tell them apart; give one another `label` in its entry"
            )
        seen[model.label] = model.name
