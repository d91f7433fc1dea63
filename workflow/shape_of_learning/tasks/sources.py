"""Make the examples of tasks from the cleaned corpus, or from data sets of the Hub."""

import hashlib
import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.corpus.windows import read_text
from shape_of_learning.errors import InputError
from shape_of_learning.random_streams import random_stream
from shape_of_learning.tasks.entry import ExamplesJob, HubTask, TaskEntry
from shape_of_learning.tasks.examples import SPLITS, Example, Task, check_task, select_examples

Record = Mapping[str, Any]

# The task `topic`.
# The label of the longest article, of the next one, and so on; both labels then have about as much text.
LABELS = (0, 1, 1, 0, 0, 1, 1, 0)
HELD_OUT_SHARE = 0.2  # of the paragraphs of each article
MIN_EXAMPLES = 10  # in each split; a score of fewer examples would mean little
DEFAULT_LIMITS = {"train": 2000, "held_out": 500}
_END = re.compile(r"(?<=[.!?])\s+(?=\S)")
CHARACTERS = range(40, 301)  # shorter sentences say little, and longer ones are often not sentences
MIN_WORDS = 5


def make_task(job: ExamplesJob, text: Path | None) -> Task:
    """Make the task that an entry of section ``tasks`` describes.

    Parameters
    ----------
    job : ExamplesJob
    text : Path or None
        The cleaned corpus for a ``builtin`` task; None for a task of the Hub.

    Raises
    ------
    InputError
        As :func:`make_topic_task`, :func:`make_hub_task` and :func:`.check_task`.
    """
    where = f"task `{job.task}`"
    limits = {str(split): number for split, number in (job.entry.most or {}).items()}
    if text is not None:
        return check_task(
            make_topic_task(read_text(text), seed=job.seed, limits=limits, corpus=text), where
        )
    task = make_hub_task(job.task, job.entry)
    selected_examples = []
    for split in SPLITS:
        examples = task.split(split)
        random = random_stream(job.seed, f"most of task {job.task} {split}")
        order = random.permutation(len(examples))
        selected_examples += select_examples(examples, order.tolist(), limits.get(split))
    return check_task(replace(task, examples=selected_examples), where)


@dataclass(frozen=True)
class Sentence:
    """A sentence, and the numbers of its article in the text and of its paragraph there."""

    article: int
    paragraph: int
    text: str

    @property
    def group(self) -> str:
        """Name of the paragraph, whose sentences are never on both sides of a split."""
        return f"{self.article}/{self.paragraph}"


def make_topic_task(text: str, *, seed: int, limits: Mapping[str, int], corpus: object) -> Task:
    """Make the task `topic`: the eight longest articles form two groups; the label of a sentence is its group.

    Parameters
    ----------
    text : str
        Articles with a blank line between them; every line is a paragraph.
    seed : int
        Decides the split, by paragraph, and the examples that are drawn.
    limits : mapping of str to int
        The largest number of examples of a split; :data:`DEFAULT_LIMITS` if a split is missing.
    corpus : object
        The name of the text in messages.

    Returns
    -------
    Task
        Each split has as many examples of one label as of the other. The metric is accuracy.

    Raises
    ------
    InputError
        If the text is too short.
    """
    rng = random_stream(seed, "task topic")
    articles = [article for article in text.split("\n\n") if article.strip()]
    if len(articles) < len(LABELS):
        raise InputError(
            f"{corpus} has {len(articles)} articles, but the task `topic` needs at least {len(LABELS)}; "
            "raise `corpus.first_bytes`, or give a larger corpus in corpus.sources"
        )
    all_examples = _make_examples(articles, rng)
    selected_examples: list[Example] = []
    for split in SPLITS:
        examples = [example for example in all_examples if example.split == split]
        limit = limits.get(split, DEFAULT_LIMITS[split])
        if limit < MIN_EXAMPLES:
            raise InputError(
                f"the task `topic` needs {MIN_EXAMPLES} examples of the split `{split}`, but `most.{split}` is "
                f"{limit}; raise it"
            )
        balanced_examples = _balance_examples(examples, rng, limit)
        if len(balanced_examples) < MIN_EXAMPLES:
            raise InputError(
                f"{corpus} is too short for the task `topic`: it gives {len(balanced_examples)} examples of the split "
                f"`{split}`, where {MIN_EXAMPLES} are needed; raise `corpus.first_bytes`, or give a larger corpus in "
                "corpus.sources"
            )
        selected_examples += balanced_examples
    return Task("accuracy", selected_examples)


def _make_examples(articles: Sequence[str], rng: np.random.Generator) -> list[Example]:
    longest = heapq.nlargest(
        len(LABELS), range(len(articles)), key=lambda number: (len(articles[number]), -number)
    )
    labels = dict(zip(longest, LABELS, strict=True))
    sentences = list_sentences((number, articles[number]) for number in longest)
    held_out: set[str] = set()
    for number in longest:  # within each article, so that all are in both splits
        paragraphs = list(dict.fromkeys(s.group for s in sentences if s.article == number))
        number_held_out = max(round(HELD_OUT_SHARE * len(paragraphs)), min(1, len(paragraphs) - 1))
        places = rng.permutation(len(paragraphs))[:number_held_out]
        held_out |= {paragraphs[place] for place in places}
    return [
        Example(SPLITS[s.group in held_out], labels[s.article], s.group, s.text) for s in sentences
    ]


