"""All layers of a checkpoint measured with and without its hidden states on the disk.

Without, all layers are kept in memory until they are measured (`embeddings.dump: false`).
Both in one process; the workflow gives each measurement of a dump a job of its own, so that an edited
estimator repeats just its own. Loss and all estimators are included, and the model's weights count as memory
(11 GB for Pythia-2.8B). Random weights and tokens, made before the time begins.
"""

from pathlib import Path

from benchmarks.contest import CORES, Contender, Measured, contest
from benchmarks.targets import Agreement, Target

TITLE = "Without a dump"
SHAPE, WINDOWS, BATCH_VECTORS = "pythia-160m", 128, 4096
LARGE_SHAPE, LARGE_WINDOWS = "pythia-2.8b", 40
IN_MEMORY, DUMPED = "kept in memory", "dumped, then measured"
OWN = (IN_MEMORY,)
SIZE = f"{SHAPE}, {WINDOWS} windows"
LARGE = f"{LARGE_SHAPE}, {LARGE_WINDOWS} windows"


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """Both ways in turns, and a large model in memory."""
    few = {"shape": "tiny", "windows": 6, "batch_vectors": 300}
    usual = {"shape": SHAPE, "windows": WINDOWS, "batch_vectors": BATCH_VECTORS}
    large = {**usual, "shape": LARGE_SHAPE, "windows": LARGE_WINDOWS}
    ways = [
        (IN_MEMORY, "in_memory", SIZE, usual),
        (DUMPED, "dumped_and_measured", SIZE, usual),
        (IN_MEMORY, "in_memory", LARGE, large),
    ]
    return contest(
        [
            Contender(
                name,
                f"benchmarks.whole_checkpoints:{function}",
                {"folder": folder, "threads": CORES, **(few if tiny else model)},
                size,
                threads=1,  # of each window batch and each measurement
            )
            for name, function, size, model in (ways[:2] if tiny else ways)
        ],
        repeats,
    )


TARGETS = [
    Target(
        "time, against dumped and then measured",
        None,
        lambda r: r[SIZE, IN_MEMORY].seconds / r[SIZE, DUMPED].seconds,
        " times",
    ),
    Target(
        "disk, Pythia-2.8B, 40 windows",
        1000,
        lambda r: r[LARGE, IN_MEMORY].values["kB on the disk"],
        " kB",
    ),
    Target(
        "its dump would take",
        None,
        lambda r: r[LARGE, IN_MEMORY].values["kB of a dump"] / 1e6,
        " GB",
    ),
]
AGREEMENTS = [Agreement(name, IN_MEMORY, DUMPED, 1e-6) for name in ("anisotropy", "two_nn")]
