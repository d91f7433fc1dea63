"""Section ``tasks`` of the configuration, and the job that makes the examples of a task.

This module imports nothing heavy, because the Snakefile reads it at every start.
"""

from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from shape_of_learning.validation import Name, Section, make_validation_error, must_be

Most = Annotated[int, Field(ge=2, le=100_000_000)]


class Split(Section):
    """Names of published splits."""

    train: Name
    held_out: Name

    @model_validator(mode="after")
    def _check_splits(self) -> "Split":
        if self.train == self.held_out:
            twice = f"names `{self.train}` twice, so that nothing would be held out"
            raise make_validation_error(f"{twice}; name another published split")
        return self


class HubTask(Section):
    """A data set of the Hub."""

    dataset: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*\Z"),
        must_be("`organisation/name`"),
    ]
    config: Name
    revision: Annotated[
        str,
        Field(pattern=r"^[0-9a-f]{40}\Z"),
        must_be("a commit, 40 hexadecimal digits: a branch moves"),
    ]
    split: Split
    text: str
    text_2: str | None = None
    label: str


class TaskEntry(Section):
    """An entry of `tasks`: labelled texts.

    Attributes
    ----------
    builtin
        made from the run's corpus, with labels by construction, equally many of each. `topic`: to which of
        two groups of four articles a sentence belongs, among the eight longest; split by paragraph
    hub
        a data set that the library `datasets` reads without a script, such as Parquet files: `dataset`,
        `config`, `revision` (a commit), `split` (the published split for each of `train` and `held_out`),
        `text`, `text_2` (of pairs), `label`. A loading script is refused and never run. Offline
        (`HF_HUB_OFFLINE=1`), what the library has in `HF_HOME` is read, if it is that commit. GLUE's
        licence is not stated: do not pass the texts on
    metric
        `accuracy` and `matthews` of classes (whole numbers), `spearman` of grades; of a `hub` task,
        `accuracy` by default
    most
        `{train: 2000, held_out: 500}`: so many examples of each split at most, drawn by the seed; these are
        the defaults of built-in tasks, others have none
    """

    builtin: Literal["topic"] | None = None
    hub: HubTask | None = None
    metric: Literal["accuracy", "matthews", "spearman"] | None = None
    most: dict[Literal["train", "held_out"], Most] | None = None

    @model_validator(mode="after")
    def _check_origin(self) -> "TaskEntry":
        if (self.builtin is None) == (self.hub is None):
            raise make_validation_error("needs exactly one of `builtin` or `hub`")
        if self.builtin and self.metric:
            raise make_validation_error(
                "has a `metric`, but is `builtin`, which decides it; remove it"
            )
        return self

    @property
    def has_pairs(self) -> bool:
        """Whether each example is a pair of texts."""
        return bool(self.hub and self.hub.text_2)


class ExamplesJob(NamedTuple):
    """A task whose examples are made.

    Attributes
    ----------
    task : str
        Its key in section ``tasks``.
    entry : TaskEntry
    seed : int
        The seed of the run, which decides the examples that are drawn.
    """

    task: str
    entry: TaskEntry
    seed: int
