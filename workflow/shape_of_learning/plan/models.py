"""Models and their checkpoints, as the entries of ``config/models/*.yaml`` describe them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.shapes import Shape, completed
from shape_of_learning.checkpoints.verdicts import KnownBad
from shape_of_learning.errors import InputError
from shape_of_learning.files import read_yaml
from shape_of_learning.plan.entries import Entry, Training
from shape_of_learning.plan.hub_revisions import hub_checkpoints
from shape_of_learning.plan.local_folders import local_checkpoints, local_shape, separates_texts
from shape_of_learning.plan.model import Model
from shape_of_learning.plan.refusals import unknown_name, validated
from shape_of_learning.plan.steps import (
    Checkpoint,
    StepRule,
    chosen_steps,
)
from shape_of_learning.training.recipe import (
    STEPS_PER_EPOCH,
    PretrainingRecipe,
    pretraining_steps,
    revision_of_step,
)

# What is trained differs between twins, and nothing else.
OF_TWINS = ("regulariser", "strength", "twin_of")


Entries = dict[str, tuple[str, Any]]


def read_entries(folder: Path) -> Entries:
    """Read all YAML files of `folder`, ``*.yaml`` and ``*.yml``: model name -> (file, entry as written).

    Raises
    ------
    InputError
        For a file that is no mapping and for a name that two files have.
    """
    entries: Entries = {}
    for file in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        content = read_yaml(file)
        if content is None:  # nothing but comments
            continue
        if not isinstance(content, dict):
            raise InputError(f"{file} must map model names to entries; see config/README.md")
        for name, entry in content.items():
            if name in entries:
                raise InputError(
                    f"model `{name}` is defined in {entries[name][0]} and in {file}; rename one"
                )
            entries[name] = str(file), entry
    return entries


def read_models(entries: Entries, names: Iterable[str]) -> dict[str, Model]:
    """Parse the entries called `names`, in that order; one may rest on others.

    Raises
    ------
    InputError
        For a name that is not there and for an entry that is malformed, or that rests on itself.
    """
    models: dict[str, Model] = {}
    open_names: list[str] = []

    def model(name: str, where: str) -> Model:
        if name in open_names:
            way = [*open_names[open_names.index(name) :], name]
            circle = " -> ".join(f"`{each}`" for each in way)
            raise InputError(f"{where} leads in a circle, {circle}; name another model")
        if name not in entries:
            raise unknown_name(name, entries, "model", where)
        if name not in models:
            file, written = entries[name]
            said = f"model `{name}` in {file}"
            open_names.append(name)
            models[name] = _model(name, validated(Entry, written, said), said, model)
            open_names.pop()
        return models[name]

    return {name: model(name, "configuration key `models`") for name in names}


def origins_of(models: Iterable[Model]) -> dict[str, Model]:
    """Collect the models from which others are trained further, each after its own origin."""
    found: dict[str, Model] = {}
    for model in models:
        if model.origin is not None:
            found |= {**origins_of([model.origin]), model.origin.name: model.origin}
    return found


Lookup = Callable[[str, str], Model]


def _model(name: str, entry: Entry, where: str, models: Lookup) -> Model:
    width = entry.hidden_size or 0
    training = entry.training or Training()
    model = Model(
        name=name,
        label=entry.label or name,
        family=entry.family or name,
        kind=entry.kind,
        shape=Shape(entry.role or "", entry.layers or 0, width, entry.last_hidden_size or width),
        last_step=training.last_step,
        warmup_steps=training.warmup_steps,
        note=training.note or "",
        tokenizer=entry.tokenizer or "",
        gated=entry.gated,
        needs_code=entry.needs_code,
        precision=entry.precision,
        table_1=entry.table_1.model_dump() if entry.table_1 else None,
        vocabulary=entry.table_1.vocabulary if entry.table_1 else None,
    )
    reader = {
        "repository": _from_hub,
        "path": _from_folders,
        "pretraining": _pretrained,
        "finetuning": _finetuned,
    }[entry.kind]
    model = reader(model, entry, where, models)
    _check_steps(model, where)
    return model


def _check_steps(model: Model, where: str) -> None:
    for name, times in Counter(c.name for c in model.checkpoints).items():
        if times > 1:
            raise InputError(f"{where}: two checkpoints are called `{name}`; give one a `name`")
    for step, times in Counter(c.step for c in model.checkpoints).items():
        if times > 1:
            raise InputError(f"{where}: two checkpoints are at step {step}; remove one")
    listed = {each.step or 0 for each in model.checkpoints}
    if model.offered is not None and not isinstance(model.offered.wanted, StepRule):
        listed.update(model.offered.wanted)
    if model.last_step is not None and max(listed, default=0) > model.last_step:
        raise InputError(
            f"{where}: `training.last_step` is {model.last_step}, but step {max(listed)} is asked for; "
            "correct one of them"
        )


def _from_hub(model: Model, entry: Entry, where: str, models: Lookup) -> Model:
    """Revisions of repositories, pinned by a lock and downloaded."""
    checkpoints, offered = hub_checkpoints(entry, where)
    mistakes = [
        KnownBad(each.all_steps, each.source, each.because or "", each.same_as)
        for each in (entry.training.known_bad if entry.training else None) or ()
    ]
    return replace(
        model, checkpoints=tuple(checkpoints), offered=offered, known_bad=tuple(mistakes)
    )


def _from_folders(model: Model, entry: Entry, where: str, models: Lookup) -> Model:
    """Local folders in Hugging Face format; where they lie is no part of what is computed from them."""
    checkpoints, last_step = local_checkpoints(entry, where)
    shape = local_shape(model.shape, checkpoints, where)
    return replace(
        model,
        checkpoints=tuple(checkpoints),
        last_step=last_step if model.last_step is None else model.last_step,
        shape=shape,
        separates_texts=separates_texts(checkpoints[-1].path, shape.role),
    )


def _pretrained(model: Model, entry: Entry, where: str, models: Lookup) -> Model:
    """A small model that is trained on the run's own corpus, and saved at log-spaced steps."""
    written = entry.pretraining.model_dump(exclude_none=True)  # type: ignore[union-attr]
    recipe = {"layers": entry.layers, "hidden_size": entry.hidden_size, **written}
    if recipe.get("device") == "cpu":  # written or not
        del recipe["device"]
    try:
        PretrainingRecipe(**recipe, seed=0)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if "twin_of" in recipe:
        _check_twin(recipe, f"{where}: `pretraining.twin_of`", models)
    same = ("attention_heads", "vocabulary", "batch_size", "learning_rate")
    tokens = recipe["batch_size"] * recipe["context"]
    columns = {name: recipe[name] for name in same}
    columns["training_tokens"] = recipe["last_step"] * tokens
    return _trained(
        replace(
            model,
            warmup_steps=recipe["warmup_steps"],
            table_1=columns if model.table_1 is None else model.table_1,
            vocabulary=recipe["vocabulary"],
            recipe=recipe,
            saved_steps=tuple(pretraining_steps(recipe["last_step"])),
            separates_texts=recipe["architecture"] == "bert",
        ),
        entry,
        where,
        tokens,
    )


