"""Anisotropy of one matrix in memory, beside the full singular value decomposition that defines it.

The authors' code computes the singular vectors, too; without them the decomposition is the least that a
definition by singular values takes.
"""

from pathlib import Path

from benchmarks.clouds import stored_cloud
from benchmarks.contest import Contender, Measured, contest
from benchmarks.targets import Agreement, Target

TITLE = "Anisotropy"
SIZES = [(4096, 2560)]
TINY = [(400, 12)]
OURS = "ours"
OWN = (OURS,)
VALUES, VECTORS = "singular values only", "full decomposition"


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """Three ways to one number."""
    contenders = []
    for n, d in TINY if tiny else SIZES:
        size, arguments = f"{n} x {d}", {"cloud": stored_cloud(folder, n, d)}
        contenders += [
            Contender(OURS, "benchmarks.ours:anisotropy", arguments, size),
            Contender(VALUES, "benchmarks.peers:svd", {**arguments, "vectors": False}, size),
            Contender(VECTORS, "benchmarks.peers:svd", arguments, size),
        ]
    return contest(contenders, repeats)


TARGETS = [
    Target(
        "4096 x 2560, against the full decomposition in float64",
        60,
        lambda results: results.faster("4096 x 2560", OURS, VECTORS),
        " times as fast",
        at_least=True,
    )
]
AGREEMENTS = [Agreement("anisotropy", OURS, other, 1e-6) for other in (VALUES, VECTORS)]
