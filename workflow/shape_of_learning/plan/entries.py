"""Models: the entries of ``config/models/*.yaml``, and the checkpoints that they name."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import escape, glob
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from shape_of_learning.checkpoints.atlas import list_reported_mistakes
from shape_of_learning.checkpoints.local import find_local_checkpoint
from shape_of_learning.checkpoints.lock import Checkpoint
from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    Shape,
    complete_shape,
    list_tokenizer_paths,
    parse_shape,
    read_configuration_file,
    refuse_quantised,
)
from shape_of_learning.checkpoints.verdicts import LAST_STEP, Mistake, Step, Steps
from shape_of_learning.errors import InputError
from shape_of_learning.files import expand_home, read_yaml
from shape_of_learning.plan.steps import (
    PLACEHOLDERS,
    OfferedSteps,
    RevisionTemplate,
    choose_steps,
    make_checkpoint,
    name_folder,
)
from shape_of_learning.training.recipe import (
    STEPS_PER_EPOCH,
    FinetuningRecipe,
    Million,
    Positive,
    Pretraining,
    PretrainingRecipe,
    name_step,
    space_pretraining_steps,
)
from shape_of_learning.validation import (
    Name,
    Section,
    make_unknown_name_error,
    make_validation_error,
    must_be,
    validate_yaml,
)

Precision = Literal["float32", "bfloat16", "float16"]
# Characters that the figures' font has and that stand side by side; with =, +, - or @ a spreadsheet would
# begin a formula.
Printed = Annotated[
    str,
    Field(
        pattern=r"^(?![ =+@-])[ -~\u00a1-\u00ac\u00ae-\u024f\u0370-\u037e\u0384-\u03ff"
        r"\u0400-\u0482\u048a-\u0525"
        r"\u1e00-\u1efb\u2010-\u2027\u2030-\u205e\u2070-\u208e\u20a0-\u20b5\u2190-\u22ff]{1,60}(?<! )\Z"
    ),
    must_be(
        "1 to 60 Latin, Greek or Cyrillic letters, digits and signs, none of =+-@ or a blank at the "
        "beginning, no blank at the end, no line break"
    ),
]
REPOSITORY = (
    r"^(?!.*\.\.)[A-Za-z0-9_{}][A-Za-z0-9._{}-]{0,95}/[A-Za-z0-9_{}][A-Za-z0-9._{}-]{0,95}\Z"
)
Repository = Annotated[
    str, Field(pattern=REPOSITORY), must_be("`organisation/name`, as the Hub writes it")
]
# What git takes for a branch or tag, or a commit: no blanks, control characters or ~^:?*[\, no `..`, no
# slash or dot at an end.
Revision = Annotated[
    str,
    Field(
        pattern=r"^(?!.*(\.\.|//|/\.))(?![/.-])(?!.*(@\{|\.lock(/|\Z)))[^\x00-\x20\x7f-\xa0\u1680\u2000-\u200f"
        r"\u2028-\u202f\u205f-\u2069\u3000\ufeff~^:?*\[\\]{1,200}(?<![/.])\Z"
    ),
    must_be(
        "a branch, tag or commit as git names them, without blanks, control characters or `..`"
    ),
]
Subfolder = Annotated[
    str,
    Field(pattern=r"^(?!/)(?!(.*/)?\.\.(/|\Z))[^\x00-\x1f\x7f-\x9f\\]{0,500}\Z"),
    must_be("a folder inside the repository, such as `a/b`, without `..`"),
    AfterValidator(lambda folder: "/".join(PurePosixPath(folder).parts)),
]
Folder = Annotated[
    str,
    Field(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,1000}\Z"),
    must_be("a folder, in up to 1000 characters without line breaks or control characters"),
]


# So many steps, evenly spaced.
Spaced = Annotated[
    dict[Literal["log", "linear"], Annotated[int, Field(ge=2, le=100_000)]],
    Field(min_length=1, max_length=1),
]


class ListedCheckpoint(Section):
    """A checkpoint with a name of its own."""

    step: Step
    tokens: int | None = Field(None, ge=0, le=10**18)
    revision: Revision
    name: Name | None = None
    repository: Repository | None = None
    subfolder: Subfolder | None = None


class Training(Section):
    """What makes a curve of a repository, or of the folders that a `path` with `{step}` leads to.

    Attributes
    ----------
    revision
        pattern of the revisions' names: `{step}` or `{kilosteps}` (thousands of steps), with leading zeros or
        without; `{gigatokens}` (billions of tokens, as the publisher rounded them), which stand for steps where a
        name has none; and `{stage}`, a number that is not counted (an audit separates stages by it where steps
        begin anew). In `subfolder` instead where
        checkpoints are folders of one revision
    steps
        a list; or `all`, `log` (one step per doubling), `log: 12` or `linear: 20` (so many, evenly spaced),
        chosen among what the Hub offers or the disk holds, with its first and last step
    tokens_per_step
        gives each step its tokens
    checkpoints
        instead or besides: a list of `step`, `revision` and, where they differ, `tokens`, `repository`,
        `subfolder` and `name` (of its folder under `results`)
    last_step
        the last step of training, which owns its weights if other steps hold them, too; needed if `steps` is
        a list that may end before it; for a `path`, the last step on the disk by default
    known_bad
        revisions that are not what their names say: `steps` (a list, or `from` and `to`), `because` or
        `same_as` (the step whose weights they are), and `source` (where that is reported)
    warmup_steps
        steps until the learning rate reached its peak, for claims that need it; a `pretraining` has it in its
        recipe
    note
        a sentence below figures by training step
    """

    revision: Revision | None = None
    steps: (
        Annotated[
            Literal["all", "log"] | Spaced | Steps,
            must_be("`all`, `log`, `log: N`, `linear: N` or a list of steps, each once"),
        ]
        | None
    ) = None
    tokens_per_step: int | None = Field(None, ge=1, le=10**12)
    checkpoints: list[ListedCheckpoint] | None = Field(None, min_length=1)
    last_step: Step | None = None
    known_bad: list[Mistake] | None = Field(None, min_length=1)
    warmup_steps: Step | None = None
    note: str | None = None


class Origin(Section):
    """What a fine-tuning begins with, and what it is trained on."""

    of: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}(@[A-Za-z0-9._+-]{1,200})?\Z"),
        must_be("the name of a model, or `MODEL@REVISION`"),
    ]
    task: Name


# Keys are in the order of their sections from right to left.
class Finetuning(FinetuningRecipe, Origin):
    """Another checkpoint, trained further on a task.

    Attributes
    ----------
    of
        the model, or `MODEL@REVISION` with the name of one of its checkpoints (of a pretraining any step
        that it saves); by default the last. It need not be in `models`. It may be a fine-tuning itself
    task
        a key of `tasks`, for a decoder one of single texts
    learning_rate, batch_size, epochs
        of AdamW; the learning rate rises linearly for a tenth of the updates, then falls linearly to 0
    seed, threads
        the seed is that of the order of the examples, dropout and the head; threads are those of torch. Both
        are part of the recipe
    """


class Table1(Section):
    """Columns of Table 1."""

    attention_heads: int = Field(ge=1)
    vocabulary: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    learning_rate: Positive
    training_tokens: int = Field(ge=1)


SOURCES = ("repository", "path", "pretraining", "finetuning")


class Entry(Section):
    """An entry of any file in `models/`, by its name.

    Attributes
    ----------
    role
        `encoder` or `decoder`; read from the architecture in `config.json` where possible. Of an encoder-decoder
        (T5, BART) `encoder` measures the encoder
    layers, hidden_size
        transformer blocks and width; read from `config.json`, and checked against it where they are stated there;
        needed where they are not
    last_hidden_size
        width of the last hidden state where it differs (opt-350m); likewise
    label, family
        how figures name and group it: up to 60 Latin, Greek or Cyrillic letters, digits and signs, drawn as
        they are written
    precision
        overrides `forward.precision`
    table_1
        its columns in Table 1
    repository
        on the Hub; with `revision` (default `main`), `subfolder`, `tokenizer` (a repository, where the
        revision has none) and `gated`. Code in it is never run
    tokenizer
        of a `repository` or a `path` that has none: another repository, or another folder
    path
        a local folder in Hugging Face format, absolute or relative to the working directory, `~` being the
        user's home; or with `{step}` the folders of a training run, such as `run/checkpoint-{step}`. Also a GGUF
        file, which is unpacked once; and `package:NAME/PATH`, a path inside an installed package
    pretraining
        the recipe of a local pretraining on the run's corpus (`models/demo.yaml`); with it `role`, `layers`
        and `hidden_size` are needed
    finetuning
        another checkpoint, trained further on a task
    training
        what makes a curve of it; see below
    seeds
        a list of numbers for `{seed}` in `repository` or `training.revision`: each is a model, NAME-SEED, and
        figures draw all as one curve with a band over seeds
    """

    label: Printed | None = None
    family: Printed | None = None
    role: Literal["encoder", "decoder"] | None = None
    layers: int | None = Field(None, ge=1, le=10_000)
    hidden_size: Million | None = None
    last_hidden_size: Million | None = None
    precision: Precision | None = None
    repository: Repository | None = None
    revision: Revision | None = None
    subfolder: Subfolder | None = None
    tokenizer: Folder | None = None
    gated: bool = False
    path: Folder | None = None
    pretraining: Pretraining | None = None
    finetuning: Finetuning | None = None
    training: Training | None = None
    table_1: Table1 | None = None
    seeds: list[int] | None = None
    seeds_of: str | None = None

    @property
    def kind(self) -> str:
        """Which of `SOURCES` it has."""
        return next(key for key in SOURCES if getattr(self, key) is not None)

    @model_validator(mode="after")
    def _one_source(self) -> "Entry":
        if sum(getattr(self, key) is not None for key in SOURCES) != 1:
            raise make_validation_error(
                f"needs exactly one of {' or '.join(f'`{key}`' for key in SOURCES)}"
            )
        for key in ("revision", "subfolder", "gated"):
            if key in self.model_fields_set and self.repository is None:
                raise make_validation_error(
                    f"has `{key}`, which needs `repository`; add it, or remove `{key}`"
                )
        if self.tokenizer and self.kind not in ("repository", "path"):
            raise make_validation_error(
                "has `tokenizer`, which needs `repository` or `path`; remove it"
            )
        if self.tokenizer and self.repository and not re.match(REPOSITORY, self.tokenizer):
            raise make_validation_error(
                "has a `tokenizer` that is no repository; write `organisation/name`"
            )
        for key in ("role", "layers", "hidden_size") if self.pretraining else ():
            if getattr(self, key) is None:
                raise make_validation_error(
                    f"has a `pretraining`, but key `{key}` is missing; add it"
                )
        if self.pretraining and self.role != self.pretraining.role:
            raise make_validation_error(
                f"has `role: {self.role}`, but `pretraining.architecture: {self.pretraining.architecture}` is of "
                f"the role `{self.pretraining.role}`; correct one of them"
            )
        if self.training is not None:
            self._check_training(self.training)
        return self

    def _check_training(self, training: Training) -> None:
        allowed = {
            "repository": set(Training.model_fields),
            "path": {"steps", "tokens_per_step", "last_step", "warmup_steps", "note"},
        }.get(self.kind, {"steps", "note"})
        if others := sorted(training.model_fields_set - allowed):
            raise make_validation_error(
                f"has `training.{others[0]}`, which means nothing of `{self.kind}`; remove it"
            )
        if self.kind == "path" and training.steps is None:
            raise make_validation_error("needs `training.steps`; write `training: {steps: all}`")
        if self.kind == "repository":
            if training.steps is None and training.checkpoints is None:
                raise make_validation_error("needs `training.steps` or `training.checkpoints`")
            if (training.steps is None) != (training.revision is None):
                raise make_validation_error(
                    "has one of `training.steps` and `training.revision`; add the other"
                )


Entries = dict[str, tuple[str, Any]]  # name -> file, entry


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
            raise InputError(
                f"{file} must map model names to entries; see docs/how_to/own_model.md"
            )
        for name, entry in content.items():
            if name in entries:
                raise InputError(
                    f"model `{name}` is defined in {entries[name][0]} and in {file}; rename one"
                )
            entries[name] = str(file), entry
    return entries


def _fill_in_seed(value: Any, seed: str) -> Any:
    """Fill in a seed wherever an entry has a place for it."""
    if isinstance(value, dict):
        return {
            _fill_in_seed(key, seed): _fill_in_seed(inner, seed) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_fill_in_seed(inner, seed) for inner in value]
    return value.replace("{seed}", seed) if isinstance(value, str) else value


def expand_seeds(entries: Entries, settings: Mapping[str, Any]) -> tuple[Entries, dict[str, Any]]:
    """Make of an entry with `seeds` one for each, and name these where settings name it.

    Raises
    ------
    InputError
        If `seeds` is no list of different whole numbers, or nothing in the entry has `{seed}`.
    """
    seeds: dict[str, list[str]] = {}
    expanded: Entries = {}
    for name, (file, entry) in entries.items():
        if not isinstance(entry, dict) or "seeds" not in entry:
            expanded[name] = file, entry
            continue
        numbers, training = entry["seeds"], entry.get("training")
        of_training = training.get("revision") if isinstance(training, dict) else None
        places = (entry.get("repository"), of_training)
        is_list = isinstance(numbers, list) and all(type(number) is int for number in numbers)
        has_seed = any("{seed}" in str(place) for place in places)
        if not is_list or len({*numbers}) < max(len(numbers), 2) or not has_seed:
            raise InputError(
                f"model `{name}` in {file}: `seeds` must be a list of two or more different whole numbers, and "
                "`repository` or `training.revision` have `{seed}`; correct the entry"
            )
        for seed in numbers:
            own = {**_fill_in_seed(entry, str(seed)), "seeds_of": name}
            own |= {"label": f"{entry.get('label', name)}, seed {seed}"}
            if f"{name}-{seed}" in entries:
                raise InputError(
                    f"model `{name}-{seed}` is an entry, and a seed of `{name}` in {file}; rename one"
                )
            expanded[f"{name}-{seed}"] = file, {k: v for k, v in own.items() if k != "seeds"}
            seeds.setdefault(name, []).append(f"{name}-{seed}")

    def rename_models(value: Any) -> Any:
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return [e for each in value for e in seeds.get(each, [each])]
        if isinstance(value, dict):
            return {e: rename_models(v) for k, v in value.items() for e in seeds.get(k, [k])}
        return value

    keys = ("models", "figures", "training_steps")
    return expanded, {k: rename_models(v) if k in keys else v for k, v in settings.items()}


STEP = "{step}"


def list_local_checkpoints(entry: Entry, where: str) -> tuple[list[Checkpoint], int | None]:
    """List the checkpoints of an entry with ``path``, by step, and the last step that is on the disk.

    Parameters
    ----------
    entry : Entry
        ``{step}`` in its path stands for the digits of a step, all else for itself. Which of the steps that
        are there are meant, its ``training.steps`` says.
    where : str
        How an error names the entry.

    Raises
    ------
    InputError
        If the path does not lead to another folder at each step, or to none at a step that is asked for.
    """
    path, training = str(expand_home(entry.path or "")), entry.training
    if path.count(STEP) != (training is not None):
        raise InputError(
            f"{where}: a `path` with `{STEP}`, once, such as `run/checkpoint-{STEP}`, and `training: {{steps: "
            "all}` need each other; correct the entry"
        )
    if training is None:
        return [Checkpoint("main", "main", path=_check_folder(entry.path or "", where))], None
    found = _find_steps(path, where)
    if not found:
        raise InputError(
            f"{where}: no folder like {path} holds a {CONFIGURATION}; correct the path, absolute or relative "
            "to the folder where this runs"
        )
    steps = choose_steps(training.steps, found, where, f"like {path} there are")
    per_step = training.tokens_per_step
    return [make_checkpoint(step, per_step, found[step]) for step in steps], max(found)


def _find_steps(path: str, where: str) -> dict[int, str]:
    """Find the folders that a path with ``{step}`` leads to, and that hold a checkpoint: step -> path."""
    parts = f"{path}/{CONFIGURATION}".split(STEP)
    expression = re.compile("([0-9]+)".join(map(re.escape, parts)))
    found: dict[int, str] = {}
    for file in sorted(glob("*".join(map(escape, parts)))):  # noqa: PTH207 (which takes no absolute path)
        match, folder = expression.fullmatch(file), str(Path(file).parent)
        if match is None:
            continue
        if (step := int(match[1])) > LAST_STEP:
            raise InputError(
                f"{where}: {folder} would be a step beyond {LAST_STEP:.0e}; rename it, or correct `path`"
            )
        if step in found:
            raise InputError(
                f"{where}: {found[step]} and {folder} are both step {step}; rename one of them"
            )
        found[step] = folder
    return found


def _check_folder(path: str, where: str) -> str:
    """Find the folder of a path of an entry."""
    try:
        return str(find_local_checkpoint(path))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def find_local_tokenizer(entry: Entry, checkpoints: Sequence[Checkpoint], where: str) -> str:
    """Where the tokenizer of folders is; empty if each has its own.

    Raises
    ------
    InputError
        If there is none.
    """
    stated = _check_folder(entry.tokenizer, where) if entry.tokenizer else ""
    for folder in [stated] if stated else [checkpoint.path for checkpoint in checkpoints]:
        if not list_tokenizer_paths({file.name for file in Path(folder).glob("*")}, ""):
            raise InputError(
                f"{where}: {folder} has no tokenizer; save it there (`tokenizer.save_pretrained`), or name the "
                "folder that has it under `tokenizer`"
            )
    return stated


def complete_local_shape(stated: Shape, checkpoints: Sequence[Checkpoint], where: str) -> Shape:
    """Complete what an entry states by what the ``config.json`` of all its folders says."""
    try:
        shapes = {c.path: _read_folder_shape(Path(c.path), where) for c in checkpoints}
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix(f'{where}: ')}") from None
    final = checkpoints[-1].path
    for folder, shape in shapes.items():
        if shape != shapes[final]:
            raise InputError(
                f"{where}: config.json in {folder} says {vars(shape)}, in {final} {vars(shapes[final])}, so "
                "these are no steps of one training run; list the `steps` that are"
            )
    return complete_shape(stated, shapes[final], where)


def _read_folder_shape(folder: Path, where: str) -> Shape:
    config = read_configuration_file(folder)
    refuse_quantised(config, where)
    return parse_shape(config, where)


def list_hub_checkpoints(entry: Entry, where: str) -> tuple[list[Checkpoint], OfferedSteps | None]:
    """List the checkpoints that an entry of the Hub names by itself, and the steps that it must be asked for.

    Raises
    ------
    InputError
        If no step's name can be made from the patterns; `where` names the entry.
    """
    training, repository, subfolder = entry.training, entry.repository or "", entry.subfolder or ""
    if training is None:
        revision = entry.revision or "main"
        return [Checkpoint(name_folder(revision), revision, repository, subfolder)], None
    per_step = training.tokens_per_step
    checkpoints = [
        Checkpoint(
            each.name or name_folder(each.revision),
            each.revision,
            each.repository or repository,
            each.subfolder or subfolder,
            each.step,
            (per_step and each.step * per_step) if each.tokens is None else each.tokens,
        )
        for each in training.checkpoints or ()
    ]
    steps: Any = training.steps
    if steps is None:
        return checkpoints, None
    revisions, repositories, folders = (
        RevisionTemplate(pattern) for pattern in (training.revision or "", repository, subfolder)
    )
    _check_templates(revisions, repositories, folders, steps, where)
    if folders.has_step:
        return checkpoints, OfferedSteps(
            repository, "", folders, steps, per_step, training.revision or ""
        )
    steps = sorted(steps) if isinstance(steps, list) else steps
    offered = OfferedSteps(repository, subfolder, revisions, steps, per_step)
    if not offered.is_list:
        return checkpoints, offered
    for step in steps:
        revision = revisions.name(step)
        name = name_folder(revision) if revisions.has_step else name_step(step)
        place = (repositories.name(step), subfolder)
        checkpoints.append(Checkpoint(name, revision, *place, step, per_step and step * per_step))
    return checkpoints, None if repositories.has_step else offered


def _check_templates(
    revisions: RevisionTemplate,
    repositories: RevisionTemplate,
    folders: RevisionTemplate,
    steps: Any,
    where: str,
) -> None:
    """Refuse patterns from which no step's name can be made."""
    patterns = revisions.pattern, repositories.pattern, folders.pattern
    placeholders = re.findall(r"\{(.*?)\}", "".join(patterns))
    listed = steps if isinstance(steps, list) else []
    problem = ""
    if len({*placeholders} & PLACEHOLDERS) < len(placeholders):
        known = ", ".join(f"`{{{each}}}`" for each in sorted(PLACEHOLDERS))
        problem = (
            f"`{revisions.pattern}` or `repository` may have each of {known} once, and no other"
        )
    elif revisions.has_step + repositories.has_step + folders.has_step != 1:
        problem = "needs `{step}`, there, or in `repository` or `subfolder`, where each step has one of its own"
    elif repositories.has_step and not listed:
        problem = "has no `{step}`, but `repository`, for which `training.steps` must be a list"
    elif "kilosteps" in placeholders and any(step % 1000 for step in listed):
        problem = "has `{kilosteps}`, but a step is no whole number of thousands"
    if problem:
        raise InputError(f"{where}: `training.revision` {problem}; correct the entry")


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
