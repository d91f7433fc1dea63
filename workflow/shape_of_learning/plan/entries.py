"""Models: the entries of ``config/models/*.yaml``, and the checkpoints that they name."""

import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from glob import escape, glob
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from shape_of_learning.checkpoints.atlas import list_reported_mistakes
from shape_of_learning.checkpoints.local import find_local_checkpoint
from shape_of_learning.checkpoints.lock import Checkpoint, Lock
from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    Shape,
    complete_shape,
    list_tokenizer_paths,
    parse_shape,
    read_configuration_file,
    refuse_quantised,
)
from shape_of_learning.checkpoints.verdict import LAST_STEP, Mistake, Step, Steps
from shape_of_learning.checkpoints.weight_files import list_checkpoint_files, list_tokenizer_files
from shape_of_learning.claims.claim import EvidenceModel
from shape_of_learning.errors import InputError
from shape_of_learning.file_hashes import remember_sha256
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
PrintedText = Annotated[
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
# A branch, a tag or a commit as git names them: no blanks, control characters or ~^:?*[\, no `..`, no
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


# A number of steps, evenly spaced.
StepSpacing = Annotated[
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
    """The steps of a repository, or of the folders that a `path` with `{step}` leads to.

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
            Literal["all", "log"] | StepSpacing | Steps,
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
    """The checkpoint that a fine-tuning begins with, and its task."""

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


Table1Row = Literal[
    "attention_heads",
    "vocabulary",
    "batch_size",
    "learning_rate",
    "training_tokens",
    "activation",
    "context",
    "position_embedding",
    "tied_embeddings",
    "warmup_tokens",
    "minimum_learning_rate",
]


class Table1(Section):
    """Rows of Table 1, besides layers and width.

    Attributes
    ----------
    attention_heads, vocabulary, batch_size, learning_rate, training_tokens
        the number of each; `batch_size` counts sequences
    activation, position_embedding
        its name, such as `GELU` or `rotary`
    context
        tokens of the longest input
    tied_embeddings
        whether the input and the output embeddings are one matrix
    warmup_tokens
        tokens until the learning rate is at its highest
    minimum_learning_rate
        that of the end
    published
        values that the paper's table has in place of these, by row
    """

    attention_heads: int = Field(ge=1)
    vocabulary: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    learning_rate: Positive
    training_tokens: int = Field(ge=1)
    activation: PrintedText | None = None
    context: int | None = Field(None, ge=1)
    position_embedding: PrintedText | None = None
    tied_embeddings: bool | None = None
    warmup_tokens: int | None = Field(None, ge=0)
    minimum_learning_rate: float | None = Field(None, ge=0)
    published: dict[Table1Row, int | float | PrintedText] = {}


STEP = "{step}"  # in a `path`
# Keys of a recipe in which twins may differ.
OF_TWINS = {"regulariser", "strength", "twin_of"}
# Columns of Table 1 that a recipe states.
RECIPE_COLUMNS = ("attention_heads", "vocabulary", "context", "batch_size", "learning_rate")
ARCHITECTURE_COLUMNS = {
    "gpt_neox": {"activation": "GELU", "position_embedding": "rotary", "tied_embeddings": False},
    "bert": {"activation": "GELU", "position_embedding": "learned", "tied_embeddings": True},
}
MOST_CHARACTERS_PER_TOKEN = 5  # in the mean of English text: the demo's tokenizer makes 3.9


class Entry(Section):
    """A model: the keys that every entry of the files in `models/` may have.

    There is one subclass per source of the weights. Each answers the same questions: its `checkpoints`, its `shape`,
    its `input_rule` and its `weights_identity`.

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
        its column in Table 1; see below
    training
        the steps of its training; see below
    seeds
        a list of numbers for `{seed}` in `repository` or `training.revision`: each is a model, NAME-SEED, and
        figures draw all as one curve with a band over seeds
    """

    kind: ClassVar[str]  # the key of its source
    input_rule: ClassVar[str] = ""  # makes its weights; none for folders
    training_keys: ClassVar[frozenset[str]] = frozenset({"steps", "note"})

    stated_label: PrintedText | None = Field(None, alias="label")
    stated_family: PrintedText | None = Field(None, alias="family")
    role: Literal["encoder", "decoder"] | None = None
    layers: int | None = Field(None, ge=1, le=10_000)
    hidden_size: Million | None = None
    last_hidden_size: Million | None = None
    precision: Precision | None = None
    training: Training | None = None
    table_1: Table1 | None = None
    seeds: list[int] | None = None
    seeds_of: str = ""  # the entry with `seeds` of which it is one
    _name: str = PrivateAttr("")
    _where: str = PrivateAttr("")  # names it in errors

    @model_validator(mode="before")
    @classmethod
    def _refuse_keys_of_other_sources(cls, values: Any) -> Any:
        for key, sources in KEYS_OF_SOURCES.items():
            if isinstance(values, dict) and key in values and cls.kind not in sources:
                source_names = " or ".join(f"`{source}`" for source in sources)
                raise make_validation_error(
                    f"has `{key}`, which needs {source_names}; add it, or remove `{key}`"
                )
        return values

    @model_validator(mode="after")
    def _check_training_keys(self) -> Self:
        keys = self.training.model_fields_set if self.training else set()
        if meaningless := sorted(keys - self.training_keys):
            raise make_validation_error(
                f"has `training.{meaningless[0]}`, which means nothing of `{self.kind}`; remove it"
            )
        return self

    @property
    def name(self) -> str:
        """Its key in the file."""
        return self._name

    @property
    def label(self) -> str:
        """Its name in figures."""
        return self.stated_label or self._name

    @property
    def family(self) -> str:
        """The models that figures draw in one colour."""
        return self.stated_family or self._name

    @property
    def shape(self) -> Shape:
        """Role, layers and widths; empty where only ``config.json`` on the Hub states them."""
        width = self.hidden_size or 0
        return Shape(self.role or "", self.layers or 0, width, self.last_hidden_size or width)

    @property
    @abstractmethod
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """The checkpoints that the entry names by itself, by step."""

    def weights_identity(self, revision: str, lock: Lock) -> str:
        """Return what decides the weights of a checkpoint; nothing if a job of this run makes them."""
        return ""

    @property
    def hub_steps(self) -> OfferedSteps | None:
        """Steps that are chosen among what the Hub offers, in addition."""
        return None

    @property
    def origin(self) -> "Entry | None":
        """The model that a fine-tuning begins with."""
        return None

    @property
    def tokenizer(self) -> str:
        """A repository, or of folders a folder, if the tokenizer is not beside the weights."""
        return ""

    @property
    def known_bad(self) -> tuple[Mistake, ...]:
        """Published mistakes."""
        return ()

    @property
    def last_step(self) -> int | None:
        """Where training ended, among the checkpoints or not."""
        return self.training.last_step if self.training else None

    @property
    def warmup_steps(self) -> int | None:
        """Steps until the learning rate reached its peak."""
        return self.training.warmup_steps if self.training else None

    @property
    def note(self) -> str:
        """A sentence for the captions of figures by training step."""
        return (self.training.note if self.training else None) or ""

    @property
    def table_columns(self) -> dict[str, Any] | None:
        """Its columns in Table 1."""
        return self.table_1.model_dump() if self.table_1 else None

    @property
    def vocabulary(self) -> int | None:
        """The size of its vocabulary, where an entry states it."""
        return self.table_1.vocabulary if self.table_1 else None

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The recipe of a training of this run."""
        return {}

    @property
    def saved_steps(self) -> tuple[int, ...]:
        """The steps that a training of this run saves, measured or not."""
        return ()

    @property
    def trainable_names(self) -> list[str]:
        """Names of the checkpoints that can be trained further, where they are known without the Hub."""
        if self.saved_steps:
            return [name_step(step) for step in self.saved_steps]
        return [] if self.hub_steps is not None else [place.name for place in self.checkpoints]

    @property
    def has_training_steps(self) -> bool:
        """Whether figures by training step can draw it."""
        return self.hub_steps is not None or len(self.checkpoints) > 1

    @property
    def treatment(self) -> dict[str, str]:
        """The kind of its training, as claims compare it."""
        training = str(sorted(self.recipe.items())) if self.recipe else self.seeds_of or self.name
        return {"kind": "pretrained", "training": training}

    def make_evidence(self) -> EvidenceModel:
        """Return what claims ask of a model besides its numbers."""
        steps = (checkpoint.step or 0 for checkpoint in self.checkpoints)
        last = self.last_step or max(steps, default=0)
        return EvidenceModel(
            name=self.name,
            family=self.family,
            role=self.shape.role,
            layers=self.shape.layers,
            width=self.shape.hidden_size,
            label=self.label,
            warmup_steps=self.warmup_steps,
            last_step=last or None,
            is_from_scratch=self.kind in ("repository", "pretraining"),
            **self.treatment,
        )

    def count_windows(self, sampling: Mapping[str, Any]) -> int:
        """Count the windows of the model by section `sampling`: a wide one has more."""
        vectors = sampling["vectors_per_dimension"] * self.shape.hidden_size
        windows = vectors * MOST_CHARACTERS_PER_TOKEN / sampling["window_characters"]
        return max(sampling["windows"], math.ceil(windows))

    def complete_shape(self, checkpoint_shape: Shape) -> Self:
        """Fill in what the entry leaves out by the shape of a checkpoint; refuse a contradiction."""
        where = f"model `{self.name}`"
        return self.model_copy(update=vars(complete_shape(self.shape, checkpoint_shape, where)))

    def complete(self, find_model: "FindModel") -> Self:
        """Complete the entry by what the disk and other entries say; refuse what does not fit.

        Raises
        ------
        InputError
            One sentence that names the entry.
        """
        return self


class HubEntry(Entry):
    """Revisions of a repository on the Hub, pinned by a lock and downloaded.

    Attributes
    ----------
    repository
        on the Hub; with `revision` (default `main`), `subfolder`, `tokenizer` (a repository, where the
        revision has none) and `gated`. Code in it is never run
    tokenizer
        of a `repository` or a `path` that has none: another repository, or another folder
    """

    kind = "repository"
    input_rule = "fetch_checkpoint"
    training_keys = frozenset(Training.model_fields)

    repository: Repository
    revision: Revision | None = None
    subfolder: Subfolder | None = None
    stated_tokenizer: Folder | None = Field(None, alias="tokenizer")
    gated: bool = False

    @model_validator(mode="after")
    def _check_steps_and_tokenizer(self) -> Self:
        training = self.training
        if self.tokenizer and not re.match(REPOSITORY, self.tokenizer):
            raise make_validation_error(
                "has a `tokenizer` that is no repository; write `organisation/name`"
            )
        if training and training.steps is None and training.checkpoints is None:
            raise make_validation_error("needs `training.steps` or `training.checkpoints`")
        if training and (training.steps is None) != (training.revision is None):
            raise make_validation_error(
                "has one of `training.steps` and `training.revision`; add the other"
            )
        return self

    @property
    def tokenizer(self) -> str:
        return self.stated_tokenizer or ""

    @cached_property
    def hub_steps(self) -> OfferedSteps | None:
        training, subfolder = self.training, self.subfolder or ""
        if training is None or training.steps is None:
            return None
        self._check_templates()
        revisions, folders = RevisionTemplate(training.revision or ""), RevisionTemplate(subfolder)
        tokens_per_step = training.tokens_per_step
        if folders.has_step:
            steps = training.steps
            return OfferedSteps(
                self.repository, "", folders, steps, tokens_per_step, revisions.pattern
            )
        if RevisionTemplate(self.repository).has_step:
            return None
        steps = sorted(training.steps) if isinstance(training.steps, list) else training.steps
        return OfferedSteps(self.repository, subfolder, revisions, steps, tokens_per_step)

    @cached_property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        training, subfolder = self.training, self.subfolder or ""
        if training is None:
            revision = self.revision or "main"
            return (Checkpoint(name_folder(revision), revision, self.repository, subfolder),)
        tokens_per_step = training.tokens_per_step
        found = [
            Checkpoint(
                listed.name or name_folder(listed.revision),
                listed.revision,
                listed.repository or self.repository,
                listed.subfolder or subfolder,
                listed.step,
                tokens_per_step and listed.step * tokens_per_step
                if listed.tokens is None
                else listed.tokens,
            )
            for listed in training.checkpoints or ()
        ]
        if isinstance(training.steps, list) and (self.hub_steps is None or self.hub_steps.is_list):
            revisions = RevisionTemplate(training.revision or "")
            repositories = RevisionTemplate(self.repository)
            for step in training.steps:
                revision = revisions.name(step)
                name = name_folder(revision) if revisions.has_step else name_step(step)
                repository, tokens = (
                    repositories.name(step),
                    tokens_per_step and step * tokens_per_step,
                )
                found.append(Checkpoint(name, revision, repository, subfolder, step, tokens))
        return sort_checkpoints(found)

    def _check_templates(self) -> None:
        """Refuse patterns from which no step's name can be made."""
        training = self.training or Training()
        pattern = training.revision or ""
        revisions, repositories = RevisionTemplate(pattern), RevisionTemplate(self.repository)
        folders = RevisionTemplate(self.subfolder or "")
        placeholders = re.findall(r"\{(.*?)\}", f"{pattern}{self.repository}{folders.pattern}")
        step_list = training.steps if isinstance(training.steps, list) else []
        problem = ""
        if len({*placeholders} & PLACEHOLDERS) < len(placeholders):
            placeholder_names = ", ".join(
                f"`{{{placeholder}}}`" for placeholder in sorted(PLACEHOLDERS)
            )
            problem = f"`{pattern}` or `repository` may have each of {placeholder_names} once, and no other"
        elif revisions.has_step + repositories.has_step + folders.has_step != 1:
            problem = "needs `{step}`, there, or in `repository` or `subfolder`, where each step has one of its own"
        elif repositories.has_step and not step_list:
            problem = "has no `{step}`, but `repository`, for which `training.steps` must be a list"
        elif "kilosteps" in placeholders and any(step % 1000 for step in step_list):
            problem = "has `{kilosteps}`, but a step is no whole number of thousands"
        if problem:
            raise InputError(f"{self._where}: `training.revision` {problem}; correct the entry")

    @cached_property
    def known_bad(self) -> tuple[Mistake, ...]:
        repositories = {checkpoint.repository for checkpoint in self.checkpoints}
        if self.hub_steps is not None:
            repositories.add(self.hub_steps.repository)
        mistakes = (self.training.known_bad if self.training else None) or ()
        return (*mistakes, *list_reported_mistakes(repositories, self.last_step))

    def weights_identity(self, revision: str, lock: Lock) -> str:
        """Return the pinned commit and hashes of a checkpoint, and the tokenizer's commit."""
        if revision not in lock.revisions:
            return ""
        pinned_revision = lock.revisions[revision]
        tokenizer = lock.tokenizer.commit if lock.tokenizer else ""
        hashes = [file.hash for file in pinned_revision.files.values()]
        return " ".join([pinned_revision.commit, pinned_revision.subfolder, *hashes, tokenizer])


class FolderEntry(Entry):
    """Local folders in Hugging Face format, such as the ``checkpoint-500`` of a Trainer.

    Attributes
    ----------
    path
        a local folder in Hugging Face format, absolute or relative to the working directory, `~` being the
        user's home; or with `{step}` the folders of a training run, such as `run/checkpoint-{step}`. Also a GGUF
        file, which is unpacked once; and `package:NAME/PATH`, a path inside an installed package
    """

    kind = "path"
    training_keys = frozenset({"steps", "tokens_per_step", "last_step", "warmup_steps", "note"})

    path: Folder
    stated_tokenizer: Folder | None = Field(None, alias="tokenizer")

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        if self.training is not None and self.training.steps is None:
            raise make_validation_error("needs `training.steps`; write `training: {steps: all}`")
        return self

    @cached_property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        training, path = self.training, str(expand_home(self.path))
        if path.count(STEP) != (training is not None):
            raise InputError(
                f"{self._where}: a `path` with `{STEP}`, once, such as `run/checkpoint-{STEP}`, and `training: "
                "{steps: all}` need each other; correct the entry"
            )
        if training is None:
            return (Checkpoint("main", "main", path=self._find_folder(self.path)),)
        if not self._folders:
            raise InputError(
                f"{self._where}: no folder like {path} holds a {CONFIGURATION}; correct the path, absolute or "
                "relative to the folder where this runs"
            )
        place = f"like {path} there are"
        return tuple(
            make_checkpoint(step, training.tokens_per_step, self._folders[step])
            for step in choose_steps(training.steps, self._folders, self._where, place)
        )

    @cached_property
    def _folders(self) -> dict[int, str]:
        """The folders of a path with ``{step}`` that hold a checkpoint, by step."""
        parts = f"{expand_home(self.path)}/{CONFIGURATION}".split(STEP)
        expression = re.compile("([0-9]+)".join(map(re.escape, parts)))
        folders: dict[int, str] = {}
        for file in sorted(glob("*".join(map(escape, parts)))):  # noqa: PTH207 (no absolute path)
            match, folder = expression.fullmatch(file), str(Path(file).parent)
            if match is None:
                continue
            step = int(match[1])
            if step > LAST_STEP:
                raise InputError(
                    f"{self._where}: {folder} would be a step beyond {LAST_STEP:.0e}; rename it, or correct "
                    "`path`"
                )
            if step in folders:
                raise InputError(
                    f"{self._where}: {folders[step]} and {folder} are both step {step}; rename one of them"
                )
            folders[step] = folder
        return folders

    def _find_folder(self, path: str) -> str:
        try:
            return str(find_local_checkpoint(path))
        except InputError as error:
            raise InputError(f"{self._where}: {error}") from None

    @property
    def last_step(self) -> int | None:
        """Where training ended; by default the last step on the disk."""
        if self.training is None or self.training.last_step is not None:
            return super().last_step
        return max(self._folders)

    @property
    def local_folders(self) -> dict[str, str]:
        """The folders of the checkpoints, by name."""
        return {checkpoint.name: checkpoint.path for checkpoint in self.checkpoints}

    @cached_property
    def tokenizer(self) -> str:
        return self._find_folder(self.stated_tokenizer) if self.stated_tokenizer else ""

    def weights_identity(self, revision: str, lock: Lock) -> str:
        """Return the hashes of a checkpoint's files, wherever they lie."""
        files = list_checkpoint_files(Path(self.local_folders[revision]))
        if self.tokenizer:
            files += list_tokenizer_files(Path(self.tokenizer))
        return " ".join(f"{file.name} {remember_sha256(file)}" for file in files)

    def complete(self, find_model: "FindModel") -> Self:
        shapes: dict[str, Shape] = {}
        for folder in self.local_folders.values():
            try:
                config = read_configuration_file(Path(folder))
            except InputError as error:
                raise InputError(f"{self._where}: {error}") from None
            refuse_quantised(config, self._where)
            shapes[folder] = parse_shape(config, self._where)
        final = self.checkpoints[-1].path
        for folder, shape in shapes.items():
            if shape != shapes[final]:
                raise InputError(
                    f"{self._where}: config.json in {folder} says {vars(shape)}, in {final} "
                    f"{vars(shapes[final])}, so these are no steps of one training run; list the `steps` that are"
                )
        whole = complete_shape(self.shape, shapes[final], self._where)
        for folder in [self.tokenizer] if self.tokenizer else shapes:
            if not list_tokenizer_paths({file.name for file in Path(folder).glob("*")}, ""):
                raise InputError(
                    f"{self._where}: {folder} has no tokenizer; save it there (`tokenizer.save_pretrained`), or "
                    "name the folder that has it under `tokenizer`"
                )
        return self.model_copy(update=vars(whole))


class TrainedEntry(Entry):
    """A training of this run, which saves log-spaced steps."""

    tokens_per_step: ClassVar[int | None] = None

    @cached_property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        step_choice = (self.training.steps if self.training else None) or "all"
        steps = choose_steps(step_choice, self.saved_steps, self._where, "the recipe saves")
        return tuple(make_checkpoint(step, self.tokens_per_step) for step in steps)

    @property
    def last_step(self) -> int:
        return self.saved_steps[-1]


class PretrainingEntry(TrainedEntry):
    """A small model that is trained on the run's own corpus.

    Attributes
    ----------
    pretraining
        the recipe of a local pretraining on the run's corpus (`models/demo.yaml`); with it `role`, `layers`
        and `hidden_size` are needed
    """

    kind = "pretraining"
    input_rule = "pretrain_model"

    pretraining: Pretraining

    @model_validator(mode="after")
    def _check_shape(self) -> Self:
        for key in ("role", "layers", "hidden_size"):
            if getattr(self, key) is None:
                raise make_validation_error(
                    f"has a `pretraining`, but key `{key}` is missing; add it"
                )
        if self.role != self.pretraining.role:
            raise make_validation_error(
                f"has `role: {self.role}`, but `pretraining.architecture: {self.pretraining.architecture}` is of "
                f"the role `{self.pretraining.role}`; correct one of them"
            )
        return self

    @cached_property
    def recipe(self) -> Mapping[str, Any]:
        pretraining = self.pretraining.model_dump(exclude_defaults=True)
        return {"layers": self.layers, "hidden_size": self.hidden_size, **pretraining}

    def make_recipe(self, seed: int) -> PretrainingRecipe:
        """Make the recipe with the seed of a run; InputError if its settings do not fit together."""
        return validate_yaml(PretrainingRecipe, {**self.recipe, "seed": seed}, self._where)

    @property
    def tokens_per_step(self) -> int:  # type: ignore[override]
        return self.pretraining.batch_size * self.pretraining.context

    @cached_property
    def saved_steps(self) -> tuple[int, ...]:
        return tuple(space_pretraining_steps(self.pretraining.last_step))

    @property
    def warmup_steps(self) -> int:
        return self.pretraining.warmup_steps

    @property
    def vocabulary(self) -> int:
        return self.pretraining.vocabulary

    @property
    def table_columns(self) -> dict[str, Any]:
        columns = {key: self.recipe[key] for key in RECIPE_COLUMNS}
        columns |= ARCHITECTURE_COLUMNS[self.pretraining.architecture]
        columns["training_tokens"] = self.last_step * self.tokens_per_step
        columns["warmup_tokens"] = self.pretraining.warmup_steps * self.tokens_per_step
        columns["minimum_learning_rate"] = self.pretraining.learning_rate / 10
        return super().table_columns or columns

    @property
    def treatment(self) -> dict[str, str]:
        if "twin_of" not in self.recipe:
            return super().treatment
        treatment = f"{self.recipe['regulariser']} {self.recipe['strength']:g}"
        return {"kind": "twin", "origin": self.recipe["twin_of"], "treatment": treatment}

    def complete(self, find_model: "FindModel") -> Self:
        self.make_recipe(seed=0)
        if (name := self.pretraining.twin_of) is None:
            return self
        where = f"{self._where}: `pretraining.twin_of`"
        other = find_model(name, where)
        differing = [
            key
            for key in sorted({*self.recipe, *other.recipe} - OF_TWINS)
            if self.recipe.get(key) != other.recipe.get(key)
        ]
        problem = ""
        if other.kind != "pretraining" or OF_TWINS & other.recipe.keys():
            problem = (
                "which is no pretraining with random numbers of its own and without a regulariser"
            )
        elif "strength" not in self.recipe:
            problem = "and without `pretraining.regulariser` this would be the same model"
        elif differing:
            problem = f"whose `{differing[0]}` differs; twins differ in `regulariser` and `strength` alone"
        if problem:
            raise InputError(f"{where} is `{name}`, {problem}; correct the entry")
        return self


class FinetuningEntry(TrainedEntry):
    """A checkpoint of another model that is trained further; step 0 is the checkpoint itself.

    Attributes
    ----------
    finetuning
        another checkpoint, trained further on a task
    """

    kind = "finetuning"
    input_rule = "finetune_model"

    finetuning: Finetuning
    _origin: Entry | None = PrivateAttr(None)

    @property
    def origin(self) -> Entry:
        assert self._origin is not None, "complete() has not been called"
        return self._origin

    @property
    def origin_revision(self) -> str | None:
        """The checkpoint that it begins with; None for the last good one, which only the Hub's listing tells."""
        if revision := self.finetuning.of.partition("@")[2]:
            return revision
        return None if self.origin.kind == "repository" else self.origin.trainable_names[-1]

    @cached_property
    def recipe(self) -> Mapping[str, Any]:
        return self.finetuning.model_dump()

    def make_recipe(self) -> FinetuningRecipe:
        """Return the recipe without the checkpoint and the task."""
        return FinetuningRecipe.model_validate(self.finetuning, from_attributes=True)

    @cached_property
    def saved_steps(self) -> tuple[int, ...]:
        return tuple(space_pretraining_steps(STEPS_PER_EPOCH * self.finetuning.epochs))

    @property
    def note(self) -> str:
        return super().note or f"A step of a fine-tuning is 1/{STEPS_PER_EPOCH} of an epoch."

    @property
    def vocabulary(self) -> int | None:
        return self.origin.vocabulary

    @property
    def treatment(self) -> dict[str, str]:
        return {
            "kind": "fine_tuning",
            "origin": self.origin.name,
            "treatment": self.finetuning.task,
        }

    def complete(self, find_model: "FindModel") -> Self:
        name, _, revision = self.finetuning.of.partition("@")
        where = f"{self._where}: `finetuning.of`"
        self._origin = find_model(name, where)
        names = self.origin.trainable_names
        if revision and names and revision not in names:
            raise make_unknown_name_error(revision, names, f"revision of model `{name}`", where)
        if not self.origin.shape.is_whole():
            return self
        whole = complete_shape(self.shape, self.origin.shape, self._where)
        return self.model_copy(update=vars(whole))


FindModel = Callable[[str, str], Entry]  # by a name, and by what names it in errors
SOURCES: dict[str, type[Entry]] = {
    source.kind: source for source in (HubEntry, FolderEntry, PretrainingEntry, FinetuningEntry)
}
# Keys that need another key, the source.
KEYS_OF_SOURCES = {
    "revision": ("repository",),
    "subfolder": ("repository",),
    "gated": ("repository",),
    "tokenizer": ("repository", "path"),
}


def read_entry(content: Any, where: str, name: str = "") -> Entry:
    """Check one entry of the model list.

    Raises
    ------
    InputError
        One sentence: `where`, which names the entry, the first offending key, and what to do.
    """
    keys = content.keys() if isinstance(content, dict) else set()
    sources = [source for source in SOURCES if source in keys and content[source] is not None]
    if isinstance(content, dict) and len(sources) != 1:
        key_names = [
            field.alias or name
            for source in SOURCES.values()
            for name, field in source.model_fields.items()
        ]
        for key in keys - {*key_names}:
            raise make_unknown_name_error(str(key), {*key_names}, "key", where)
        source_names = " or ".join(f"`{source}`" for source in SOURCES)
        raise InputError(f"{where}: the entry needs exactly one of {source_names}")
    if isinstance(content, dict):  # a source without a value is as if it were not there
        content = {
            key: value
            for key, value in content.items()
            if value is not None or key not in (*SOURCES, "tokenizer")
        }
    entry = validate_yaml(SOURCES[sources[0]] if sources else HubEntry, content, where)
    entry._name, entry._where = name, where
    return entry


def sort_checkpoints(checkpoints: Iterable[Checkpoint]) -> tuple[Checkpoint, ...]:
    """Sort checkpoints by step."""
    return tuple(sorted(checkpoints, key=lambda checkpoint: checkpoint.step or 0))


WrittenEntries = dict[str, tuple[str, Any]]  # name -> file, entry


def read_entries(folder: Path) -> WrittenEntries:
    """Read all YAML files of `folder`, ``*.yaml`` and ``*.yml``: model name -> (file, entry as written).

    Raises
    ------
    InputError
        For a file that is no mapping and for a name that two files have.
    """
    entries: WrittenEntries = {}
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


def expand_seeds(
    entries: WrittenEntries, settings: Mapping[str, Any]
) -> tuple[WrittenEntries, dict[str, Any]]:
    """Replace an entry with `seeds` by one entry per seed, in settings, too.

    Raises
    ------
    InputError
        If `seeds` is no list of different whole numbers, or nothing in the entry has `{seed}`.
    """
    seeds: dict[str, list[str]] = {}
    new_entries: WrittenEntries = {}
    for name, (file, entry) in entries.items():
        if not isinstance(entry, dict) or "seeds" not in entry:
            new_entries[name] = file, entry
            continue
        numbers, training = entry["seeds"], entry.get("training")
        revision = training.get("revision") if isinstance(training, dict) else None
        places = (entry.get("repository"), revision)
        is_list = isinstance(numbers, list) and all(type(number) is int for number in numbers)
        has_seed = any("{seed}" in str(place) for place in places)
        if not is_list or len({*numbers}) < max(len(numbers), 2) or not has_seed:
            raise InputError(
                f"model `{name}` in {file}: `seeds` must be a list of two or more different whole numbers, and "
                "`repository` or `training.revision` have `{seed}`; correct the entry"
            )
        for seed in numbers:
            seed_entry = {**_fill_in_seed(entry, str(seed)), "seeds_of": name}
            seed_entry |= {"label": f"{entry.get('label', name)}, seed {seed}"}
            if f"{name}-{seed}" in entries:
                raise InputError(
                    f"model `{name}-{seed}` is an entry, and a seed of `{name}` in {file}; rename one"
                )
            new_entries[f"{name}-{seed}"] = (
                file,
                {k: v for k, v in seed_entry.items() if k != "seeds"},
            )
            seeds.setdefault(name, []).append(f"{name}-{seed}")

    def rename_models(value: Any) -> Any:
        if isinstance(value, list) and all(isinstance(name, str) for name in value):
            return [model for name in value for model in seeds.get(name, [name])]
        if isinstance(value, dict):
            return {
                model: rename_models(inner)
                for name, inner in value.items()
                for model in seeds.get(name, [name])
            }
        return value

    keys = ("models", "figures", "training_steps")
    return new_entries, {k: rename_models(v) if k in keys else v for k, v in settings.items()}


def read_models(entries: WrittenEntries, names: Iterable[str]) -> dict[str, Entry]:
    """Read the models called `names`, in that order; one may rest on others.

    Raises
    ------
    InputError
        For a name that is not there and for an entry that is malformed, or that rests on itself.
    """
    models: dict[str, Entry] = {}
    open_names: list[str] = []

    def read_model(name: str, where: str) -> Entry:
        if name in open_names:
            way = [*open_names[open_names.index(name) :], name]
            circle = " -> ".join(f"`{model}`" for model in way)
            raise InputError(f"{where} leads in a circle, {circle}; name another model")
        if name not in entries:
            raise make_unknown_name_error(name, entries, "model", where)
        if name not in models:
            file, content = entries[name]
            open_names.append(name)
            entry = read_entry(content, f"model `{name}` in {file}", name).complete(read_model)
            _refuse_odd_steps(entry, f"model `{name}` in {file}")
            models[name] = entry
            open_names.pop()
        return models[name]

    return {name: read_model(name, "configuration key `models`") for name in names}


def _refuse_odd_steps(model: Entry, where: str) -> None:
    """Refuse two checkpoints of one name or step, and a step after the last one."""
    for key in ("name", "step"):
        values = Counter(getattr(checkpoint, key) for checkpoint in model.checkpoints)
        if twice := [value for value, times in values.items() if times > 1]:
            raise InputError(
                f"{where}: two checkpoints have the {key} `{twice[0]}`; give one another, or remove it"
            )
    steps = {checkpoint.step or 0 for checkpoint in model.checkpoints}
    if model.hub_steps is not None and isinstance(model.hub_steps.step_choice, list):
        steps.update(model.hub_steps.step_choice)
    if model.last_step is not None and max(steps, default=0) > model.last_step:
        raise InputError(
            f"{where}: `training.last_step` is {model.last_step}, but step {max(steps)} is asked for; "
            "correct one of them"
        )


def find_origins(models: Iterable[Entry]) -> dict[str, Entry]:
    """Collect the models from which others are trained further, each after its own origin."""
    origins: dict[str, Entry] = {}
    for model in models:
        if model.origin is not None:
            origins |= {**find_origins([model.origin]), model.origin.name: model.origin}
    return origins
