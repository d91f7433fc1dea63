"""Tasks by their entries in the configuration: from the cleaned corpus, or from data sets of the Hub."""

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

# Of the task `topic`.
# In which of two groups the longest article is, the next one, and so on: about as much text in both.
GROUPS = (0, 1, 1, 0, 0, 1, 1, 0)
HELD_OUT = 0.2  # of the paragraphs of each article
FEWEST = 10  # examples of a split with which a score means anything
MOST = {"train": 2000, "held_out": 500}
_END = re.compile(r"(?<=[.!?])\s+(?=\S)")
CHARACTERS = range(40, 301)  # shorter ones say little, and longer ones are often no sentences
FEWEST_WORDS = 5


def make_task(job: ExamplesJob, text: Path | None) -> Task:
    """Make the task that an entry of section ``tasks`` describes.

    Parameters
    ----------
    job : ExamplesJob
    text : Path or None
        The cleaned corpus, of which a ``builtin`` task is made.

    Raises
    ------
    InputError
        As its source, and if it is nothing to learn: see :func:`.check_task`.
    """
    where = f"task `{job.task}`"
    most = {str(split): number for split, number in (job.entry.most or {}).items()}
    if text is not None:
        return check_task(
            make_topic_task(read_text(text), seed=job.seed, most=most, corpus=text), where
        )
    task = make_hub_task(job.task, job.entry)
    selected_examples = []
    for split in SPLITS:
        examples = task.split(split)
        random = random_stream(job.seed, f"most of task {job.task} {split}")
        order = random.permutation(len(examples))
        selected_examples += select_examples(examples, order.tolist(), most.get(split))
    return check_task(replace(task, examples=selected_examples), where)


@dataclass(frozen=True)
class Sentence:
    """A sentence, and the numbers of its article in the text and of its paragraph there."""

    article: int
    paragraph: int
    text: str

    @property
    def group(self) -> str:
        """The paragraph, which is never on both sides of a split."""
        return f"{self.article}/{self.paragraph}"


def make_topic_task(text: str, *, seed: int, most: Mapping[str, int], corpus: object) -> Task:
    """Make the task in which of two groups of four articles a sentence is, of the eight longest.

    Parameters
    ----------
    text : str
        Articles with a blank line between them, a paragraph a line.
    seed : int
        Decides the split, by paragraph, and every choice.
    most : mapping of str to int
        Most examples of each split; :data:`MOST` for one that is not there.
    corpus : object
        How messages call the text.

    Returns
    -------
    Task
        Each split has as many examples of one label as of the other, judged by accuracy.

    Raises
    ------
    InputError
        If the text is too short.
    """
    rng = random_stream(seed, "task topic")
    articles = [article for article in text.split("\n\n") if article.strip()]
    if len(articles) < len(GROUPS):
        raise InputError(
            f"{corpus} has {len(articles)} articles, but the task `topic` is made of at least {len(GROUPS)}; "
            "raise `corpus.first_bytes`, or give a larger corpus in corpus.sources"
        )
    all_examples = _make_examples(articles, rng)
    selected_examples: list[Example] = []
    for split in SPLITS:
        examples = [example for example in all_examples if example.split == split]
        balanced_examples = _balance_examples(examples, rng, most.get(split, MOST[split]))
        if len(balanced_examples) < FEWEST:
            raise InputError(
                f"{corpus} is too short for the task `topic`: it gives {len(balanced_examples)} examples of the split "
                f"`{split}`, where {FEWEST} are needed; raise `corpus.first_bytes`, or give a larger corpus in "
                "corpus.sources"
            )
        selected_examples += balanced_examples
    return Task("accuracy", selected_examples)


def _make_examples(articles: Sequence[str], rng: np.random.Generator) -> list[Example]:
    longest = heapq.nlargest(
        len(GROUPS), range(len(articles)), key=lambda number: (len(articles[number]), -number)
    )
    labels = dict(zip(longest, GROUPS, strict=True))
    sentences = list_sentences((number, articles[number]) for number in longest)
    held_out: set[str] = set()
    for number in longest:  # within each article, so that all are in both splits
        paragraphs = list(dict.fromkeys(s.group for s in sentences if s.article == number))
        share = max(round(HELD_OUT * len(paragraphs)), min(1, len(paragraphs) - 1))
        held_out |= {paragraphs[place] for place in rng.permutation(len(paragraphs))[:share]}
    return [
        Example(SPLITS[s.group in held_out], labels[s.article], s.group, s.text) for s in sentences
    ]


