"""Models and their checkpoints, as the entries of ``config/models/*.yaml`` describe them."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.checkpoint_files import CONFIGURATION
from shape_of_learning.checkpoints.integrity import KnownBad
from shape_of_learning.checkpoints.model_entry import (
    Shape,
    completed,
    read_configuration_file,
    shape_of,
)
from shape_of_learning.errors import InputError
from shape_of_learning.plan.checkpoint_list import (
    Checkpoint,
    OfferedSteps,
    known_mistakes,
    listed_checkpoints,
    offered_steps,
)
from shape_of_learning.plan.local_curve import local_checkpoints, steps_on_disk
from shape_of_learning.plan.revision_template import PLACEHOLDERS, RevisionTemplate
from shape_of_learning.plan.schema import unknown_name, validate
from shape_of_learning.plan.step_rules import StepRule
from shape_of_learning.pretraining.recipe import Recipe
from shape_of_learning.storage.yaml_file import read_yaml

# The key of an entry that says where its checkpoints come from -> that source.
SOURCES = {"repository": "hub", "path": "path", "pretraining": "pretraining"}


@dataclass(frozen=True)
class Model:
    """A model and its checkpoints, ordered by step.

    Attributes
    ----------
    source : str
        ``"hub"``, ``"path"`` (local folders in Hugging Face format) or ``"pretraining"``.
    shape : Shape
        Role, layers and widths, as far as they are known: where only ``config.json`` on the Hub says them,
        they are not.
    checkpoints : tuple of Checkpoint
        Those that the entry names by itself.
    offered : OfferedSteps or None
        Steps that are chosen among what the Hub offers, in addition.
    known_bad : tuple of KnownBad
        Published mistakes.
    last_step : int or None
        Where training ended, whether that step is among the checkpoints or not: as the entry states, else
        for a `path` the last step on the disk; None where neither tells.
    note : str
        A sentence for the captions of figures by training step; may be empty.
    gated, needs_code : bool
        Whether the Hub asks for a licence to be accepted; whether its architecture is code from the Hub,
        which is never run.
    precision : str or None
        Overrides ``forward.precision``.
    pretraining, table_1 : mapping or None
        The recipe of local pretraining; the columns of Table 1.
    """

    name: str
    label: str
    family: str
    source: str
    shape: Shape
    checkpoints: tuple[Checkpoint, ...]
    offered: OfferedSteps | None = None
    known_bad: tuple[KnownBad, ...] = ()
    last_step: int | None = None
    note: str = ""
    tokenizer: str = ""
    gated: bool = False
    needs_code: bool = False
    precision: str | None = None
    pretraining: Mapping[str, Any] | None = None
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
    def has_training_steps(self) -> bool:
        """Whether there is a training curve to draw."""
        return self.offered is not None or len(self.checkpoints) > 1


Entries = dict[str, tuple[Path, Any]]


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
            entries[name] = file, entry
    return entries


def read_models(entries: Entries, names: list[str]) -> dict[str, Model]:
    """Parse the entries called `names`, in that order.

    Raises
    ------
    InputError
        For a name that is not there and for an entry that is malformed.
    """
    models = {}
    for name in names:
        if name not in entries:
            raise unknown_name(name, entries, "model", "configuration key `models`")
        file, entry = entries[name]
        validate(entry, "model", f"model `{name}` in {file}")
        models[name] = _model(name, entry, f"model `{name}` in {file}")
    return models


def _model(name: str, entry: dict[str, Any], where: str) -> Model:
    if "pretraining" in entry:
        try:
            Recipe(
                **{n: entry[n] for n in ("layers", "hidden_size")}, **entry["pretraining"], seed=0
            )
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    if "path" in entry:
        checkpoints = tuple(local_checkpoints(entry, where))
    else:
        _check_names(entry.get("training", {}), entry.get("repository", ""), where)
        checkpoints = tuple(sorted(listed_checkpoints(entry), key=lambda c: c.step or 0))
    repeated = [c for c, times in Counter(c.name for c in checkpoints).items() if times > 1]
    if repeated:
        raise InputError(f"{where}: two checkpoints are called `{repeated[0]}`; give one a `name`")
    for step, times in Counter(c.step for c in checkpoints).items():
        if times > 1:
            raise InputError(f"{where}: two checkpoints are at step {step}; remove one")
    known_bad = known_mistakes(entry)
    _check_known_bad(known_bad, where)
    offered, last_step = offered_steps(entry), _last_step(entry, where)
    listed = {each.step or 0 for each in checkpoints}
    if offered is not None and not isinstance(offered.wanted, StepRule):
        listed.update(offered.wanted)
    if last_step is not None and max(listed, default=0) > last_step:
        raise InputError(
            f"{where}: `training.last_step` is {last_step}, but step {max(listed)} is asked for; correct one "
            "of them"
        )
    return Model(
        name=name,
        label=entry.get("label", name),
        family=entry.get("family", name),
        source=next(source for key, source in SOURCES.items() if key in entry),
        shape=_shape(entry, [each.path for each in checkpoints if each.path], where),
        checkpoints=checkpoints,
        offered=offered,
        known_bad=known_bad,
        last_step=last_step,
        note=entry.get("training", {}).get("note", ""),
        tokenizer=entry.get("tokenizer", ""),
        gated=entry.get("gated", False),
        needs_code=entry.get("needs_code", False),
        precision=entry.get("precision"),
        pretraining=entry.get("pretraining"),
        table_1=entry.get("table_1", _table_1_of_pretraining(entry)),
    )


def _last_step(entry: Mapping[str, Any], where: str) -> int | None:
    training = entry.get("training", {})
    if "path" in entry and training and "last_step" not in training:
        return max(steps_on_disk(entry["path"], where))
    return training.get("last_step")


def _check_known_bad(reports: Sequence[KnownBad], where: str) -> None:
    """Refuse reports that contradict themselves or each other."""
    named = [each for each in reports if each.same_as is not None]
    for report in reports:
        if not report.steps:
            raise InputError(
                f"{where}: `training.known_bad` has `steps` whose `from` is above `to`; exchange them"
            )
    for report in named:
        if report.same_as in report.steps:
            raise InputError(
                f"{where}: `training.known_bad` says that step {report.same_as} has the weights of itself; "
                "take it from `steps`, or correct `same_as`"
            )
    for one, other in combinations(named, 2):
        # Two ranges overlap where one of them begins, if at all; they may be too long to be written out.
        candidates = [*_first_or_all(one.steps), *_first_or_all(other.steps)]
        both = [step for step in candidates if step in one.steps and step in other.steps]
        if both and one.same_as != other.same_as:
            raise InputError(
                f"{where}: `training.known_bad` says that step {min(both)} has the weights of step "
                f"{one.same_as} and of step {other.same_as}; remove it from one of the entries"
            )


def _first_or_all(steps: Collection[int]) -> Collection[int]:
    return steps[:1] if isinstance(steps, range) else steps


def _is_there(file: Path) -> bool:
    """Whether a file exists; a name that no file can have is none."""
    try:
        return file.exists()
    except OSError:
        return False


def _shape(entry: Mapping[str, Any], folders: Sequence[str], where: str) -> Shape:
    """What an entry says of its model, and of local folders what the ``config.json`` of the last one says."""
    width = entry.get("hidden_size", 0)
    last = entry.get("last_hidden_size", width)
    stated = Shape(entry.get("role", ""), entry.get("layers", 0), width, last)
    if not folders:
        return stated
    shapes = {folder: _local_shape(Path(folder), where) for folder in folders}
    *earlier, final = folders
    for folder in earlier:
        if shapes[folder] != shapes[final]:
            raise InputError(
                f"{where}: config.json in {folder} says {vars(shapes[folder])}, in {final} "
                f"{vars(shapes[final])}, so these are no steps of one training run; list the `steps` that are"
            )
    return completed(stated, shapes[final], where)


def _local_shape(folder: Path, where: str) -> Shape:
    if not _is_there(folder / CONFIGURATION):
        raise InputError(
            f"{where}: `path` is {folder}, but there is no config.json; name a folder in Hugging Face "
            "format, absolute or relative to where the workflow runs"
        )
    return shape_of(read_configuration_file(folder), where)


def _check_names(training: Mapping[str, Any], repository: str, where: str) -> None:
    """Refuse patterns from which no step's name can be made."""
    if training and not repository:
        raise InputError(
            f"{where}: `training` needs `repository` or `path` in the same entry; remove it"
        )
    if "steps" not in training:
        return
    if "revision" not in training:
        raise InputError(
            f"{where}: `training.steps` needs `training.revision`, the pattern of the revisions' names, such "
            "as `step{step}`; add it"
        )
    pattern = training["revision"]
    placeholders = re.findall(r"\{(.*?)\}", pattern + repository)
    if unknown := set(placeholders) - PLACEHOLDERS:
        raise InputError(
            f"{where}: `{{{sorted(unknown)[0]}}}` in `training.revision` or `repository` is no "
            f"placeholder; use {', '.join(f'`{{{name}}}`' for name in sorted(PLACEHOLDERS))}"
        )
    if len(set(placeholders)) < len(placeholders):
        raise InputError(
            f"{where}: a placeholder occurs twice in `training.revision` and `repository`; write it once"
        )
    if isinstance(training["steps"], list) and "kilosteps" in placeholders:
        for step in training["steps"]:
            if step % 1000:
                raise InputError(
                    f"{where}: step {step} is no whole number of thousands, which `{{kilosteps}}` needs"
                )
    in_revision, in_repository = (RevisionTemplate(t).has_step for t in (pattern, repository))
    if in_revision == in_repository:
        raise InputError(
            f"{where}: write `{{step}}` into `training.revision`, or into `repository` where each step "
            "has one of its own"
        )
    if in_repository and not isinstance(training["steps"], list):
        raise InputError(
            f"{where}: `training.steps` must be a list where each step has a repository of its own"
        )


def _table_1_of_pretraining(entry: dict[str, Any]) -> dict[str, Any] | None:
    """Table 1's columns of a local model are its recipe."""
    if "pretraining" not in entry:
        return None
    recipe = entry["pretraining"]
    same = ("attention_heads", "vocabulary", "batch_size", "learning_rate")
    tokens = recipe["last_step"] * recipe["batch_size"] * recipe["context"]
    return {**{name: recipe[name] for name in same}, "training_tokens": tokens}
