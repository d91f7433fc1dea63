"""Choices of an analysis, and the specifications that they make: one option of each.

This module imports nothing heavy, because the Snakefile reads it at every start.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import product

from shape_of_learning.metrics.measure_entry import Measure

# A specification: an option of each choice, by the choice's name.
Specification = Mapping[str, str]


@dataclass(frozen=True)
class Rows:
    """Which vectors are measured, and in batches of how many; the options as the tables write them.

    Attributes
    ----------
    text : str
        ``"own"``, the windows of the run; ``"resampled"``, as many others of the same text; or a source.
    first_token, special_tokens, token_types : str
        As in section ``measurement``.
    windows_share, batch_share : str
        Numbers: the share of the windows, and the size of a batch as a share of the run's.
    """

    text: str = "own"
    first_token: str = "keep"
    special_tokens: str = "keep"
    token_types: str = "all"
    windows_share: str = "1"
    batch_share: str = "1"

    def with_options(self, specification: Specification) -> "Rows":
        """Take over what a specification says of rows."""
        own = asdict(self)
        return Rows(**{**own, **{k: v for k, v in specification.items() if k in own}})


ROW_CHOICES = tuple(field.name for field in fields(Rows))
# Of a measure that takes all vectors together, without batches.
WHOLE = ("linearity", "windows")


@dataclass(frozen=True)
class Choice:
    """A choice: its name, and its options, of which the first is the one that others are compared with."""

    name: str
    options: tuple[str, ...]


def specifications(choices: Sequence[Choice]) -> list[dict[str, str]]:
    """List every combination of options; the first of all is the first of each."""
    names = [choice.name for choice in choices]
    return [
        dict(zip(names, options, strict=True))
        for options in product(*(choice.options for choice in choices))
    ]


@dataclass(frozen=True)
class WantedMeasures:
    """What is measured of checkpoints, as their job is told.

    Attributes
    ----------
    measures : mapping of str to Measure
        By the names of tables.
    choices : sequence of Choice
        Those of :class:`Rows`.
    batch_vectors, neighbours : int
        Keys of ``measurement``.
    """

    measures: Mapping[str, Measure]
    choices: Sequence[Choice]
    batch_vectors: int
    neighbours: int

    def rows(self, text: str) -> list[Rows]:
        """Every combination of rows of one text."""
        every = [Rows(**each) for each in specifications(self.choices)]
        return [each for each in every if each.text == text]

    def only(self, names: Iterable[str]) -> "WantedMeasures":
        """Some of the measures."""
        return replace(self, measures={name: self.measures[name] for name in names})

    def to_json(self) -> str:
        """Write as one line that :meth:`from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "WantedMeasures":
        """Read what :meth:`to_json` wrote."""
        given = json.loads(text)
        measures = {name: Measure(**each) for name, each in given.pop("measures").items()}
        choices = [Choice(each["name"], tuple(each["options"])) for each in given.pop("choices")]
        return cls(measures, choices, **given)
