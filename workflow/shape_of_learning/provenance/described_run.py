"""What the plan says of a run, for its description."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class DescribedRun:
    """A run as its configuration has it.

    Attributes
    ----------
    name : str
        Key `run`; empty where it is not set.
    source : str
        Name of the corpus.
    models : mapping of str to (str, sequence of str)
        By name: a label, and names of the checkpoints that may have been measured.
    papers : sequence of (str, str)
        Title and citation of each paper whose figures it has.
    titles : mapping of str to str
        How a report calls results, by their paths below those of the run, without suffixes.
    """

    name: str
    source: str
    models: Mapping[str, tuple[str, Sequence[str]]]
    papers: Sequence[tuple[str, str]]
    titles: Mapping[str, str]

    def to_json(self) -> str:
        """Return it as the argument of a script."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "DescribedRun":
        """Read what :meth:`to_json` wrote."""
        content: dict[str, Any] = json.loads(text)
        return cls(**content)
