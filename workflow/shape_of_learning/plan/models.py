"""Models and their checkpoints, as the entries of ``config/models/*.yaml`` describe them."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shape_of_learning.checkpoints.atlas import list_reported_mistakes
from shape_of_learning.checkpoints.lock import Checkpoint
from shape_of_learning.checkpoints.shapes import Shape, complete_shape
from shape_of_learning.checkpoints.verdicts import Mistake
from shape_of_learning.errors import InputError
from shape_of_learning.plan.entries import Entry, Training
from shape_of_learning.plan.entry_files import Entries
from shape_of_learning.plan.local_folders import (
    complete_local_shape,
    find_local_tokenizer,
    list_local_checkpoints,
)
from shape_of_learning.plan.steps import (
    OfferedSteps,
    choose_steps,
    list_hub_checkpoints,
    make_checkpoint,
)
from shape_of_learning.training.recipe import (
    STEPS_PER_EPOCH,
    PretrainingRecipe,
    name_step,
    space_pretraining_steps,
)
from shape_of_learning.validation import make_unknown_name_error, validate_yaml

# What is trained differs between twins, and nothing else.
OF_TWINS = {"regulariser", "strength", "twin_of"}
# Columns of Table 1 that a recipe says.
COLUMNS = ("attention_heads", "vocabulary", "batch_size", "learning_rate")
MOST_CHARACTERS_PER_TOKEN = 5  # in the mean of English text: the demo's tokenizer makes 3.9


@dataclass(frozen=True)
class Model:
    """A model and its checkpoints, ordered by step.

    Attributes
    ----------
    kind : {"repository", "path", "pretraining", "finetuning"}
        Where its checkpoints come from: the Hub, folders of the user's, or a job of this run.
    shape : Shape
        Role, layers and widths, as far as they are known: where only ``config.json`` on the Hub says them,
        they are not.
    checkpoints : tuple of Checkpoint
        Those that the entry names by itself.
    offered : OfferedSteps or None
        Steps that are chosen among what the Hub offers, in addition.
    known_bad : tuple of Mistake
        Published mistakes.
    last_step, warmup_steps : int or None
        Where training ended, among the checkpoints or not, and until which the learning rate rose; None where
        nothing tells.
    note : str
        A sentence for the captions of figures by training step; may be empty.
    tokenizer : str
        A repository, or of folders a folder, if it is not in the model's own.
    gated : bool
        Whether the Hub asks for a licence to be accepted.
    precision : str or None
        Overrides ``forward.precision``.
    table_1 : mapping or None
        Its columns in Table 1.
    vocabulary : int or None
        Its entries, where they are known.
    recipe : mapping
        Of a training of this run, as the entry has it; with the size of the model where it is pretrained.
    saved_steps : list of int
        What a training of this run saves, whichever of it is measured.
    origin, origin_revision : Model or None, str or None
        The model that a fine-tuning begins with, and the name of its checkpoint; None for the last good one.
    seeds_of : str
        The entry of which it is one seed; empty if that has no `seeds`.
    """

    name: str
    label: str
    family: str
    kind: str
    shape: Shape
    checkpoints: tuple[Checkpoint, ...] = ()
    offered: OfferedSteps | None = None
    known_bad: tuple[Mistake, ...] = ()
    last_step: int | None = None
    warmup_steps: int | None = None
    note: str = ""
    tokenizer: str = ""
    gated: bool = False
    precision: str | None = None
    table_1: Mapping[str, Any] | None = None
    vocabulary: int | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)
    saved_steps: tuple[int, ...] = ()
    origin: "Model | None" = None
    origin_revision: str | None = None
    seeds_of: str = ""

    def complete_shape(self, own: Shape) -> "Model":
        """Fill in what the entry leaves out by what the checkpoint says; refuse what contradicts it."""
        return replace(self, shape=complete_shape(self.shape, own, f"model `{self.name}`"))

    @property
    def has_training_steps(self) -> bool:
        """Whether there is a training curve to draw."""
        return self.offered is not None or len(self.checkpoints) > 1

    @property
    def trainable_names(self) -> list[str]:
        """Names of all checkpoints that can be trained further, where they are known without the Hub."""
        if self.saved_steps:
            return [name_step(step) for step in self.saved_steps]
        return (
            [] if self.offered is not None else [checkpoint.name for checkpoint in self.checkpoints]
        )

    @property
    def local_folders(self) -> dict[str, str]:
        """Names of checkpoints that lie in folders of the user's -> these."""
        return {
            checkpoint.name: checkpoint.path for checkpoint in self.checkpoints if checkpoint.path
        }

    def count_windows(self, sampling: Mapping[str, Any]) -> int:
        """How many windows are drawn for it, by section `sampling`: more where it is wide."""
        vectors = sampling["vectors_per_dimension"] * self.shape.hidden_size
        needed = vectors * MOST_CHARACTERS_PER_TOKEN / sampling["window_characters"]
        return max(sampling["windows"], math.ceil(needed))

    def make_evidence(self) -> dict[str, Any]:
        """What claims ask of a model besides its numbers."""
        facts = {"kind": "pretrained", "training": self.seeds_of or self.name}
        if self.recipe:
            facts["training"] = str(sorted(self.recipe.items()))
        if self.origin is not None:
            task = self.recipe["task"]
            facts = {"kind": "fine_tuning", "origin": self.origin.name, "treatment": task}
        elif "twin_of" in self.recipe:
            treatment = f"{self.recipe['regulariser']} {self.recipe['strength']:g}"
            facts = {"kind": "twin", "origin": self.recipe["twin_of"], "treatment": treatment}
        shape = {"role": self.shape.role, "layers": self.shape.layers}
        last = self.last_step or max(
            (checkpoint.step or 0 for checkpoint in self.checkpoints), default=0
        )
        facts |= {"warmup_steps": self.warmup_steps, "last_step": last or None}
        return {"name": self.name, "family": self.family, **shape, **facts}


