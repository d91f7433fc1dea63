"""Read the entries of models in ``config/models/*.yaml``, and list their checkpoints."""

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
    space_steps,
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
# Characters of the figures' font that do not combine with others. A first =, +, - or @ would begin a formula in a
# spreadsheet.
PrintedText = Annotated[
    str,
    Field(
        pattern=r"^(?![ =+@-])[ -~\u00a1-\u00ac\u00ae-\u024f\u0370-\u037e\u0384-\u03ff"
        r"\u0400-\u0482\u048a-\u0525"
        r"\u1e00-\u1efb\u2010-\u2027\u2030-\u205e\u2070-\u208e\u20a0-\u20b5\u2190-\u22ff]{1,60}(?<! )\Z"
    ),
    must_be(
        "1 to 60 Latin, Greek or Cyrillic letters, digits and signs on one line, without =+-@ or a blank at the "
        "beginning and without a blank at the end"
    ),
]
REPOSITORY = (
    r"^(?!.*\.\.)[A-Za-z0-9_{}][A-Za-z0-9._{}-]{0,95}/[A-Za-z0-9_{}][A-Za-z0-9._{}-]{0,95}\Z"
)
Repository = Annotated[
    str, Field(pattern=REPOSITORY), must_be("`organisation/name`, as the Hub writes it")
]
# Git allows neither blanks, control characters, ~^:?*[\ and `..` in the name of a branch or tag, nor a slash or dot at
# its ends.
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
    """The steps of a repository, or of the folders of a `path` with `{step}`.

    Attributes
    ----------
    revision
        pattern of the revisions' names: `{step}` or `{kilosteps}` (thousands of steps), with or without leading
        zeros; `{gigatokens}` (billions of tokens, as the publisher rounded them), which replaces the step if a
        pattern has no step; and `{stage}`, a number that does not count (an audit uses it to separate stages
        whose steps begin again at 0). If checkpoints are folders of one revision, `subfolder` has the pattern
        instead
    steps
        a list; or `all`, `log` (one step per doubling), `log: 12` or `linear: 20` (12 or 20 steps, evenly spaced).
        These words choose among the steps on the Hub or on the disk, and always take the first and the last
    tokens_per_step
        the number of tokens in a training step, from which each step's tokens follow
    checkpoints
        a list of further checkpoints, or of all of them instead of `steps`: each has `step`, `revision` and, where
        they differ, `tokens`, `repository`, `subfolder` and `name` (of its folder under `results`)
    last_step
        the last step of training. If other steps have the same weights, the last step is taken to be the right
        one. Needed if `steps` is a list that may end earlier; for a `path`, the default is the last step on the
        disk
    known_bad
        revisions whose weights do not belong to their names: `steps` (a list, or `from` and `to`), `because` or
        `same_as` (the step to which the weights belong), and `source` (the report)
    warmup_steps
        steps until the learning rate reached its peak, for claims that need this number; the recipe of a
        `pretraining` has its own
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
    """The checkpoint from which a fine-tuning begins, and the task."""

    of: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}(@[A-Za-z0-9._+-]{1,200})?\Z"),
        must_be("the name of a model, or `MODEL@REVISION`"),
    ]
    task: Name


# Pydantic takes the fields of base classes from right to left, so that `of` and `task` come first.
class Finetuning(FinetuningRecipe, Origin):
    """A fine-tuning of another checkpoint on a task.

    Attributes
    ----------
    of
        the model, or `MODEL@REVISION` with the name of one of its checkpoints (of a pretraining, any saved
        step); the default is the last checkpoint. The model need not be in `models`, and may be a fine-tuning
        itself
    task
        a key of `tasks`; a decoder needs a task of single texts
    learning_rate
        the peak for AdamW; the learning rate rises linearly for a tenth of the updates, then falls linearly to 0
    batch_size
        examples in an update
    epochs
        passes over the examples
    seed
        decides the order of the examples, dropout and the initial weights of the head
    threads
        threads of torch; the trained weights depend on this number
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
    attention_heads
        attention heads of a block
    vocabulary
        entries of the vocabulary
    batch_size
        sequences in a training batch
    learning_rate
        the peak of the learning rate
    training_tokens
        tokens seen in the whole training
    activation
        the name of the activation function, such as `GELU`
    position_embedding
        the name of the position embedding, such as `rotary`
    context
        tokens of the longest input
    tied_embeddings
        whether the input and the output embeddings are one matrix
    warmup_tokens
        tokens until the learning rate reaches its peak
    minimum_learning_rate
        the learning rate at the end
    published
        values of the paper's table that differ from these, by row
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
# Twins may differ only in these keys of a recipe.
TWIN_KEYS = {"regulariser", "strength", "twin_of"}
# Columns of Table 1 that are keys of a recipe.
RECIPE_COLUMNS = ("attention_heads", "vocabulary", "context", "batch_size", "learning_rate")
ARCHITECTURE_COLUMNS = {
    "gpt_neox": {"activation": "GELU", "position_embedding": "rotary", "tied_embeddings": False},
    "bert": {"activation": "GELU", "position_embedding": "learned", "tied_embeddings": True},
}


