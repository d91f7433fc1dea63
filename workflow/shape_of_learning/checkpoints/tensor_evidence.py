"""Which checkpoints hold the same weights, by their tensors and their losses, after they have been measured.

Files of the same weights differ when these were written anew: by another library, in other shards, in another
format. Their tensors are equal, and so is the loss on the same windows, to the last bit.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from shape_of_learning.checkpoints.judged_checkpoint import (
    OK,
    JudgedCheckpoint,
    is_unconfirmed,
)
from shape_of_learning.checkpoints.shared_weights import (
    misplaced_parts,
    sharing,
    verdicts_of_equals,
)
from shape_of_learning.checkpoints.tensor_digests import TensorDigests

MIXED_TENSORS = "mixed tensors"
# Ours: the least share of the elements of all matrices that must be misplaced. Norms and biases are no
# evidence: rounded to 16 bits, their few numbers may stay as they were, or return.
LEAST_SHARE = 0.01
# Nats. Rounding to 16 bits, another batch size or another machine change a loss less than this.
DIFFERENT_LOSSES = 0.01


@dataclass(frozen=True)
class Evidence:
    """What is known of a checkpoint that has been measured.

    Attributes
    ----------
    tensors : mapping of str to (str, str, str)
        Type, shape and SHA-256 of each tensor; empty if they have not been digested.
    loss : float
        Nats per predicted token; NaN where it is undefined.
    predicted_tokens : int
        0 where the loss is undefined.
    """

    tensors: TensorDigests
    loss: float = math.nan
    predicted_tokens: int = 0


def judged_by_weights(
    checkpoints: Sequence[JudgedCheckpoint], measured: Mapping[str, Evidence]
) -> list[JudgedCheckpoint]:
    """Judge checkpoints of one training by comparing their weights.

    Parameters
    ----------
    checkpoints : sequence of JudgedCheckpoint
        By step, with the verdicts on their files.
    measured : mapping of str to Evidence
        By name; those that have not been measured keep their verdicts.

    Returns
    -------
    list of JudgedCheckpoint
        The same with further verdicts: those of :func:`.verdicts_of_equals` and ``mixed tensors``. A report
        that was not yet confirmed is replaced by what the weights say, if they say anything.

    Notes
    -----
    Tensors of equal names, types and shapes decide. Where names or types are not the same ones, or tensors
    are not known, finite losses that are equal to the last bit on as many tokens show the same weights. So
    weights that were converted to a wider type are found, since every number stays what it was; those that
    were rounded to a narrower one are not.
    """
    judged = {each.name: each for each in checkpoints}
    known = [each.name for each in checkpoints if each.name in measured]
    links: dict[str, list[Hashable]] = {name: [name] for name in known}
    for a, b in combinations(known, 2):
        if same_weights(measured[a], measured[b]):
            links[b].append(a)
    for group in sharing(links):
        for name, verdict in verdicts_of_equals([judged[name] for name in group]).items():
            judged[name] = replace(judged[name], verdict=verdict)
    for name in known:
        other = next((each for each in known if judged[each].step == judged[name].same_as), None)
        if (
            is_unconfirmed(judged[name].verdict)
            and other is not None
            and same_weights(measured[name], measured[other]) is False
        ):
            judged[name] = replace(judged[name], verdict=OK)
    for name in _mixed([judged[name] for name in known], measured):
        judged[name] = replace(judged[name], verdict=MIXED_TENSORS)
    return list(judged.values())


def same_weights(a: Evidence, b: Evidence) -> bool | None:
    """Whether two checkpoints hold the same weights; None if nothing tells.

    Parameters
    ----------
    a, b : Evidence
        Tensors are compared by name, if most of those of the smaller one are also in the other: some formats
        leave out what can be computed, or write tied tensors twice.
    """
    by_tensors = _same_tensors(a.tensors, b.tensors)
    if by_tensors is not None:
        return by_tensors
    if not (math.isfinite(a.loss) and math.isfinite(b.loss)):
        return None
    if a.loss == b.loss and a.predicted_tokens == b.predicted_tokens:
        return True
    return False if abs(a.loss - b.loss) > DIFFERENT_LOSSES else None


def _same_tensors(a: TensorDigests, b: TensorDigests) -> bool | None:
    common = a.keys() & b.keys()
    if not common or 2 * len(common) < min(len(a), len(b)):
        return None
    differing = [name for name in common if a[name] != b[name]]
    if any(a[name][:2] == b[name][:2] for name in differing):
        return False
    return None if differing else True


def _mixed(checkpoints: Sequence[JudgedCheckpoint], measured: Mapping[str, Evidence]) -> list[str]:
    """Names of checkpoints with matrices that are not those of their step."""
    ok = [each for each in checkpoints if each.verdict == OK]
    # Converted to another type, a matrix is another part: its bytes cannot be compared.
    matrices = [
        (
            each.name,
            {
                f"{name} {dtype} {shape}": sha256
                for name, (dtype, shape, sha256) in measured[each.name].tensors.items()
                if "x" in shape
            },
        )
        for each in ok
    ]
    elements = {name: _elements(parts) for name, parts in matrices}
    misplaced = misplaced_parts(matrices, {each.name for each in ok if each.is_last})
    return [
        name
        for name, parts in misplaced.items()
        if _elements(parts) >= LEAST_SHARE * elements[name]
    ]


def _elements(parts: Iterable[str]) -> int:
    shapes = (part.rpartition(" ")[2] for part in parts)
    return sum(math.prod(map(int, shape.split("x"))) for shape in shapes)
