"""Checkpoints that a job of the run itself trains and saves."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from shape_of_learning.errors import InputError
from shape_of_learning.plan.checkpoint_list import Checkpoint
from shape_of_learning.plan.sources.source import Lookup, Places, Source, chosen_steps
from shape_of_learning.training.recipe import revision_of_step


class TrainedSource(Source):
    """A training whose steps one job saves, side by side.

    Attributes
    ----------
    results : str
        Folder below the results that holds them, by the names of the models.
    recipe : mapping
        As the entry has it.
    saved_steps : list of int
        What the job saves, whichever of it is measured.
    """

    results: ClassVar[str]

    def __init__(self, model: str, entry: Mapping[str, Any], where: str, models: Lookup) -> None:
        super().__init__(model, entry, where, models)
        training = entry.get("training", {})
        for key in training:
            if key not in ("steps", "note"):
                raise InputError(
                    f"{where}: `training.{key}` needs `repository` or `path`; of `{self.key}` "
                    "`training.steps` chooses what is measured: leave the other keys out"
                )
        self.recipe: Mapping[str, Any] = entry[self.key]
        self.saved_steps = self.saved()
        self.last_step = self.saved_steps[-1]
        wanted = training.get("steps", "all")
        steps = chosen_steps(wanted, self.saved_steps, where, "the recipe saves")
        self.checkpoints = tuple(map(self.at, steps))

    @abstractmethod
    def saved(self) -> list[int]:
        """List the steps that are saved, ascending."""

    def at(self, step: int) -> Checkpoint:
        """Describe the checkpoint of a step."""
        name = revision_of_step(step)
        return Checkpoint(name, name, step=step)

    @property
    def names(self) -> list[str]:
        """Of all that is saved."""
        return [revision_of_step(step) for step in self.saved_steps]

    @property
    def final(self) -> str:
        """The last step, measured or not."""
        return self.names[-1]

    def inputs(self, revision: str, places: Places) -> list[str]:
        """The folder of all steps."""
        return [f"<results>/{self.results}/{self.model}"]

    def folder(self, revision: str, places: Places) -> str:
        """The folder of the step."""
        return places.own_path(f"<results>/{self.results}/{self.model}/{revision}")

    def receipt(self, revision: str, places: Places) -> None:
        """None: nobody has fetched them."""
        return None
