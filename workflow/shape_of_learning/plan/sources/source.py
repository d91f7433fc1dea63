"""What the plan and the rules ask of every source of checkpoints."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.checkpoints.verdicts import KnownBad
from shape_of_learning.errors import InputError
from shape_of_learning.plan.checkpoint_list import Checkpoint, OfferedSteps
from shape_of_learning.plan.step_rules import StepRule

if TYPE_CHECKING:
    from shape_of_learning.plan.model_list import Model

SHOWN_STEPS = 20
Lookup = Callable[[str, str], "Model"]


@dataclass(frozen=True)
class Places:
    """Where a run keeps things.

    Attributes
    ----------
    downloads : str
        Folder of what comes from the Hub.
    are_kept : bool
        Whether downloads stay after use; then receipts stand for them.
    own_path : callable
        Gives a path such as ``<results>/checkpoints`` as jobs find it.
    """

    downloads: str
    are_kept: bool
    own_path: Callable[[str], str]


class Source(ABC):
    """Where the checkpoints of one model come from.

    Parameters
    ----------
    model : str
        Its name.
    entry : mapping
        Of the model list, as the schema allows it.
    where : str
        How an error names the entry.
    models : callable
        Gives another model of the list, by its name and how an error says who names it.

    Attributes
    ----------
    key : str
        The key by which an entry has this source.
    checkpoints : tuple of Checkpoint
        Those that the entry names by itself, by step.
    offered : OfferedSteps or None
        Steps that are chosen among what the Hub offers, in addition.
    known_bad : tuple of KnownBad
        Published mistakes.
    last_step : int or None
        Where training ended, whether that step is among the checkpoints or not; None where nothing tells.
    warmup_steps : int or None
        Until which the learning rate rose; None where nothing tells.
    shape : Shape
        Role, layers and widths, as far as they are known.
    table_1 : mapping or None
        Columns of Table 1 that the source knows.
    vocabulary : int or None
        Entries of the vocabulary, where the source knows them.
    origin : Model or None
        The model that this one is trained further from.
    note : str
        A sentence for the captions of figures by training step.
    separates_texts : bool
        Whether, for all that is known before a job, a tokenizer puts something between two texts.

    Raises
    ------
    InputError
        One sentence that names the key.
    """

    key: ClassVar[str]
    is_remote: ClassVar[bool] = False

    def __init__(self, model: str, entry: Mapping[str, Any], where: str, models: Lookup) -> None:
        self.model, self.where = model, where
        self.checkpoints: tuple[Checkpoint, ...] = ()
        self.offered: OfferedSteps | None = None
        self.known_bad: tuple[KnownBad, ...] = ()
        self.last_step: int | None = entry.get("training", {}).get("last_step")
        self.warmup_steps: int | None = entry.get("training", {}).get("warmup_steps")
        self.shape = stated_shape(entry)
        self.table_1: Mapping[str, Any] | None = None
        self.vocabulary: int | None = None
        self.origin: Model | None = None
        self.note = ""

    @property
    def separates_texts(self) -> bool:
        """As the class says."""
        return True

    @property
    def names(self) -> list[str]:
        """Names of all checkpoints that can be trained further, where they are known without the Hub."""
        return [] if self.offered is not None else [each.name for each in self.checkpoints]

    @property
    def final(self) -> str | None:
        """Name of the last checkpoint, unless only what the Hub lists says which is good."""
        return None

    @property
    def local_folders(self) -> dict[str, str]:
        """Names of checkpoints that lie in folders of the user's -> these."""
        return {}

    def inputs(self, revision: str, places: Places) -> list[str]:
        """Files and folders that a checkpoint's job waits for, if it waits for any."""
        return []

    @abstractmethod
    def folder(self, revision: str, places: Places) -> str:
        """Tell where a job finds the files of a checkpoint."""

    @abstractmethod
    def receipt(self, revision: str, places: Places) -> str | None:
        """Name the file that says what the files of a checkpoint were as they came; None if nothing does."""

    def weights(self, revision: str, pins: Callable[[], list[str]]) -> Any:
        """What decides a checkpoint's weights, where no receipt says it.

        Parameters
        ----------
        revision : str
            Name of the checkpoint.
        pins : callable
            Gives what the lock pins of it.
        """
        return ""


def stated_shape(entry: Mapping[str, Any]) -> Shape:
    """What an entry says of its model."""
    width = entry.get("hidden_size", 0)
    last = entry.get("last_hidden_size", width)
    return Shape(entry.get("role", ""), entry.get("layers", 0), width, last)


def chosen_steps(wanted: Any, there: Iterable[int], where: str, place: str) -> list[int]:
    """Choose among the steps that there are.

    Parameters
    ----------
    wanted : object
        A list of steps, or a rule as :class:`.StepRule` reads it.
    there : iterable of int
        Steps.
    where : str
        How an error names the entry.
    place : str
        Says, with a verb, who has these steps.

    Raises
    ------
    InputError
        If a step of the list is not there.
    """
    found, rule = sorted(there), StepRule.parse(wanted)
    steps = sorted(wanted) if rule is None else rule.choose(found)
    if missing := [step for step in steps if step not in set(found)]:
        raise InputError(
            f"{where}: `training.steps` asks for {_listed(missing)}, but {place} only the steps "
            f"{_listed(found)}; correct the list, or write `all`"
        )
    return steps


def _listed(steps: Iterable[int]) -> str:
    shown = [str(step) for step in steps]
    more = f" and {len(shown) - SHOWN_STEPS} more" if len(shown) > SHOWN_STEPS else ""
    return ", ".join(shown[:SHOWN_STEPS]) + more
