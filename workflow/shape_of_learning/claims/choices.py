"""Choices of an analysis, which of them touch a claim, and the specifications that they make.

The Snakefile reads choices at every start, so that nothing slow is imported here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from shape_of_learning.claims.claim import Claim
from shape_of_learning.metrics.measure_entry import WHOLE, Measure, Rows

# By the names of choices, the options of each, of which the first is the one that others are compared with.
Choices = Mapping[str, Sequence[str]]
# An option of each choice.
Specification = Mapping[str, str]


def specifications(choices: Choices) -> list[dict[str, str]]:
    """List every combination of options; the first of all is the first of each."""
    return [dict(zip(choices, options, strict=True)) for options in product(*choices.values())]


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


@dataclass(frozen=True)
class ChoiceSettings:
    """What section ``choices`` of the configuration says, checked.

    Attributes
    ----------
    rows : Choices
        Those of :class:`Rows`; the run's own option is the first.
    average_over : sequence of str
        Which layers count, as in :class:`.Claim`.
    last_layer : sequence of str
        ``"after_final_norm"`` or ``"before_final_norm"``.
    families : mapping of str to sequence of Variant
        Name of a choice -> estimators of which one can take the place of another.
    """

    rows: Choices
    average_over: Sequence[str]
    last_layer: Sequence[str]
    families: Mapping[str, Sequence[Variant]]

    def sets_of_rows(self) -> list[Rows]:
        """Every combination of the choices of rows."""
        return [Rows(**each) for each in specifications(self.rows)]

    def of_claim(self, claim: Claim, measures: Mapping[str, Measure]) -> "ClaimChoices":
        """Say which choices touch a claim.

        Those that have more than one option. A choice of rows touches it unless all of its measures make that
        choice for themselves; the size of batches, unless all take all vectors together; whether layer 0
        counts, unless all are of blocks; and an estimator, if another one is in its family. Where the claim
        itself names several of a family, each has its own parameters to choose.

        Parameters
        ----------
        claim : Claim
        measures : mapping of str to Measure
            The estimators that it names.
        """
        values = measures.values()
        choices = {
            name: options
            for name, options in self.rows.items()
            if any(name not in each.rows for each in values)
            and not (name == "batch_share" and all(each.family in WHOLE for each in values))
        }
        decided_by = {}
        for family, variants in self.families.items():
            named = [name for name in measures if any(name == each.base for each in variants)]
            for name in named:
                is_alone = len(named) == 1
                decided_by[name] = family if is_alone else name
                options = [v.measure.name for v in variants if is_alone or v.base == name]
                choices[decided_by[name]] = _own_first(name, options)
        if any(each.first_layer == 0 for each in values):
            choices["average_over"] = _own_first(claim.average_over, self.average_over)
        if any("last_layer" not in each.rows for each in values):
            choices["last_layer"] = self.last_layer
        choices = {name: options for name, options in choices.items() if len(options) > 1}
        of_run = {**self.rows, "last_layer": self.last_layer}
        reference = {name: options[0] for name, options in of_run.items()}
        reference["average_over"] = claim.average_over
        return ClaimChoices(claim, choices, reference, decided_by)

    def variants(self, of: "ClaimChoices", measures: Mapping[str, Measure]) -> dict[str, Measure]:
        """Collect all that is measured for a claim on some measures, by name."""
        named = {
            option for choice in of.decided_by.values() for option in of.choices.get(choice, ())
        }
        every = [each.measure for variants in self.families.values() for each in variants]
        return {**measures, **{each.name: each for each in every if each.name in named}}


@dataclass(frozen=True)
class ClaimChoices:
    """A claim, and the choices that touch it.

    Attributes
    ----------
    claim : Claim
    choices : Choices
        Of each the first option is that of the reference.
    reference : Specification
        Also of choices that do not touch it, but for estimators.
    decided_by : mapping of str to str
        Estimator that the claim names -> the choice whose option takes its place.
    """

    claim: Claim
    choices: Choices
    reference: Specification
    decided_by: Mapping[str, str]

    def estimators(self, specification: Specification) -> dict[str, str]:
        """What stands for each estimator of the claim."""
        return {
            name: specification.get(self.decided_by.get(name, ""), name)
            for name in self.claim.estimators
        }


def _own_first(own: str, options: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([own, *options]))


def thinned(checkpoints: Sequence[Any], most: int) -> list[Any]:
    """Choose at most so many of a sequence, evenly by rank; the first and the last are among them."""
    if len(checkpoints) <= most:
        return list(checkpoints)
    ranks = {round(place * (len(checkpoints) - 1) / (most - 1)) for place in range(most)}
    return [checkpoints[rank] for rank in sorted(ranks)]