def read_models(entries: Entries, names: Iterable[str]) -> dict[str, Model]:
    """Parse the entries called `names`, in that order; one may rest on others.

    Raises
    ------
    InputError
        For a name that is not there and for an entry that is malformed, or that rests on itself.
    """
    models: dict[str, Model] = {}
    open_names: list[str] = []

    def plan_named_model(name: str, where: str) -> Model:
        if name in open_names:
            way = [*open_names[open_names.index(name) :], name]
            circle = " -> ".join(f"`{each}`" for each in way)
            raise InputError(f"{where} leads in a circle, {circle}; name another model")
        if name not in entries:
            raise make_unknown_name_error(name, entries, "model", where)
        if name not in models:
            file, written = entries[name]
            said = f"model `{name}` in {file}"
            open_names.append(name)
            models[name] = _plan_model(
                name, validate_yaml(Entry, written, said), said, plan_named_model
            )
            open_names.pop()
        return models[name]

    return {name: plan_named_model(name, "configuration key `models`") for name in names}


def find_origins(models: Iterable[Model]) -> dict[str, Model]:
    """Collect the models from which others are trained further, each after its own origin."""
    found: dict[str, Model] = {}
    for model in models:
        if model.origin is not None:
            found |= {**find_origins([model.origin]), model.origin.name: model.origin}
    return found


Lookup = Callable[[str, str], Model]


def _plan_model(name: str, entry: Entry, where: str, models: Lookup) -> Model:
    width, training = entry.hidden_size or 0, entry.training or Training()
    model = Model(
        name=name,
        label=entry.label or name,
        family=entry.family or name,
        kind=entry.kind,
        shape=Shape(entry.role or "", entry.layers or 0, width, entry.last_hidden_size or width),
        last_step=training.last_step,
        warmup_steps=training.warmup_steps,
        note=training.note or "",
        known_bad=tuple(training.known_bad or ()),
        tokenizer=entry.tokenizer or "",
        gated=entry.gated,
        seeds_of=entry.seeds_of or "",
        precision=entry.precision,
        table_1=entry.table_1.model_dump() if entry.table_1 else None,
        vocabulary=entry.table_1.vocabulary if entry.table_1 else None,
    )
    kinds = {
        "repository": _plan_hub_model,
        "path": _plan_folder_model,
        "pretraining": _plan_pretraining,
        "finetuning": _plan_finetuning,
    }
    model = kinds[entry.kind](model, entry, where, models)
    in_order = sorted(model.checkpoints, key=lambda each: each.step or 0)
    model = replace(model, checkpoints=tuple(in_order))
    _check_steps(model, where)
    return model


def _check_steps(model: Model, where: str) -> None:
    for key in ("name", "step"):
        values = Counter(getattr(checkpoint, key) for checkpoint in model.checkpoints)
        if twice := [value for value, times in values.items() if times > 1]:
            raise InputError(
                f"{where}: two checkpoints have the {key} `{twice[0]}`; give one another, or remove it"
            )
    steps = {checkpoint.step or 0 for checkpoint in model.checkpoints}
    if model.offered is not None and isinstance(model.offered.wanted, list):
        steps.update(model.offered.wanted)
    if model.last_step is not None and max(steps, default=0) > model.last_step:
        raise InputError(
            f"{where}: `training.last_step` is {model.last_step}, but step {max(steps)} is asked for; "
            "correct one of them"
        )


