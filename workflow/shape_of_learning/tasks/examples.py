"""The examples of a task, and the table that holds them."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, compute_sha256, read_rows, write_table

COLUMNS = ("split", "label", "group", "text", "text_2")
SPLITS = ("train", "held_out")
# Metric of predictions -> whether the labels are classes.
METRICS = {"accuracy": True, "matthews": True, "spearman": False}


@dataclass(frozen=True)
class Example:
    """A labelled text, or a labelled pair of texts.

    Attributes
    ----------
    split : str
        ``"train"`` or ``"held_out"``.
    label : float
        A class as a whole number, or a grade.
    group : str
        Examples of a group, such as a paragraph or equal texts, are never on both sides of the split.
    text, text_2 : str
        The second text is empty in a task of single texts.
    """

    split: str
    label: float
    group: str
    text: str
    text_2: str = ""


@dataclass(frozen=True)
class Task:
    """Examples, and the metric of predictions of their labels.

    Attributes
    ----------
    metric : str
        One of :data:`METRICS`.
    examples : list of Example
    """

    metric: str
    examples: list[Example]

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes and not grades."""
        return METRICS[self.metric]

    @property
    def has_pairs(self) -> bool:
        """Whether examples are pairs of texts."""
        return any(example.text_2 for example in self.examples)

    @cached_property
    def classes(self) -> list[int]:
        """The classes that occur, ascending; empty for grades."""
        return sorted({int(e.label) for e in self.examples}) if self.has_classes else []

    def split(self, name: str) -> list[Example]:
        """List the examples of one split, in the order of the table."""
        return [example for example in self.examples if example.split == name]


def check_task(task: Task, where: str) -> Task:
    """Return a task; refuse a task that cannot be learnt or judged.

    Parameters
    ----------
    task : Task
    where : str
        The name of the task in messages, such as ``"task `topic`"``.

    Raises
    ------
    InputError
        If a split has no examples, if a text is empty, or if labels are constant, not finite, or not classes although
        the metric needs classes.
    """
    for name in SPLITS:
        examples = task.split(name)
        if not examples:
            raise InputError(f"{where}: the split `{name}` has no examples; correct its entry")
        labels = {example.label for example in examples}
        if not all(map(math.isfinite, labels)):
            raise InputError(f"{where}: a label is NaN or infinite; correct `label` in its entry")
        if task.has_classes and (fractions := sorted(label for label in labels if label % 1)):
            raise InputError(
                f"{where}: the label {fractions[0]:g} is not a whole number, as a class must be; correct `label` in "
                "its entry, or set `metric: spearman` for grades"
            )
        if len(labels) == 1:
            raise InputError(
                f"{where}: all labels of the split `{name}` are {labels.pop():g}; correct `label` or `split` in its "
                "entry (published test sets often hide their labels)"
            )
        if any(not e.text or (task.has_pairs and not e.text_2) for e in examples):
            raise InputError(f"{where}: a text is empty; correct `text` and `text_2` in its entry")
    return task


def write_task(path: Path, task: Task) -> None:
    """Write the table of a task and then, beside it, a small JSON file that describes it."""
    rows = [
        (e.split, int(e.label) if task.has_classes else float(e.label), e.group, e.text, e.text_2)
        for e in task.examples
    ]
    write_table(path, COLUMNS, rows)
    description = {
        "metric": task.metric,
        "texts": 2 if task.has_pairs else 1,
        "classes": task.classes,
        **{name: len(task.split(name)) for name in SPLITS},
        "sha256": compute_sha256(path),
    }
    with atomic_write(path.with_suffix(".json")) as partial:
        partial.write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")


def read_task(path: Path) -> Task:
    """Read a task from the files of :func:`write_task`."""
    metric = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["metric"]
    rows = read_rows(path, COLUMNS)
    return Task(metric, [Example(split, float(label), *texts) for split, label, *texts in rows])


def select_examples(
    examples: Sequence[Example], order: Sequence[int], limit: int | None
) -> list[Example]:
    """Select the `limit` examples that are first in `order`, without reordering them; None selects all."""
    return [examples[number] for number in sorted(order[:limit])]
