"""A claim of a paper: its sentence, the statistic that decides it, and the rule, written beforehand.

This module imports nothing heavy, because the Snakefile reads claims at every start.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Claim:
    """An entry of ``claims.yaml``.

    Attributes
    ----------
    name, sentence, where : str
        Its key; what is claimed, in our words; where in the paper.
    statistic : str
        A public function of a module ``*statistics`` of this package.
    arguments : mapping
        Of that function, besides `estimators`.
    estimators : sequence of str
        What it is a statistic of; none where it is of other tables.
    reads : sequence of str
        Other tables that it reads, by the names that paper.yaml `reads`.
    rule : mapping
        ``supported`` and ``contradicted``, a condition each, see :mod:`shape_of_learning.claims.rules`.
    models : str or sequence of str
        Names of entries, all of which it needs, or those of the run that are
        ``decoders``, ``encoders``, ``all`` (of both), ``fine_tunings`` or ``twins``.
    checkpoints : {"last", "training"}
        At which of them it is judged: the last sound one, or sound ones with a step.
    needs : int
        How many of the models must be measured; 0 for all that are named, or one of a group.
    average_over : {"block_outputs", "all_layers"}
        Which layers count.
    """

    name: str
    sentence: str
    where: str
    statistic: str
    rule: Mapping[str, Any]
    models: str | Sequence[str]
    estimators: Sequence[str] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    reads: Sequence[str] = ()
    checkpoints: str = "last"
    needs: int = 0
    average_over: str = "block_outputs"
