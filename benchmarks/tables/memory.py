"""Peak memory of a process that computes the intrinsic dimension of 16,384 vectors, interpreter included.

Ours computes every estimator of the workflow, anisotropy and cosine too; each peer is a process of its own.
"""

from pathlib import Path

from benchmarks.clouds import stored_cloud
from benchmarks.contest import Contender, Measured, contest
from benchmarks.tables.estimators import DADAPY, SKDIM
from benchmarks.targets import Agreement, Target

TITLE = "Memory"
SIZE = (16384, 128)
TINY = (400, 12)
OURS = "ours, all nine estimators"
OWN = (OURS,)
SHOWN = "peak_gb"


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """The peaks of all processes."""
    n, d = TINY if tiny else SIZE
    size, arguments = f"{n} x {d}", {"cloud": stored_cloud(folder, n, d)}
    peers = [
        Contender(
            f"scikit-dimension, {name}",
            "benchmarks.peers:scikit_dimension",
            {**arguments, "estimator": name},
            size,
            needs="skdim",
        )
        for name in SKDIM
    ]
    dadapy = Contender(
        DADAPY, "benchmarks.peers:dadapy", arguments, size, needs="DADApy", environment="dadapy"
    )
    ours = Contender(OURS, "benchmarks.ours:everything", arguments, size)
    return contest([ours, *peers, dadapy], repeats)


TARGETS = [
    Target("16384 x 128, all estimators", 0.4, lambda r: r["16384 x 128", OURS].peak_gb, " GB")
]
AGREEMENTS = [
    *(Agreement(name, OURS, f"scikit-dimension, {name}", 1e-6) for name in SKDIM),
    Agreement("TwoNN", OURS, DADAPY, 1e-6),
]
