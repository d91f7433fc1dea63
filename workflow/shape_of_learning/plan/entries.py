"""Entries of the model list, ``config/models/*.yaml``, as they are written."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from shape_of_learning.checkpoints.verdicts import Mistake, Step, Steps
from shape_of_learning.training.recipe import FinetuningRecipe, Million, Positive, Pretraining
from shape_of_learning.validation import Name, Section, make_validation_error, must_be

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
