"""Choices of an analysis, which of them touch a claim, and the specifications that they make.

The Snakefile reads choices at every start, so that nothing slow is imported here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product

from shape_of_learning.claims.claim import Claim

# By the names of choices, the options of each, of which the first is the one that others are compared with.
Choices = Mapping[str, Sequence[str]]


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


AFTER, BEFORE = "after_final_norm", "before_final_norm"  # states that the last layer can be
ROW_CHOICES = tuple(field.name for field in fields(Rows))
# Families whose measures take all vectors together, without batches.
WHOLE = ("linearity", "windows")


@dataclass(frozen=True)
class ClaimChoices:
    """A claim, and the choices of its analysis.

    Attributes
    ----------
    claim : Claim
    choices : Choices
        Of each the first option is that of the reference; it is the only one where a choice does not touch
        the claim.
    decided_by : mapping of str to str
        Estimator that the claim names -> the choice whose option takes its place.
    """

    claim: Claim
    choices: Choices
    decided_by: Mapping[str, str]

    @property
    def varied(self) -> dict[str, Sequence[str]]:
        """Those that have more than one option."""
        return {name: options for name, options in self.choices.items() if len(options) > 1}

    def specifications(self) -> list[dict[str, str]]:
        """List every combination of options; the first of all is the reference."""
        combinations = product(*self.choices.values())
        return [dict(zip(self.choices, options, strict=True)) for options in combinations]

    def estimators(self, specification: Mapping[str, str]) -> dict[str, str]:
        """What stands for each estimator of the claim."""
        deciding = {name: self.decided_by.get(name, "") for name in self.claim.estimators}
        return {name: specification.get(choice, name) for name, choice in deciding.items()}
