"""Tasks by their entries in the configuration."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shape_of_learning.corpus.windows import read_text
from shape_of_learning.errors import InputError
from shape_of_learning.random_streams import random_stream
from shape_of_learning.tasks.archives import archive_task
from shape_of_learning.tasks.builtin import builtin_task
from shape_of_learning.tasks.examples import SPLITS, Task, at_most, checked
from shape_of_learning.tasks.hub_tasks import hub_task


def make_task(
    name: str, entry: Mapping[str, Any], *, text: Path | None, archive: Path, seed: int
) -> Task:
    """Make the task that an entry of section ``tasks`` describes.

    Parameters
    ----------
    name : str
        Its key.
    entry : mapping
        With ``builtin``, ``urls`` or ``hub``, as ``config/README.md`` has it.
    text : Path, optional
        The cleaned corpus, of which a ``builtin`` one is made.
    archive : Path
        Where the archive of one with ``urls`` is, or will be.
    seed : int
        Decides what is drawn.

    Raises
    ------
    InputError
        As its source, and if it is nothing to learn: see :func:`.checked`.
    """
    where, most = f"task `{name}`", entry.get("most", {})
    if "builtin" in entry:
        if text is None:
            raise InputError(
                f"{where}: a task with `builtin` needs the text of a corpus; give --text"
            )
        made = builtin_task(entry["builtin"], read_text(text), seed=seed, most=most, corpus=text)
        return checked(made, where)
    task = (
        archive_task(name, entry, archive, seed=seed) if "urls" in entry else hub_task(name, entry)
    )
    chosen = []
    for split in SPLITS:
        examples = task.split(split)
        order = random_stream(seed, f"most of task {name} {split}").permutation(len(examples))
        chosen += at_most(examples, order.tolist(), most.get(split))
    return checked(replace(task, examples=chosen), where)
