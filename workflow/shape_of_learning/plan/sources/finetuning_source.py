"""Checkpoints of other models that are trained further on a task."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from shape_of_learning.checkpoints.shapes import completed
from shape_of_learning.errors import InputError
from shape_of_learning.plan.schema import unknown_name
from shape_of_learning.plan.sources.source import Lookup
from shape_of_learning.plan.sources.trained_source import TrainedSource
from shape_of_learning.training.recipe import STEPS_PER_EPOCH, pretraining_steps

if TYPE_CHECKING:
    from shape_of_learning.plan.model_list import Model

ARGUMENTS = ("learning_rate", "batch_size", "epochs", "seed", "threads")


class FinetuningSource(TrainedSource):
    """A fine-tuning, saved at log-spaced steps; step 0 is the checkpoint that it begins with.

    Attributes
    ----------
    origin : Model
        Whose checkpoint it begins with.
    revision : str or None
        Name of that checkpoint; None for the last that is what it should be.
    """

    key = "finetuning"
    results = "finetuned"

    def __init__(self, model: str, entry: Mapping[str, Any], where: str, models: Lookup) -> None:
        super().__init__(model, entry, where, models)
        name, _, revision = self.recipe["of"].partition("@")
        self.origin: Model = models(name, f"{where}: `finetuning.of`")
        source = self.origin.source
        if revision and source.names and revision not in source.names:
            named = f"revision of model `{name}`"
            raise unknown_name(revision, source.names, named, f"{where}: `finetuning.of`")
        self.revision: str | None = revision or source.final
        if self.origin.shape.is_whole():
            self.shape = completed(self.shape, self.origin.shape, where)
        table = self.origin.table_1 or {}
        self.vocabulary = source.vocabulary or table.get("vocabulary")
        self.note = f"Steps of a fine-tuning are {STEPS_PER_EPOCH}ths of an epoch."

    def saved(self) -> list[int]:
        """Log-spaced ones."""
        return pretraining_steps(STEPS_PER_EPOCH * self.recipe["epochs"])

    @property
    def arguments(self) -> dict[str, Any]:
        """Of :class:`.FinetuningRecipe`."""
        return {name: self.recipe[name] for name in ARGUMENTS}

    def check_task(self, tasks: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse a task that is unknown, or of pairs where the origin is known to join texts by nothing.

        Parameters
        ----------
        tasks : mapping
            Section ``tasks`` of the configuration.

        Raises
        ------
        InputError
        """
        task, where = self.recipe["task"], self.where
        if task not in tasks:
            raise unknown_name(task, tasks, "task", f"{where}: `finetuning.task`")
        if has_pairs(tasks[task]) and not self.separates_texts:
            raise InputError(
                f"{where}: `finetuning.task` is `{task}`, which has pairs of texts, but the tokenizer of the "
                f"decoder `{self.origin.name}` has no separator; name a task of single texts or an encoder"
            )

    @property
    def separates_texts(self) -> bool:
        """As of its origin."""
        return self.origin.source.separates_texts


def has_pairs(task: Mapping[str, Any]) -> bool:
    """Whether an entry of section ``tasks`` is one of pairs of texts."""
    described: Collection[str] = {*task, *task.get("hub", {})}
    return task.get("builtin") == "same_article" or "text_2" in described
