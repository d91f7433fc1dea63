"""Folders of the user's, such as the ``checkpoint-500`` of a Trainer."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    Shape,
    checkpoint_files,
    completed,
    read_configuration_file,
    shape_of,
)
from shape_of_learning.errors import InputError
from shape_of_learning.plan.checkpoint_list import Checkpoint
from shape_of_learning.plan.sources.source import Lookup, Places, Source, chosen_steps
from shape_of_learning.script_arguments.settings import LOCAL
from shape_of_learning.storage.fingerprints import fingerprint
from shape_of_learning.training.recipe import revision_of_step

STEP = "{step}"


class PathSource(Source):
    """Local folders in Hugging Face format; where they lie is no part of what is computed from them."""

    key = "path"

    def __init__(self, model: str, entry: Mapping[str, Any], where: str, models: Lookup) -> None:
        super().__init__(model, entry, where, models)
        self.checkpoints = tuple(_local_checkpoints(entry, where))
        if entry.get("training") and self.last_step is None:
            self.last_step = max(_steps_on_disk(entry["path"], where))
        self.shape = _shape(self.shape, [each.path for each in self.checkpoints], where)
        self._fingerprints: dict[str, str] = {}

    @property
    def final(self) -> str:
        """The last by step."""
        return self.checkpoints[-1].name

    @property
    def local_folders(self) -> dict[str, str]:
        """As the entry names them."""
        return {each.name: each.path for each in self.checkpoints}

    @property
    def separates_texts(self) -> bool:
        """Whether a decoder's tokenizer adds any token to a text, if a ``tokenizer.json`` tells."""
        try:
            file = Path(self.checkpoints[-1].path, "tokenizer.json")
            adds = json.loads(file.read_text(encoding="utf-8"))["post_processor"]
        except (OSError, ValueError, KeyError, TypeError):
            return True
        of_bytes = isinstance(adds, dict) and adds.get("type") == "ByteLevel"
        return self.shape.role != "decoder" or not (adds is None or of_bytes)

    def folder(self, revision: str, places: Places) -> str:
        """A name, which a job looks up, of a folder of the user's."""
        return f"{LOCAL}{self.model}/{revision}"

    def receipt(self, revision: str, places: Places) -> None:
        """None: nobody has fetched them."""
        return None

    def weights(self, revision: str, pins: Callable[[], list[str]]) -> str:
        """Names and fingerprints of the files."""
        if revision not in self._fingerprints:
            try:
                files = checkpoint_files(Path(self.local_folders[revision]))
                prints = " ".join(f"{file.name} {fingerprint(file)}" for file in files)
            except OSError as error:
                raise InputError(
                    f"model `{self.model}`: {error}; correct `path` in its entry"
                ) from None
            self._fingerprints[revision] = prints
        return self._fingerprints[revision]


def _local_checkpoints(entry: Mapping[str, Any], where: str) -> list[Checkpoint]:
    """List the checkpoints of an entry with ``path``, by step.

    Parameters
    ----------
    entry : mapping
        Of the model list. ``{step}`` in its path stands for the digits of a step, all else for itself. Which
        of the steps that are there are meant, its ``training.steps`` says.
    where : str
        How an error names the entry.

    Raises
    ------
    InputError
        If the path does not lead to another folder at each step, or to none at a step that is asked for.
    """
    path, training = entry["path"], entry.get("training")
    _check_pattern(path, training, where)
    if training is None:
        return [Checkpoint("main", "main", path=path)]
    found = _steps_on_disk(path, where)
    if not found:
        raise InputError(
            f"{where}: no folder like {path} holds a {CONFIGURATION}; correct `path`, absolute or relative "
            "to where the workflow runs"
        )
    steps = chosen_steps(training["steps"], found, where, f"like {path} there are")
    tokens = training.get("tokens_per_step")
    return [
        Checkpoint(
            revision_of_step(step),
            revision_of_step(step),
            path=found[step],
            step=step,
            tokens=None if tokens is None else step * tokens,
        )
        for step in steps
    ]


def _steps_on_disk(pattern: str, where: str) -> dict[int, str]:
    """Find the folders that a path with ``{step}`` leads to, and that hold a checkpoint: step -> path.

    Raises
    ------
    InputError
        If two folders have the same step.
    """
    before, _, after = pattern.partition(STEP)
    parent, slash, prefix = before.rpartition("/")
    suffix, _, rest = after.partition("/")
    expression = re.compile(f"{re.escape(prefix)}([0-9]+){re.escape(suffix)}")
    found: dict[int, str] = {}
    try:
        folders = sorted(Path(parent + slash).iterdir())
    except OSError:
        return found
    for each in folders:
        match = expression.fullmatch(each.name)
        folder = each / rest
        if match is None or not (folder / CONFIGURATION).is_file():
            continue
        step = int(match[1])
        if step in found:
            raise InputError(
                f"{where}: {found[step]} and {folder} are both step {step}; rename one of them"
            )
        found[step] = str(folder)
    return found


def _check_pattern(path: str, training: Mapping[str, Any] | None, where: str) -> None:
    example = "such as `path: run/checkpoint-{step}`"
    if training is None:
        if STEP in path:
            raise InputError(
                f"{where}: `path` has `{STEP}`, but nothing says which steps; add `training: {{steps: all}}`"
            )
        return
    for key in ("revision", "checkpoints", "known_bad"):
        if key in training:
            raise InputError(
                f"{where}: `training.{key}` needs `repository`; for folders "
                + ("leave it out" if STEP in path else f"write `{STEP}` into `path`, {example},")
                + " and choose `training.steps`"
            )
    if path.count(STEP) != 1:
        raise InputError(
            f"{where}: `path` is the same folder at every step; write `{STEP}` into it, {example}"
            if STEP not in path
            else f"{where}: `{STEP}` occurs twice in `path`; write it once, {example}"
        )


def _is_there(file: Path) -> bool:
    """Whether a file exists; a name that no file can have is none."""
    try:
        return file.exists()
    except OSError:
        return False


def _shape(stated: Shape, folders: Sequence[str], where: str) -> Shape:
    """What an entry states, completed by what the ``config.json`` of the last folder says."""
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
