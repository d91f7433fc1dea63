"""Labelled texts from files in archives."""

import csv
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.corpus.corpus_file import Expected
from shape_of_learning.corpus.mirrors import CorpusSource, fetch
from shape_of_learning.errors import InputError
from shape_of_learning.random_streams import random_stream
from shape_of_learning.tasks.examples import SPLITS, Example, Task
from shape_of_learning.tasks.records import Fields, Record, examples_of

MOST_BYTES = 500_000_000  # of a file in an archive
HELD_OUT = 0.2  # of the texts, equal ones counted once
LISTED = 5  # names that a message shows


def archive_task(
    name: str, entry: Mapping[str, Any], archive: Path, *, seed: int, pause: float = 1.0
) -> Task:
    """Make a task of the records in an archive, which is downloaded unless it is there.

    Parameters
    ----------
    name : str
        Key in section ``tasks``.
    entry : mapping
        Its value: ``urls``, ``sha256``, ``member``, ``format``, ``text``, ``label`` and what has defaults.
    archive : Path
        Where the archive is, or will be.
    seed : int
        Decides the split, a fifth of the texts being held out. Equal texts are on one side.
    pause : float
        As of :func:`.fetch`.

    Raises
    ------
    InputError
        If the archive cannot be had, has another hash or lacks a member, or a record lacks what it must have.
    """
    where = f"task `{name}`"
    source = CorpusSource(
        name,
        entry["urls"],
        expected=Expected(sha256=entry["sha256"]),
        section="tasks",
        unpack=False,
    )
    fetch(source, archive, pause=pause)
    members = [entry["member"]] if isinstance(entry["member"], str) else entry["member"]
    records: list[Record] = []
    for member in members:
        content = read_member(archive, member, where)
        records += _parsed(content, entry, f"{where}, {member}")
    fields = Fields(entry["text"], entry.get("text_2"), entry["label"])
    metric = entry.get("metric", "accuracy")
    examples = list(examples_of(records, fields, "", where))
    return Task(metric, _split(examples, random_stream(seed, f"task {name}")))


def read_member(archive: Path, member: str, where: str) -> bytes:
    """Read one file of a tar archive, or of a tar archive in it.

    Parameters
    ----------
    archive : Path
        Compressed by anything that Python unpacks, or not at all.
    member : str
        Path in the archive; where the file is in an archive of the archive, through the name of that:
        ``folder/inner.tar.gz/file``.
    where : str
        How messages call what is read.

    Raises
    ------
    InputError
        If it is no such archive, or lacks the member.
    """
    try:
        with archive.open("rb") as file:
            return _read_member(file, member, where, depth=0)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        if isinstance(error, InputError) or (isinstance(error, OSError) and error.errno):
            raise
        raise InputError(
            f"{where}: {archive} is no tar archive that can be read ({error})"
        ) from error


def _read_member(file: Any, member: str, where: str, *, depth: int) -> bytes:
    with closing(tarfile.open(fileobj=file, mode="r:*")) as tar:
        files = {entry.name: entry for entry in tar.getmembers() if entry.isfile()}
        # The file itself, or the archive that its path leads through.
        found = member if member in files else None
        inner = next((name for name in files if member.startswith(f"{name}/")), None)
        wanted = files.get(found or inner or "")
        if wanted is None or (found is None and depth):
            listed = ", ".join(list(files)[:LISTED]) + (", …" if len(files) > LISTED else "")
            raise InputError(
                f"{where}: the archive holds {listed or 'nothing'}, not {member!r}; correct `member`"
            )
        if wanted.size > MOST_BYTES:
            raise InputError(f"{where}: {wanted.name} has more than {MOST_BYTES:,} bytes")
        stream = tar.extractfile(wanted)
        assert stream is not None  # it is a file
        if found is not None:
            return stream.read()
        assert inner is not None
        rest = member.removeprefix(f"{inner}/")
        return _read_member(stream, rest, where, depth=depth + 1)


def _parsed(content: bytes, entry: Mapping[str, Any], where: str) -> list[Record]:
    """Read the records of a JSON list, or of a table with or without a header."""
    try:
        text = content.decode("utf-8-sig")
        if entry["format"] == "json":
            records = json.loads(text)
            if not isinstance(records, list) or not all(isinstance(r, dict) for r in records):
                raise ValueError("it is no list of records")
            # What is empty all over ends the lists of some.
            return [record for record in records if any(value for value in record.values())]
        return list(_rows(text, entry))
    except (ValueError, csv.Error) as error:
        raise InputError(f"{where}: it is no {entry['format']} file ({error})") from error


def _rows(text: str, entry: Mapping[str, Any]) -> Iterator[Record]:
    lines: Iterable[list[str]]
    if entry["format"] == "tsv":  # by its definition without quotes
        lines = csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        lines = csv.reader(io.StringIO(text, newline=""))
    rows = (line for line in lines if line)
    columns = entry.get("columns") or next(rows, [])
    for number, row in enumerate(rows, start=1):
        if len(row) != len(columns):
            raise ValueError(f"record {number} has {len(row)} columns, not {len(columns)}")
        yield dict(zip(columns, row, strict=True))


def _split(examples: list[Example], rng: np.random.Generator) -> list[Example]:
    """Hold out a share of the groups, and shuffle."""
    groups = list(dict.fromkeys(example.group for example in examples))
    order = rng.permutation(len(groups))
    held_out = {groups[place] for place in order[: round(HELD_OUT * len(groups))]}
    train, other = SPLITS
    return [
        Example(other if e.group in held_out else train, e.label, e.group, e.text, e.text_2)
        for e in (examples[place] for place in rng.permutation(len(examples)))
    ]