def _balance_examples(
    examples: Sequence[Example], rng: np.random.Generator, limit: int
) -> list[Example]:
    """Draw as many examples of one label as of the other, at most `limit` in all."""
    examples_by_label = [
        [example for example in examples if example.label == label] for label in (0, 1)
    ]
    label_size = min(limit // 2, *map(len, examples_by_label))
    selected_by_label = [
        select_examples(label_examples, rng.permutation(len(label_examples)).tolist(), label_size)
        for label_examples in examples_by_label
    ]
    selected_examples = [example for examples in selected_by_label for example in examples]
    return [selected_examples[place] for place in rng.permutation(len(selected_examples))]


def list_sentences(articles: Iterable[tuple[int, str]]) -> list[Sentence]:
    """List the sentences of numbered articles that occur only once.

    A repeated sentence could be on both sides of a split.
    """
    sentences = [
        Sentence(number, place, sentence)
        for number, article in articles
        for place, paragraph in enumerate(article.splitlines())
        for sentence in map(str.strip, _END.split(paragraph))
        if len(sentence) in CHARACTERS
        and len(sentence.split()) >= MIN_WORDS
        and sentence[-1] in ".!?"
    ]
    times = Counter(_normalise_sentence(sentence.text) for sentence in sentences)
    return [sentence for sentence in sentences if times[_normalise_sentence(sentence.text)] == 1]


def _normalise_sentence(sentence: str) -> str:
    return " ".join(sentence.lower().split())


def make_hub_task(name: str, entry: TaskEntry) -> Task:
    """Make a task from two published splits of a data set.

    Parameters
    ----------
    name : str
        The key of the task in section ``tasks``.
    entry : TaskEntry
        An entry with ``hub``.

    Raises
    ------
    InputError
        As :func:`download_dataset` and :func:`read_examples`, or if a split is missing.
    """
    where = f"task `{name}`"
    hub = entry.hub
    assert hub is not None
    builder = download_dataset(hub, where)
    examples: list[Example] = []
    for split in SPLITS:
        split_name, names = getattr(hub.split, split), list(builder.info.splits)
        if split_name not in names:
            raise InputError(
                f"{where}: `{hub.dataset}` has no split `{split_name}`; correct `hub.split.{split}` to one of "
                f"{', '.join(names)}"
            )
        records = builder.as_dataset(split=split_name)
        examples += read_examples(records, hub, split, f"{where}, split `{split_name}`")
    return Task(entry.metric or "accuracy", examples)


def download_dataset(hub: HubTask, where: str) -> Any:
    """Download a data set, or find it in the user's cache, without running code of its repository.

    Parameters
    ----------
    hub : HubTask
    where : str
        The name of the task in errors.

    Returns
    -------
    datasets.DatasetBuilder
        The data set at the pinned commit.

    Raises
    ------
    InputError
        If the data set or its configuration is missing, needs a script, or is damaged; if the cache has only another
        commit, and the Hub cannot be reached; or as :func:`.hub_errors`.
    """
    try:
        import datasets
    except ModuleNotFoundError:
        raise InputError(
            f"{where}: tasks of the Hub need the package `datasets`, which is not installed; run "
            "`make .venv/tasks`, or install the extra `tasks`"
        ) from None

    from shape_of_learning.checkpoints.hub import hub_errors

    # The library would ask another host than the Hub.
    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False
    datasets.utils.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    dataset, revision = hub.dataset, hub.revision
    with hub_errors(dataset, revision, where=where, key="hub.dataset"):
        try:
            # Without the prefix, the library would prefer a local folder of this name.
            builder = datasets.load_dataset_builder(
                f"hf://datasets/{dataset}", name=hub.config, revision=revision
            )
            if builder.hash == revision:
                builder.download_and_prepare()
        except (datasets.exceptions.DatasetsError, RuntimeError, ValueError) as error:
            # The data set needs a script, which is never run, or the configuration is missing, or the cache is damaged.
            reason = " ".join(str(error).split())[:200].rstrip(".")
            raise InputError(
                f"{where}: `{dataset}` at revision `{revision}` cannot be read ({reason}); correct "
                "`hub.dataset`, `hub.config` or `hub.revision`, or set HF_TOKEN to a token of an account that "
                "may see it"
            ) from error
    if builder.hash != revision:  # without the Hub, the library takes any commit in its cache
        raise InputError(
            f"{where}: the Hugging Face cache has revision `{builder.hash}` of `{dataset}`, not "
            f"`{revision}`, and the Hub cannot be reached; run once with a network, or correct `hub.revision`"
        )
    return builder


def read_examples(
    records: Iterable[Record], hub: HubTask, split: str, where: str
) -> Iterator[Example]:
    """Yield the examples of records, grouped by a digest of their texts, so that equal texts share a group.

    Raises
    ------
    InputError
        If a record lacks a column, or if its label is not a number.
    """
    for number, record in enumerate(records, start=1):
        columns = {"text": hub.text, "text_2": hub.text_2, "label": hub.label}
        columns = {key: column for key, column in columns.items() if column}
        for key, column in columns.items():
            if column not in record:
                raise InputError(
                    f"{where}: there is no column `{column}`; correct `hub.{key}` to one of {', '.join(record)}"
                )
        value = record[columns.pop("label")]
        try:
            label = float(value)
        except (TypeError, ValueError):
            raise InputError(
                f"{where}: the label of record {number} is {str(value)[:60]!r}, which is not a number; correct "
                "`hub.label`"
            ) from None
        texts = [" ".join(str(record[column] or "").split()) for column in columns.values()]
        group = hashlib.sha256("\x1f".join(texts).lower().encode()).hexdigest()[:16]
        yield Example(split, label, group, *texts)
