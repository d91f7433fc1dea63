"""Section ``tasks`` of the configuration, and the job that makes the examples of a task.

This module avoids slow imports, because the Snakefile reads it at every start.
"""

from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from shape_of_learning.validation import Name, Section, make_validation_error, must_be

SplitName = Literal["train", "held_out"]
SplitLimit = Annotated[int, Field(ge=2, le=100_000_000)]


class Split(Section):
    """The names of the published splits for training and for evaluation."""

    train: Name
    held_out: Name

    @model_validator(mode="after")
    def _check_splits(self) -> "Split":
        if self.train == self.held_out:
            raise make_validation_error(
                f"names `{self.train}` twice, so that no examples are held out; name another published split"
            )
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
        a task made from the run's corpus, with the same number of examples for each label. `topic`: the eight
        longest articles form two groups of four, and the label of a sentence is its group; split by paragraph
    hub
        a data set that the library `datasets` reads without a script, such as Parquet files: `dataset`,
        `config`, `revision` (a commit), `split` (the published split for each of `train` and `held_out`),
        `text`, `text_2` (the second texts of pairs), `label`. A loading script is refused and never run. Offline
        (`HF_HUB_OFFLINE=1`), the library reads this commit from `HF_HOME`. GLUE states no licence: do not pass
        the texts on
    metric
        `accuracy` or `matthews` for classes (whole numbers), `spearman` for grades; the default of a `hub` task is
        `accuracy`
    most
        the largest number of examples of each split, drawn by the seed: `{train: 2000, held_out: 500}`, the
        default of built-in tasks; other tasks have no default
    """

    builtin: Literal["topic"] | None = None
    hub: HubTask | None = None
    metric: Literal["accuracy", "matthews", "spearman"] | None = None
    most: dict[SplitName, SplitLimit] | None = None

    @model_validator(mode="after")
    def _check_origin(self) -> "TaskEntry":
        if (self.builtin is None) == (self.hub is None):
            raise make_validation_error("needs exactly one of `builtin` or `hub`")
        if self.builtin and self.metric:
            raise make_validation_error(
                "has a `metric`, but a `builtin` task decides it; remove `metric`"
            )
        return self

    @property
    def has_pairs(self) -> bool:
        """Whether each example is a pair of texts."""
        return bool(self.hub and self.hub.text_2)


class ExamplesJob(NamedTuple):
    """A job that makes the examples of a task.

    Attributes
    ----------
    task : str
        The key of the task in section ``tasks``.
    entry : TaskEntry
    seed : int
        The seed of the run, which decides the examples that are drawn.
    """

    task: str
    entry: TaskEntry
    seed: int