def _plan_hub_model(model: Model, entry: Entry, where: str, models: Lookup) -> Model:
    """Revisions of repositories, pinned by a lock and downloaded."""
    checkpoints, offered = list_hub_checkpoints(entry, where)
    repositories = {checkpoint.repository for checkpoint in checkpoints} | (
        {offered.repository} if offered else set()
    )
    known_bad = (*model.known_bad, *list_reported_mistakes(repositories, model.last_step))
    return replace(model, checkpoints=tuple(checkpoints), offered=offered, known_bad=known_bad)


def _plan_folder_model(model: Model, entry: Entry, where: str, models: Lookup) -> Model:
    """Local folders in Hugging Face format; where they lie is no part of what is computed from them."""
    checkpoints, last_step = list_local_checkpoints(entry, where)
    return replace(
        model,
        checkpoints=tuple(checkpoints),
        last_step=last_step if model.last_step is None else model.last_step,
        shape=complete_local_shape(model.shape, checkpoints, where),
        tokenizer=find_local_tokenizer(entry, checkpoints, where),
    )


def _plan_pretraining(model: Model, entry: Entry, where: str, models: Lookup) -> Model:
    """A small model that is trained on the run's own corpus, and saved at log-spaced steps."""
    assert entry.pretraining is not None
    written = entry.pretraining.model_dump(exclude_defaults=True)
    recipe = {"layers": entry.layers, "hidden_size": entry.hidden_size, **written}
    checked = validate_yaml(PretrainingRecipe, {**recipe, "seed": 0}, where)
    if "twin_of" in recipe:
        _check_twin(recipe, f"{where}: `pretraining.twin_of`", models)
    tokens, last_step = checked.tokens_per_step, checked.last_step
    columns = {**{key: recipe[key] for key in COLUMNS}, "training_tokens": last_step * tokens}
    trained = replace(
        model,
        warmup_steps=checked.warmup_steps,
        table_1=model.table_1 or columns,
        vocabulary=checked.vocabulary,
        recipe=recipe,
        saved_steps=tuple(space_pretraining_steps(last_step)),
    )
    return _choose_saved_steps(trained, entry, where, tokens)


def _check_twin(recipe: Mapping[str, Any], where: str, models: Lookup) -> None:
    """Refuse a twin of what is no pretraining with the same recipe."""
    name = recipe["twin_of"]
    other = models(name, where)
    differing = [
        key
        for key in sorted({*recipe, *other.recipe} - OF_TWINS)
        if recipe.get(key) != other.recipe.get(key)
    ]
    problem = ""
    if other.kind != "pretraining" or OF_TWINS & other.recipe.keys():
        problem = "which is no pretraining with random numbers of its own and without a regulariser"
    elif "strength" not in recipe:
        problem = "and without `pretraining.regulariser` this would be the same model"
    elif differing:
        problem = (
            f"whose `{differing[0]}` differs; twins differ in `regulariser` and `strength` alone"
        )
    if problem:
        raise InputError(f"{where} is `{name}`, {problem}; correct the entry")


def _plan_finetuning(model: Model, entry: Entry, where: str, models: Lookup) -> Model:
    """A checkpoint that is trained further, and saved at log-spaced steps; step 0 is what it begins with."""
    assert entry.finetuning is not None
    recipe = entry.finetuning.model_dump()
    name, _, revision = recipe["of"].partition("@")
    origin = models(name, f"{where}: `finetuning.of`")
    names = origin.trainable_names
    if revision and names and revision not in names:
        raise make_unknown_name_error(
            revision, names, f"revision of model `{name}`", f"{where}: `finetuning.of`"
        )
    shape = model.shape
    if origin.shape.is_whole():
        shape = complete_shape(shape, origin.shape, where)
    # Only what the Hub lists says which of its checkpoints is the last good one.
    final = None if origin.kind == "repository" else names[-1]
    trained = replace(
        model,
        shape=shape,
        note=model.note or f"Steps of a fine-tuning are {STEPS_PER_EPOCH}ths of an epoch.",
        vocabulary=origin.vocabulary,
        recipe=recipe,
        saved_steps=tuple(space_pretraining_steps(STEPS_PER_EPOCH * recipe["epochs"])),
        origin=origin,
        origin_revision=revision or final,
    )
    return _choose_saved_steps(trained, entry, where)


def _choose_saved_steps(model: Model, entry: Entry, where: str, tokens: int | None = None) -> Model:
    """Choose what is measured among the steps that a training of this run saves."""
    wanted = entry.training.steps if entry.training else None
    steps = choose_steps(wanted or "all", model.saved_steps, where, "the recipe saves")
    checkpoints = tuple(make_checkpoint(step, tokens) for step in steps)
    return replace(model, checkpoints=checkpoints, last_step=model.saved_steps[-1])
