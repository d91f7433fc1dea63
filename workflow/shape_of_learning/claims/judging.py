"""The verdict on a claim, and what it rests on."""

from dataclasses import dataclass

from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.evidence import Evidence

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
NOT_MEASURED = "not measured"
VERDICTS = (SUPPORTED, CONTRADICTED, UNDECIDED, NOT_MEASURED)


@dataclass(frozen=True)
class Judgement:
    """What the evidence says of a claim.

    Attributes
    ----------
    verdict : {"supported", "contradicted", "undecided", "not measured"}
    because : str
        Why, in a sentence.
    estimate, low, high : float
        What the rule looks at, of all models together, and its 95 % interval; NaN if there is none.
    smallest_visible : float
        How far beyond the bound of `supported` the estimate must lie to be told from it.
    models, revisions, n, selections, hashes : tuple of str
        What it rests on; revisions as ``MODEL@REVISION``, digests as ``MODEL:DIGEST`` and ``text:DIGEST``.
    """

    verdict: str
    because: str
    estimate: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    smallest_visible: float = float("nan")
    models: tuple[str, ...] = ()
    revisions: tuple[str, ...] = ()
    n: tuple[str, ...] = ()
    selections: tuple[str, ...] = ()
    hashes: tuple[str, ...] = ()


def judge(claim: Claim, evidence: Evidence) -> Judgement:
    """Judge a claim by its statistic and its rule.

    Parameters
    ----------
    claim : Claim
        With another `average_over` (:func:`dataclasses.replace`) it is judged by other layers.
    evidence : Evidence
        By :meth:`.Evidence.with_estimators` other estimators stand for those that it names.
    """
    raise NotImplementedError
