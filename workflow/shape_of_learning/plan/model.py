"""A model and its checkpoints, as the plan knows them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shape_of_learning.checkpoints.shapes import Shape, completed
from shape_of_learning.checkpoints.verdicts import KnownBad
from shape_of_learning.plan.steps import Checkpoint, OfferedSteps
from shape_of_learning.training.recipe import revision_of_step


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
    known_bad : tuple of KnownBad
        Published mistakes.
    last_step, warmup_steps : int or None
        Where training ended, among the checkpoints or not, and until which the learning rate rose; None where
        nothing tells.
    note : str
        A sentence for the captions of figures by training step; may be empty.
    tokenizer : str
        A repository, if it is not in the model's own.
    gated, needs_code : bool
        Whether the Hub asks for a licence to be accepted; whether its architecture is code from the Hub,
        which is never run.
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
    separates_texts : bool
        Whether, for all that is known before a job, its tokenizer puts something between two texts.
    """

    name: str
    label: str
    family: str
    kind: str
    shape: Shape
    checkpoints: tuple[Checkpoint, ...] = ()
    offered: OfferedSteps | None = None
    known_bad: tuple[KnownBad, ...] = ()
    last_step: int | None = None
    warmup_steps: int | None = None
    note: str = ""
    tokenizer: str = ""
    gated: bool = False
    needs_code: bool = False
    precision: str | None = None
    table_1: Mapping[str, Any] | None = None
    vocabulary: int | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)
    saved_steps: tuple[int, ...] = ()
    origin: "Model | None" = None
    origin_revision: str | None = None
    separates_texts: bool = True

    def with_shape(self, own: Shape) -> "Model":
        """Fill in what the entry leaves out by what the checkpoint says; refuse what contradicts it."""
        return replace(self, shape=completed(self.shape, own, f"model `{self.name}`"))

    @property
    def has_training_steps(self) -> bool:
        """Whether there is a training curve to draw."""
        return self.offered is not None or len(self.checkpoints) > 1

    @property
    def names(self) -> list[str]:
        """Names of all checkpoints that can be trained further, where they are known without the Hub."""
        if self.saved_steps:
            return [revision_of_step(step) for step in self.saved_steps]
        return [] if self.offered is not None else [each.name for each in self.checkpoints]

    @property
    def final(self) -> str | None:
        """Name of the last checkpoint, unless only what the Hub lists says which is good."""
        return None if self.kind == "repository" else self.names[-1]

    @property
    def device(self) -> str:
        """Where it is trained."""
        return self.recipe.get("device", "cpu")

    @property
    def tokens_per_step(self) -> int:
        """Tokens of a batch of its pretraining."""
        return self.recipe["batch_size"] * self.recipe["context"]

    @property
    def local_folders(self) -> dict[str, str]:
        """Names of checkpoints that lie in folders of the user's -> these."""
        return {each.name: each.path for each in self.checkpoints if each.path}

    def as_evidence(self) -> dict[str, Any]:
        """What claims ask of a model besides its numbers."""
        facts = {"kind": "pretrained"}
        if self.origin is not None:
            task = self.recipe["task"]
            facts = {"kind": "fine_tuning", "origin": self.origin.name, "treatment": task}
        elif "twin_of" in self.recipe:
            treatment = f"{self.recipe['regulariser']} {self.recipe['strength']:g}"
            facts = {"kind": "twin", "origin": self.recipe["twin_of"], "treatment": treatment}
        shape = {"role": self.shape.role, "layers": self.shape.layers}
        return {"name": self.name, **shape, "warmup_steps": self.warmup_steps, **facts}