class Entry(Section):
    """A model: the keys that every entry of the files in `models/` may have.

    There is one subclass per source of the weights. Every subclass has `checkpoints`, `shape`, `input_rule` and
    `weights_identity`.

    Attributes
    ----------
    role
        `encoder` or `decoder`; the default is read from the architecture in `config.json`. For an encoder-decoder
        (T5, BART), `encoder` measures the encoder
    layers, hidden_size
        transformer blocks and width. They are read from `config.json`, and must not contradict it; needed if it
        does not state them
    last_hidden_size
        width of the last hidden state if it differs from `hidden_size` (opt-350m); read in the same way
    label
        the name of the model in figures: up to 60 Latin, Greek or Cyrillic letters, digits and signs
    family
        the name of a group of models that share a colour in figures, and of the seeds over which figures of
        fine-tuning take means; the same characters as in a label
    precision
        overrides `forward.precision`
    table_1
        the column of the model in Table 1; see below
    training
        the steps of the training; see below
    seeds
        a list of numbers for `{seed}` in `repository` or `training.revision`: each makes a model, NAME-SEED, and
        figures draw all of them as one curve with a band over seeds
    """

    kind: ClassVar[str]  # the key of the source
    input_rule: ClassVar[str] = ""  # the rule that makes the weights; none for folders
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
    seeds_of: str = ""  # the entry with `seeds` that was expanded to this model
    _name: str = PrivateAttr("")
    _where: str = PrivateAttr("")  # the place that errors name

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
                f"has `training.{meaningless[0]}`, which means nothing for `{self.kind}`; remove it"
            )
        return self

    @property
    def name(self) -> str:
        """Key of the entry in its file."""
        return self._name

    @property
    def label(self) -> str:
        """Name of the model in figures."""
        return self.stated_label or self._name

    @property
    def family(self) -> str:
        """Name of the group of models that figures draw in one colour."""
        return self.stated_family or self._name

    @property
    def shape(self) -> Shape:
        """Role, layers and widths; empty if only ``config.json`` on the Hub states them."""
        width = self.hidden_size or 0
        return Shape(self.role or "", self.layers or 0, width, self.last_hidden_size or width)

    @property
    @abstractmethod
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """The checkpoints that the entry determines without the Hub, by step."""

    def weights_identity(self, revision: str, lock: Lock) -> str:
        """Return the hashes that identify the weights of a checkpoint; empty if a job of this run makes them."""
        return ""

    @property
    def hub_steps(self) -> OfferedSteps | None:
        """A choice of further steps among the revisions on the Hub; None if there is no such choice."""
        return None

    @property
    def origin(self) -> "Entry | None":
        """The model that a fine-tuning begins with; None for other models."""
        return None

    @property
    def tokenizer(self) -> str:
        """The repository or the folder of the tokenizer; empty if it is beside the weights."""
        return ""

    @property
    def known_bad(self) -> tuple[Mistake, ...]:
        """Mistakes in its revisions that somebody has reported."""
        return ()

    @property
    def last_step(self) -> int | None:
        """The last step of the training, even if it is not among the checkpoints."""
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
        """The values of the model in Table 1."""
        return self.table_1.model_dump() if self.table_1 else None

    @property
    def vocabulary(self) -> int | None:
        """The size of the vocabulary; None if the entry does not state it."""
        return self.table_1.vocabulary if self.table_1 else None

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The recipe of a training of this run; empty for other models."""
        return {}

    @property
    def saved_steps(self) -> tuple[int, ...]:
        """The steps that a training of this run saves, even if they are not measured."""
        return ()

    @property
    def trainable_names(self) -> list[str]:
        """Names of the checkpoints that can be fine-tuned; empty if only the Hub has the names."""
        if self.saved_steps:
            return [name_step(step) for step in self.saved_steps]
        return [] if self.hub_steps is not None else [place.name for place in self.checkpoints]

    @property
    def has_training_steps(self) -> bool:
        """Whether figures by training step can draw the model."""
        return self.hub_steps is not None or len(self.checkpoints) > 1

    @property
    def treatment(self) -> dict[str, str]:
        """Properties of the training by which claims compare models."""
        training = str(sorted(self.recipe.items())) if self.recipe else self.seeds_of or self.name
        return {"kind": "pretrained", "training": training}

    def make_evidence(self) -> EvidenceModel:
        """Return the properties of the model that claims need besides its numbers."""
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

    def complete_shape(self, checkpoint_shape: Shape) -> Self:
        """Fill gaps of the entry from the shape of a checkpoint; refuse a contradiction."""
        where = f"model `{self.name}`"
        return self.model_copy(update=vars(complete_shape(self.shape, checkpoint_shape, where)))

    def complete(self, find_model: "FindModel") -> Self:
        """Complete the entry from the disk and from other entries.

        Raises
        ------
        InputError
            If they contradict the entry. The sentence names the entry.
        """
        return self


class HubEntry(Entry):
    """Revisions of a repository on the Hub, pinned by a lock and downloaded.

    Attributes
    ----------
    repository
        a repository of the Hub, with further keys: `revision` (default `main`), `subfolder`, `tokenizer` (another
        repository, if the revision has no tokenizer) and `gated`. Code of the repository is never run
    tokenizer
        another repository or folder that has the tokenizer, if the `repository` or `path` has none
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
                "has a `tokenizer` that is not the name of a repository; write `organisation/name`"
            )
        if training and self.revision is not None:
            raise make_validation_error(
                "has `revision` beside `training`, which names revisions itself; remove it"
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
        training = self.training
        subfolder = self.subfolder or ""
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
        training = self.training
        subfolder = self.subfolder or ""
        if training is None:
            revision = self.revision or "main"
            return (Checkpoint(name_folder(revision), revision, self.repository, subfolder),)
        tokens_per_step = training.tokens_per_step
        checkpoints = [
            Checkpoint(
                checkpoint.name or name_folder(checkpoint.revision),
                checkpoint.revision,
                checkpoint.repository or self.repository,
                checkpoint.subfolder or subfolder,
                checkpoint.step,
                tokens_per_step and checkpoint.step * tokens_per_step
                if checkpoint.tokens is None
                else checkpoint.tokens,
            )
            for checkpoint in training.checkpoints or ()
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
                checkpoints.append(Checkpoint(name, revision, repository, subfolder, step, tokens))
        return sort_checkpoints(checkpoints)

    def _check_templates(self) -> None:
        """Refuse patterns that do not determine the names of steps."""
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
            problem = (
                f"`{pattern}`, `repository` and `subfolder` together may have each of {placeholder_names} once, and "
                "no other placeholder"
            )
        elif revisions.has_step + repositories.has_step + folders.has_step != 1:
            problem = "needs `{step}`, or `repository` or `subfolder` does, if each step has one of its own"
        elif repositories.has_step and not step_list:
            problem = "has no `{step}`, but `repository` has; `training.steps` must then be a list"
        elif "kilosteps" in placeholders and any(step % 1000 for step in step_list):
            problem = "has `{kilosteps}`, but a step is not a multiple of 1000"
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
        a local folder in Hugging Face format, absolute or relative to the working directory, with `~` for the
        user's home; or, with `{step}`, the folders of a training run, such as `run/checkpoint-{step}`. It may also
        be a GGUF file, which is unpacked once, or `package:NAME/PATH`, a path inside an installed package
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
        training = self.training
        path = str(expand_home(self.path))
        if path.count(STEP) != (training is not None):
            raise InputError(
                f"{self._where}: `training: {{steps: all}}` needs a `path` with one `{STEP}`, such as "
                f"`run/checkpoint-{STEP}`, and the other way round; correct the entry"
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
        """The folders with a checkpoint that fit a path with ``{step}``, by step."""
        parts = f"{expand_home(self.path)}/{CONFIGURATION}".split(STEP)
        expression = re.compile("([0-9]+)".join(map(re.escape, parts)))
        folders: dict[int, str] = {}
        # `Path.glob` refuses absolute patterns.
        for file in sorted(glob("*".join(map(escape, parts)))):  # noqa: PTH207
            match, folder = expression.fullmatch(file), str(Path(file).parent)
            if match is None:
                continue
            step = int(match[1])
            if step > LAST_STEP:
                raise InputError(
                    f"{self._where}: the step of {folder} is beyond {LAST_STEP:.0e}; rename the folder, or correct "
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
        """The last step of the training; by default the last step on the disk."""
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
        """Return the hashes of a checkpoint's files, which do not depend on their folder."""
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
                    f"{self._where}: config.json in {folder} says {vars(shape)}, but in {final} "
                    f"{vars(shapes[final])}, so that they are not from the same training run; list only `steps` of "
                    "one run"
                )
        whole = complete_shape(self.shape, shapes[final], self._where)
        for folder in [self.tokenizer] if self.tokenizer else shapes:
            if not list_tokenizer_paths({file.name for file in Path(folder).glob("*")}, ""):
                raise InputError(
                    f"{self._where}: {folder} has no tokenizer; save it there (`tokenizer.save_pretrained`), or "
                    "name its folder in key `tokenizer`"
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
    """A small model that the run pretrains on its corpus.

    Attributes
    ----------
    pretraining
        the recipe of a pretraining on the run's corpus (see `models/demo.yaml`); it needs `role`, `layers` and
        `hidden_size`
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
                f"has `role: {self.role}`, but `pretraining.architecture: {self.pretraining.architecture}` has the "
                f"role `{self.pretraining.role}`; correct one of them"
            )
        return self

    @cached_property
    def recipe(self) -> Mapping[str, Any]:
        pretraining = self.pretraining.model_dump(exclude_defaults=True)
        return {"layers": self.layers, "hidden_size": self.hidden_size, **pretraining}

    def make_recipe(self, seed: int) -> PretrainingRecipe:
        """Make the recipe with the seed of a run; InputError if its settings contradict each other."""
        return validate_yaml(PretrainingRecipe, {**self.recipe, "seed": seed}, self._where)

    @property
    def tokens_per_step(self) -> int:  # type: ignore[override]
        return self.pretraining.batch_size * self.pretraining.context

    @cached_property
    def saved_steps(self) -> tuple[int, ...]:
        return tuple(space_steps(self.pretraining.last_step))

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
        different_keys = [
            key
            for key in sorted({*self.recipe, *other.recipe} - TWIN_KEYS)
            if self.recipe.get(key) != other.recipe.get(key)
        ]
        problem = ""
        if other.kind != "pretraining" or TWIN_KEYS & other.recipe.keys():
            problem = "which must be a `pretraining` without `twin_of` and `regulariser`"
        elif "strength" not in self.recipe:
            problem = "and without `pretraining.regulariser` this would be the same model"
        elif different_keys:
            problem = f"whose `{different_keys[0]}` differs; twins differ only in `regulariser` and `strength`"
        if problem:
            raise InputError(f"{where} is `{name}`, {problem}; correct the entry")
        return self


class FinetuningEntry(TrainedEntry):
    """A checkpoint of another model that the run fine-tunes; step 0 is the checkpoint itself.

    Attributes
    ----------
    finetuning
        the recipe of a fine-tuning of another checkpoint on a task
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
        """The checkpoint that the fine-tuning begins with; None for the last good one, if only the Hub can tell it."""
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
        return tuple(space_steps(STEPS_PER_EPOCH * self.finetuning.epochs))

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


FindModel = Callable[[str, str], Entry]  # takes the name of a model, and the key that errors name
SOURCES: dict[str, type[Entry]] = {
    source.kind: source for source in (HubEntry, FolderEntry, PretrainingEntry, FinetuningEntry)
}
# Key -> the sources that can have it.
KEYS_OF_SOURCES = {
    "revision": ("repository",),
    "subfolder": ("repository",),
    "gated": ("repository",),
    "tokenizer": ("repository", "path"),
}


def read_entry(content: Any, where: str, name: str = "") -> Entry:
    """Validate an entry of a model.

    Raises
    ------
    InputError
        If a key is unknown or invalid, or if the entry has several sources. `where` names the entry in the sentence.
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
    if isinstance(content, dict):  # in YAML, an empty key is None and means no source
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
    """Read all YAML files of `folder`, ``*.yaml`` and ``*.yml``: model name -> (file, unchecked entry).

    Raises
    ------
    InputError
        If a file is not a mapping, or if two files have the same name of a model.
    """
    entries: WrittenEntries = {}
    for file in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        content = read_yaml(file)
        if content is None:  # the file has only comments
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
    """Replace ``{seed}`` in all keys and values of an entry."""
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
    """Replace an entry with `seeds` by one entry per seed, and its name in settings by their names.

    Raises
    ------
    InputError
        If `seeds` is not a list of different whole numbers, or if the entry has no `{seed}`.
    """
    seeds: dict[str, list[str]] = {}
    new_entries: WrittenEntries = {}
    for name, (file, entry) in entries.items():
        if not isinstance(entry, dict) or "seeds" not in entry:
            new_entries[name] = file, entry
            continue
        numbers = entry["seeds"]
        training = entry.get("training")
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
            seed_entry |= {"label": f"{entry.get('label') or name}, seed {seed}"}
            if f"{name}-{seed}" in entries:
                raise InputError(
                    f"model `{name}-{seed}` is both an entry and a seed of `{name}` in {file}; rename one"
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
    """Read the models called `names`, in that order, with the models that these depend on.

    Raises
    ------
    InputError
        If a name is unknown, or if an entry is invalid or depends on itself.
    """
    models: dict[str, Entry] = {}
    open_names: list[str] = []

    def read_model(name: str, where: str) -> Entry:
        if name in open_names:
            names_of_circle = [*open_names[open_names.index(name) :], name]
            circle = " -> ".join(f"`{model}`" for model in names_of_circle)
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
    """Refuse two checkpoints with the same name or step, and a step after the last step."""
    for key in ("name", "step"):
        values = Counter(getattr(checkpoint, key) for checkpoint in model.checkpoints)
        if repeated_values := [value for value, times in values.items() if times > 1]:
            raise InputError(
                f"{where}: two checkpoints have the {key} `{repeated_values[0]}`; change or remove one"
            )
    steps = {checkpoint.step or 0 for checkpoint in model.checkpoints}
    if model.hub_steps is not None and isinstance(model.hub_steps.step_choice, list):
        steps.update(model.hub_steps.step_choice)
    if model.last_step is not None and max(steps, default=0) > model.last_step:
        raise InputError(
            f"{where}: `training.last_step` is {model.last_step}, but the entry names step {max(steps)}; "
            "correct one of them"
        )


def find_origins(models: Iterable[Entry]) -> dict[str, Entry]:
    """Collect the models that others are fine-tuned from, each after its own origin."""
    origins: dict[str, Entry] = {}
    for model in models:
        if model.origin is not None:
            origins |= {**find_origins([model.origin]), model.origin.name: model.origin}
    return origins
