"""Sections of the configuration that say which texts there are: corpora, and tasks with labels."""

import os
import re
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from shape_of_learning.files import expand_home
from shape_of_learning.validation import Name, Section, format_value, make_validation_error, must_be

Sha1 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}\Z"), must_be("40 small hexadecimal digits")]
Most = Annotated[int, Field(ge=2, le=100_000_000)]
AlphabetSize = Annotated[int, Field(ge=1, le=1_114_112)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}\Z"), must_be("64 small hexadecimal digits")]


class Source(Section):
    """An entry of `corpus.sources`.

    Attributes
    ----------
    urls
        mirrors, tried in order (to add one reruns nothing); http(s), `file://` or a path; plain, zip, gz,
        bz2 or xz
    builtin
        instead of `urls`: `python_topics`, the help texts that come with Python
    format
        `mediawiki` (an XML export, to be cleaned) or `text` (taken as it is, but that lines end by LF)
    member
        which file of a zip
    sha256
        of the unpacked file; a file that does not match is refused. Without `sha256` or `git_blob`, any file
        from the server is accepted
    git_blob
        its git blob id, if that is published instead
    alphabet_size
        most frequent characters that its text keeps, such as the 205 of enwik8; empty for all
    """

    urls: list[str] | None = Field(None, min_length=1)
    builtin: Literal["python_topics"] | None = None
    format: Literal["mediawiki", "text"]
    member: str | None = None
    sha256: Sha256 | None = None
    git_blob: Sha1 | None = None
    alphabet_size: AlphabetSize | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> "Source":
        if (self.urls is None) == (self.builtin is None):
            raise make_validation_error("needs exactly one of `urls` or `builtin`")
        return self


class Corpus(Section):
    """The text that windows are drawn from.

    Attributes
    ----------
    source
        which entry of `corpus.sources` is used; or the path of a text of your own, in UTF-8
    first_bytes
        how much of the corpus is used; empty for all
    alphabet_size
        most frequent characters that each text keeps; empty for what its source says
    sources
        texts by name; see below
    """

    source: Name = "enwik8"
    first_bytes: int | None = Field(None, ge=1, le=10**15)
    alphabet_size: AlphabetSize | None = None
    sources: dict[Name, Source] = {}

    @model_validator(mode="before")
    @classmethod
    def _own_text(cls, given: Any) -> Any:
        """Let a file be a source without an entry."""
        if not isinstance(given, dict) or not isinstance(stated := given.get("source"), str):
            return given
        sources = given.get("sources") or {}
        file = expand_home(stated)
        if stated in sources or not (file.exists() or os.sep in stated):
            return given
        if not file.is_file():
            what = "a folder" if file.is_dir() else "a pipe or a device"
            what = what if file.exists() else "missing"
            raise make_validation_error(
                f"names the source {format_value(stated)}, which is {what}; give the path of a text"
            )
        name = re.sub("[^A-Za-z0-9]+", "_", file.stem).strip("_")[:50] or "own"
        own = {"urls": [str(file.absolute())], "format": "text"}
        return {**given, "source": name, "sources": {**sources, name: own}}


class Split(Section):
    """Names of published splits."""

    train: Name
    held_out: Name

    @model_validator(mode="after")
    def _two(self) -> "Split":
        if self.train == self.held_out:
            twice = f"names `{self.train}` twice, so that nothing would be held out"
            raise make_validation_error(f"{twice}; name another published split")
        return self


class HubTask(Section):
    """A data set of the Hub."""

    dataset: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*\Z"),
        must_be("`organisation/name`"),
    ]
    config: Name
    revision: Annotated[
        str,
        Field(pattern=r"^[0-9a-f]{40}\Z"),
        must_be("a commit, 40 hexadecimal digits: a branch moves"),
    ]
    split: Split
    text: str
    text_2: str | None = None
    label: str


class TaskEntry(Section):
    """An entry of `tasks`: labelled texts.

    Attributes
    ----------
    builtin
        made from the run's corpus, with labels by construction, equally many of each. `topic`: to which of
        two groups of four articles a sentence belongs, among the eight longest; split by paragraph
    hub
        a data set that the library `datasets` reads without a script, such as Parquet files: `dataset`,
        `config`, `revision` (a commit), `split` (the published split for each of `train` and `held_out`),
        `text`, `text_2` (of pairs), `label`. A loading script is refused and never run. Offline
        (`HF_HUB_OFFLINE=1`), what the library has in `HF_HOME` is read, if it is that commit. GLUE's
        licence is not stated: do not pass the texts on
    metric
        `accuracy` and `matthews` of classes (whole numbers), `spearman` of grades; of a `hub` task,
        `accuracy` by default
    most
        `{train: 2000, held_out: 500}`: so many examples of each split at most, drawn by the seed; these are
        the defaults of built-in tasks, others have none
    """

    builtin: Literal["topic"] | None = None
    hub: HubTask | None = None
    metric: Literal["accuracy", "matthews", "spearman"] | None = None
    most: dict[Literal["train", "held_out"], Most] | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> "TaskEntry":
        if (self.builtin is None) == (self.hub is None):
            raise make_validation_error("needs exactly one of `builtin` or `hub`")
        if self.builtin and self.metric:
            raise make_validation_error(
                "has a `metric`, but is `builtin`, which decides it; remove it"
            )
        return self

    @property
    def has_pairs(self) -> bool:
        """Whether each example is a pair of texts."""
        return bool(self.hub and self.hub.text_2)
