"""Spread over directions: measures of one matrix in memory beside anisotropy, and all eigenvalues.

LAPACK's own time is that of the eigenvalues of the d x d matrix alone; ours is from the vectors to the
eigenvalues. ln I of an embedding matrix is read by rows from an HDF5 file, as the workflow reads it.
"""

from pathlib import Path

from benchmarks.clouds import stored_cloud
from benchmarks.contest import Contender, Measured, contest
from benchmarks.results import Results
from benchmarks.targets import Agreement, Target

TITLE = "Spread over directions"
SIZES = [(4096, 768), (4096, 2560), (4096, 4096)]
VOCABULARY = (50304, 4096)
TINY, TINY_VOCABULARY = [(400, 12)], (700, 12)
ANISOTROPY = "anisotropy"
MEASURES = {
    "participation ratio": "participation_ratio",
    "IsoScore": "isoscore",
    "share of the top 10": "top_10_share",
}
SPECTRUM, LAPACK = "all eigenvalues", "LAPACK, eigenvalues of a ready matrix"
PARTITION = "ln I"
OWN = (ANISOTROPY, *MEASURES, SPECTRUM, PARTITION)


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """Each measure by itself, the spectrum of the widest cloud, and ln I of a vocabulary."""
    contenders = []
    for n, d in TINY if tiny else SIZES:
        size, arguments = f"{n} x {d}", {"cloud": stored_cloud(folder, n, d)}
        contenders.append(Contender(ANISOTROPY, "benchmarks.ours:anisotropy", arguments, size))
        contenders += [
            Contender(name, "benchmarks.ours:spread", {**arguments, "measure": measure}, size)
            for name, measure in MEASURES.items()
        ]
    # Of the last and widest.
    contenders += [
        Contender(SPECTRUM, "benchmarks.ours:spectrum", arguments, size, repeats=3),
        Contender(LAPACK, "benchmarks.peers:eigenvalues", arguments, size, repeats=3),
    ]
    n, d = TINY_VOCABULARY if tiny else VOCABULARY
    arguments = {"cloud": stored_cloud(folder, n, d, ".h5")}
    contenders.append(
        Contender(
            PARTITION,
            "benchmarks.ours:log_partition_isotropy",
            arguments,
            f"{n} x {d}",
            repeats=1,
        )
    )
    return contest(contenders, repeats)


def slower(results: Results, name: str, size: str) -> float:
    """How many times as long as anisotropy."""
    return results.faster(size, ANISOTROPY, name)


TARGETS = [
    *(
        Target(
            f"{name}, {n} x {d}, against anisotropy",
            2,
            lambda results, name=name, size=f"{n} x {d}": slower(results, name, size),
            " times its time",
        )
        for name in MEASURES
        for n, d in SIZES
    ),
    Target(
        "all eigenvalues, 4096 x 4096, against LAPACK's own",
        1.3,
        lambda results: results.faster("4096 x 4096", LAPACK, SPECTRUM),
        " times its time",
    ),
    Target("ln I, 50304 x 4096", 1.5, lambda r: r["50304 x 4096", PARTITION].peak_gb, " GB"),
]
AGREEMENTS = [Agreement("largest", SPECTRUM, LAPACK, 1e-9)]