def _balance_examples(
    examples: Sequence[Example], rng: np.random.Generator, most: int
) -> list[Example]:
    """As many examples of each label, `most` in all at most."""
    examples_by_label = [
        [example for example in examples if example.label == label] for label in (0, 1)
    ]
    label_size = min(most // 2, *map(len, examples_by_label))
    selected_groups = [
        select_examples(group, rng.permutation(len(group)).tolist(), label_size)
        for group in examples_by_label
    ]
    selected_examples = [example for group in selected_groups for example in group]
    return [selected_examples[place] for place in rng.permutation(len(selected_examples))]


def list_sentences(articles: Iterable[tuple[int, str]]) -> list[Sentence]:
    """List the sentences of numbered articles, without those that occur more than once.

    A repeated one could stand on both sides of a split.
    """
    sentences = [
        Sentence(number, place, sentence)
        for number, article in articles
        for place, paragraph in enumerate(article.splitlines())
        for sentence in map(str.strip, _END.split(paragraph))
        if len(sentence) in CHARACTERS
        and len(sentence.split()) >= FEWEST_WORDS
        and sentence[-1] in ".!?"
    ]
    times = Counter(_normalise_sentence(sentence.text) for sentence in sentences)
    return [sentence for sentence in sentences if times[_normalise_sentence(sentence.text)] == 1]


def _normalise_sentence(sentence: str) -> str:
    return " ".join(sentence.lower().split())


def make_hub_task(name: str, entry: TaskEntry) -> Task:
    """Make a task of two splits of a data set, both as they were published.

    Parameters
    ----------
    name : str
        Key in section ``tasks``.
    entry : TaskEntry
        Its value, with ``hub``.

    Raises
    ------
    InputError
        As :func:`download_dataset`; or if a split or a column is not there.
    """
    where, hub = f"task `{name}`", entry.hub
    assert hub is not None
    builder = download_dataset(hub, where)
    examples: list[Example] = []
    for split in SPLITS:
        split_name, names = getattr(hub.split, split), list(builder.info.splits)
        if split_name not in names:
            raise InputError(
                f"{where}: `{hub.dataset}` has no split `{split_name}`, which its entry gives as "
                f"`hub.split.{split}`; there are {', '.join(names)}"
            )
        records = builder.as_dataset(split=split_name)
        examples += read_examples(records, hub, split, f"{where}, split `{split_name}`")
    return Task(entry.metric or "accuracy", examples)


def download_dataset(hub: HubTask, where: str) -> Any:
    """Download a data set, or find it in the user's cache; nothing that a repository brings is run.

    Parameters
    ----------
    hub : HubTask
    where : str
        How an error names the task.

    Returns
    -------
    datasets.DatasetBuilder
        Of the commit that is pinned: without the Hub, the library would take any that is cached.

    Raises
    ------
    InputError
        If the data set or its configuration is not there, needs a script, or is damaged; as
        :func:`.hub_errors`; or if another commit is all that can be had.
    """
    try:
        import datasets
    except ModuleNotFoundError:
        raise InputError(
            f"{where}: tasks of the Hub need the package `datasets`, which is not installed; run "
            "`make .venv/tasks`, or install the extra `tasks`"
        ) from None

    from shape_of_learning.checkpoints.hub import hub_errors

    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False  # which another host than the Hub keeps
    datasets.utils.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    dataset, revision = hub.dataset, hub.revision
    with hub_errors(dataset, revision, where=where, key="hub.dataset"):
        try:
            # The prefix keeps a local folder of this name from being taken.
            builder = datasets.load_dataset_builder(
                f"hf://datasets/{dataset}", name=hub.config, revision=revision
            )
            if builder.hash == revision:
                builder.download_and_prepare()
        except (datasets.exceptions.DatasetsError, RuntimeError, ValueError) as error:
            # Of a script, which is never run, of a configuration that is not there, or of a damaged cache.
            reason = " ".join(str(error).split())[:200].rstrip(".")
            raise InputError(
                f"{where}: `{dataset}` at revision `{revision}` cannot be read ({reason}); correct "
                "`hub.dataset`, `hub.config` or `hub.revision`, or set HF_TOKEN to a token of an account that "
                "may see it"
            ) from error
    if builder.hash != revision:
        raise InputError(
            f"{where}: of `{dataset}` the Hugging Face cache has revision `{builder.hash}`, not "
            f"`{revision}`, and the Hub cannot be asked; run once where it can, or correct `hub.revision`"
        )
    return builder


def read_examples(
    records: Iterable[Record], hub: HubTask, split: str, where: str
) -> Iterator[Example]:
    """Yield the examples of records; the group of each is a digest of its texts, so that equal ones share it.

    Raises
    ------
    InputError
        If a record lacks a column, or its label is no number.
    """
    for number, record in enumerate(records, start=1):
        columns = {"text": hub.text, "text_2": hub.text_2, "label": hub.label}
        columns = {key: column for key, column in columns.items() if column}
        for key, column in columns.items():
            if column not in record:
                raise InputError(
                    f"{where}: there is no column `{column}`, which its entry gives as `{key}`; there are "
                    f"{', '.join(record)}"
                )
        value = record[columns.pop("label")]
        try:
            label = float(value)
        except (TypeError, ValueError):
            raise InputError(
                f"{where}: the label of record {number} is {str(value)[:60]!r}, which is no number; correct "
                "`label`"
            ) from None
        texts = [" ".join(str(record[column] or "").split()) for column in columns.values()]
        group = hashlib.sha256("\x1f".join(texts).lower().encode()).hexdigest()[:16]
        yield Example(split, label, group, *texts)