def _check_twin(recipe: Mapping[str, Any], where: str, models: Lookup) -> None:
    """Refuse a twin of what is no pretraining with the same recipe."""
    name = recipe["twin_of"]
    other = models(name, where)
    if other.kind != "pretraining" or {"twin_of", "strength"} & other.recipe.keys():
        raise InputError(
            f"{where} is `{name}`, which is no pretraining with random numbers of its own and without a "
            "regulariser; name one that is"
        )
    if "strength" not in recipe:
        raise InputError(
            f"{where} is `{name}`, and without `pretraining.regulariser` this would be the same model; add "
            "one"
        )
    for key in sorted({*recipe, *other.recipe} - {*OF_TWINS}):
        default = "cpu" if key == "device" else None
        own, its = recipe.get(key, default), other.recipe.get(key, default)
        if own != its:
            raise InputError(
                f"{where} is `{name}`, but `{key}` is {own} here and {its} there; twins differ in "
                "`regulariser` and `strength` alone"
            )


def _finetuned(model: Model, entry: Entry, where: str, models: Lookup) -> Model:
    """A checkpoint that is trained further, and saved at log-spaced steps; step 0 is what it begins with."""
    recipe = entry.finetuning.model_dump()  # type: ignore[union-attr]
    name, _, revision = recipe["of"].partition("@")
    origin = models(name, f"{where}: `finetuning.of`")
    if revision and origin.names and revision not in origin.names:
        named = f"revision of model `{name}`"
        raise unknown_name(revision, origin.names, named, f"{where}: `finetuning.of`")
    is_known = origin.shape.is_whole()
    return _trained(
        replace(
            model,
            shape=completed(model.shape, origin.shape, where) if is_known else model.shape,
            note=model.note or f"Steps of a fine-tuning are {STEPS_PER_EPOCH}ths of an epoch.",
            vocabulary=origin.vocabulary,
            recipe=recipe,
            saved_steps=tuple(pretraining_steps(STEPS_PER_EPOCH * recipe["epochs"])),
            origin=origin,
            origin_revision=revision or origin.final,
            separates_texts=origin.separates_texts,
        ),
        entry,
        where,
    )


def _trained(model: Model, entry: Entry, where: str, tokens: int | None = None) -> Model:
    """Choose what is measured among the steps that a training of this run saves."""
    training = entry.training or Training(steps="all")
    wanted = training.model_dump(exclude_none=True).get("steps", "all")
    steps = chosen_steps(wanted, model.saved_steps, where, "the recipe saves")
    checkpoints = [
        Checkpoint(
            revision_of_step(step),
            revision_of_step(step),
            step=step,
            tokens=tokens and step * tokens,
        )
        for step in steps
    ]
    return replace(model, checkpoints=tuple(checkpoints), last_step=model.saved_steps[-1])
