"""Choices of an analysis, which of them touch a claim, and the specifications that they make.

The Snakefile reads choices at every start, so that nothing slow is imported here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any

from shape_of_learning.claims.claim import Claim
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


# States that the last layer can be.
AFTER, BEFORE = LAST_LAYERS = ("after_final_norm", "before_final_norm")
ROW_CHOICES = tuple(field.name for field in fields(Rows))
# Families whose measures take all vectors together, without batches.
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
class Variant:
    """An estimator with parameters of its own.

    Attributes
    ----------
    base : str
        The measure's name in the registry.
    measure : Measure
        Its name tells the parameters that differ from the run's.
    """

    base: str
    measure: Measure

    @property
    def name(self) -> str:
        """How tables call it."""
        return self.measure.name


@dataclass(frozen=True)
class ChoiceSettings:
    """What section ``choices`` of the configuration says, checked.

    Attributes
    ----------
    rows : sequence of Choice
        Those of :class:`Rows`; the run's own option is the first.
    average_over : tuple of str
        Which layers count, as in :class:`.Claim`.
    last_layer : tuple of str
        ``"after_final_norm"`` or ``"before_final_norm"``.
    families : mapping of str to tuple of Variant
        Name of a choice -> estimators of which one can take the place of another.
    """

    rows: Sequence[Choice]
    average_over: tuple[str, ...]
    last_layer: tuple[str, ...]
    families: Mapping[str, tuple[Variant, ...]]

    @property
    def own_rows(self) -> Rows:
        """What the other rows are compared with."""
        return Rows(**{choice.name: choice.options[0] for choice in self.rows})

    def sets_of_rows(self) -> list[Rows]:
        """Every combination of the choices of rows."""
        return [Rows(**each) for each in specifications(self.rows)]

    def choices(self, measures: Mapping[str, Measure], average_over: str) -> list[Choice]:
        """List the choices that touch a claim.

        Parameters
        ----------
        measures : mapping of str to Measure
            The estimators that its statistic is made of.
        average_over : str
            Which layers count for it by itself.

        Returns
        -------
        list of Choice
            Those that have more than one option. A choice of rows touches it unless all of its measures
            make that choice for themselves; the size of batches, unless all take all vectors together;
            whether layer 0 counts, unless all are of blocks; and an estimator, if another one is in its
            family. Where the claim itself names several of a family, each has its own parameters to choose.
        """
        values = measures.values()
        found = [
            choice
            for choice in self.rows
            if any(choice.name not in each.rows for each in values)
            and not (choice.name == "batch_share" and all(each.family in WHOLE for each in values))
        ]
        for family, variants in self.families.items():
            named = [name for name in measures if any(name == each.base for each in variants)]
            if len(named) == 1:
                found.append(Choice(family, _own_first(named[0], (v.name for v in variants))))
                continue
            found += [
                Choice(name, _own_first(name, (v.name for v in variants if v.base == name)))
                for name in named
            ]
        if any(each.first_layer == 0 for each in values):
            found.append(Choice("average_over", _own_first(average_over, self.average_over)))
        if any("last_layer" not in each.rows for each in values):
            found.append(Choice("last_layer", self.last_layer))
        return [choice for choice in found if len(choice.options) > 1]

    def of_claim(self, claim: Claim, measures: Mapping[str, Measure]) -> "ClaimChoices":
        """Say which choices touch a claim; `measures` are the estimators that it names."""
        choices = self.choices(measures, claim.average_over)
        decided_by: dict[str, str] = {}
        for family, variants in self.families.items():
            named = [name for name in measures if any(name == each.base for each in variants)]
            decided_by |= {name: family if len(named) == 1 else name for name in named}
        return ClaimChoices(claim, choices, self.own_rows, self.last_layer[0], decided_by)

    def variants(self, measures: Mapping[str, Measure]) -> dict[str, Measure]:
        """Collect all that is measured for a claim on some measures, by name."""
        wanted = dict(measures)
        named = {option for choice in self.choices(measures, "") for option in choice.options}
        for variants in self.families.values():
            wanted |= {each.name: each.measure for each in variants if each.name in named}
        return wanted


@dataclass(frozen=True)
class ClaimChoices:
    """A claim, and the choices that touch it.

    Attributes
    ----------
    claim : Claim
    choices : sequence of Choice
        Of each the first option is that of the reference.
    rows : Rows
        Of the reference.
    last_layer : str
        Likewise.
    decided_by : mapping of str to str
        Estimator that the claim names -> the choice whose option takes its place.
    """

    claim: Claim
    choices: Sequence[Choice]
    rows: Rows
    last_layer: str
    decided_by: Mapping[str, str]

    def estimators(self, specification: Specification) -> dict[str, str]:
        """What stands for each estimator of the claim."""
        return {
            name: specification.get(self.decided_by.get(name, ""), name)
            for name in self.claim.estimators
        }

    @classmethod
    def from_plain(cls, given: Mapping[str, Any]) -> "ClaimChoices":
        """Undo :func:`dataclasses.asdict`."""
        return cls(
            claim=Claim(**given["claim"]),
            choices=[Choice(**each) for each in given["choices"]],
            rows=Rows(**given["rows"]),
            last_layer=given["last_layer"],
            decided_by=given["decided_by"],
        )


def _own_first(own: str, options: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([own, *options]))


def thinned(checkpoints: Sequence[Any], most: int) -> list[Any]:
    """Choose at most so many of a sequence, evenly by rank; the first and the last are among them."""
    if len(checkpoints) <= most:
        return list(checkpoints)
    ranks = {round(place * (len(checkpoints) - 1) / (most - 1)) for place in range(most)}
    return [checkpoints[rank] for rank in sorted(ranks)]
