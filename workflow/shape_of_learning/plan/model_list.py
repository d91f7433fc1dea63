"""Models and their checkpoints, as the entries of ``config/models/*.yaml`` describe them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.shapes import Shape, completed
from shape_of_learning.checkpoints.verdicts import KnownBad
from shape_of_learning.errors import InputError
from shape_of_learning.plan.checkpoint_list import Checkpoint, OfferedSteps
from shape_of_learning.plan.schema import unknown_name, validate
from shape_of_learning.plan.sources.finetuning_source import FinetuningSource
from shape_of_learning.plan.sources.hub_source import HubSource
from shape_of_learning.plan.sources.path_source import PathSource
from shape_of_learning.plan.sources.pretraining_source import PretrainingSource
from shape_of_learning.plan.sources.source import Lookup, Source
from shape_of_learning.plan.step_rules import StepRule
from shape_of_learning.storage.yaml_file import read_yaml

SOURCES: tuple[type[Source], ...] = (HubSource, PathSource, PretrainingSource, FinetuningSource)


@dataclass(frozen=True)
class Model:
    """A model and its checkpoints, ordered by step.

    Attributes
    ----------
    source : Source
        Where they come from; it knows which there are.
    shape : Shape
        Role, layers and widths, as far as they are known: where only ``config.json`` on the Hub says them,
        they are not.
    note : str
        A sentence for the captions of figures by training step; may be empty.
    gated, needs_code : bool
        Whether the Hub asks for a licence to be accepted; whether its architecture is code from the Hub,
        which is never run.
    precision : str or None
        Overrides ``forward.precision``.
    table_1 : mapping or None
        Its columns in Table 1.
    """

    name: str
    label: str
    family: str
    source: Source
    shape: Shape
    note: str = ""
    tokenizer: str = ""
    gated: bool = False
    needs_code: bool = False
    precision: str | None = None
    table_1: Mapping[str, Any] | None = None

    def with_shape(self, own: Shape) -> "Model":
        """Fill in what the entry leaves out by what the checkpoint says; refuse what contradicts it.

        Raises
        ------
        InputError
            As :func:`.completed`.
        """
        return replace(self, shape=completed(self.shape, own, f"model `{self.name}`"))

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Those that the entry names by itself, ordered by step."""
        return self.source.checkpoints

    @property
    def offered(self) -> OfferedSteps | None:
        """Steps that are chosen among what the Hub offers, in addition."""
        return self.source.offered

    @property
    def known_bad(self) -> tuple[KnownBad, ...]:
        """Published mistakes."""
        return self.source.known_bad

    @property
    def last_step(self) -> int | None:
        """Where training ended, among the checkpoints or not; None where nothing tells."""
        return self.source.last_step

    @property
    def has_training_steps(self) -> bool:
        """Whether there is a training curve to draw."""
        return self.offered is not None or len(self.checkpoints) > 1


Entries = dict[str, tuple[str, Any]]


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
            raise InputError(f"{file} must map model names to entries; see config/README.md")
        for name, entry in content.items():
            if name in entries:
                raise InputError(
                    f"model `{name}` is defined in {entries[name][0]} and in {file}; rename one"
                )
            entries[name] = str(file), entry
    return entries


def read_models(entries: Entries, names: list[str]) -> dict[str, Model]:
    """Parse the entries called `names`, in that order.

    Raises
    ------
    InputError
        For a name that is not there and for an entry that is malformed, or that rests on itself.
    """
    reader = _Reader(entries)
    return {name: reader.model(name, "configuration key `models`") for name in names}


def origins_of(models: Iterable[Model]) -> dict[str, Model]:
    """Collect the models from which others are trained further, each after its own origin."""
    found: dict[str, Model] = {}
    for model in models:
        if (origin := model.source.origin) is not None:
            found |= {**origins_of([origin]), origin.name: origin}
    return found


class _Reader:
    """Parses entries, each once; one may rest on others."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._models: dict[str, Model] = {}
        self._open: list[str] = []

    def model(self, name: str, where: str) -> Model:
        """Parse the entry of `name`, which `where` asks for."""
        if name in self._open:
            way = " -> ".join(f"`{each}`" for each in (*self._open[self._open.index(name) :], name))
            raise InputError(f"{where} leads in a circle, {way}; name another model")
        if name not in self._entries:
            raise unknown_name(name, self._entries, "model", where)
        if name not in self._models:
            file, entry = self._entries[name]
            said = f"model `{name}` in {file}"
            validate(entry, "model", said)
            self._open.append(name)
            self._models[name] = _model(name, entry, said, self.model)
            self._open.pop()
        return self._models[name]


def _model(name: str, entry: dict[str, Any], where: str, models: Lookup) -> Model:
    source = next(each for each in SOURCES if each.key in entry)(name, entry, where, models)
    repeated = [c for c, times in Counter(c.name for c in source.checkpoints).items() if times > 1]
    if repeated:
        raise InputError(f"{where}: two checkpoints are called `{repeated[0]}`; give one a `name`")
    for step, times in Counter(c.step for c in source.checkpoints).items():
        if times > 1:
            raise InputError(f"{where}: two checkpoints are at step {step}; remove one")
    listed = {each.step or 0 for each in source.checkpoints}
    if source.offered is not None and not isinstance(source.offered.wanted, StepRule):
        listed.update(source.offered.wanted)
    if source.last_step is not None and max(listed, default=0) > source.last_step:
        raise InputError(
            f"{where}: `training.last_step` is {source.last_step}, but step {max(listed)} is asked for; "
            "correct one of them"
        )
    return Model(
        name=name,
        label=entry.get("label", name),
        family=entry.get("family", name),
        source=source,
        shape=source.shape,
        note=entry.get("training", {}).get("note", source.note),
        tokenizer=entry.get("tokenizer", ""),
        gated=entry.get("gated", False),
        needs_code=entry.get("needs_code", False),
        precision=entry.get("precision"),
        table_1=entry.get("table_1", source.table_1),
    )
