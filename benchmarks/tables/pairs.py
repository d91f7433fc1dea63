"""Linearity of one block, on one core: of its output and of what it adds, in sample and on held-out windows.

The vectors before and after the block are in memory, in float32. Without groups of windows means that what
the scores are without each of 16 groups is found besides, from which intervals come; those of held-out scores
end at a width of 2048.
"""

from pathlib import Path

from benchmarks.clouds import stored_cloud
from benchmarks.contest import Contender, Measured, contest
from benchmarks.results import Results
from benchmarks.targets import Agreement, Target

TITLE = "Pairs of hidden states"
SIZES = [(14_000, 768), (14_000, 2048), (14_000, 4096)]
TINY = [(400, 12)]
VALUES, LEFT_OUT = "values", "values, and without groups of windows"
OWN = (VALUES, LEFT_OUT)


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """The four scores of a pair, with and without what intervals take."""
    contenders = [
        Contender(
            name,
            "benchmarks.ours:pair",
            {"cloud": stored_cloud(folder, n, d), "left_out": name == LEFT_OUT},
            f"{n} x {d}",
            threads=1,
            repeats=3,
        )
        for n, d in (TINY if tiny else SIZES)
        for name in OWN
    ]
    return contest(contenders, repeats)


def memory_beyond(results: Results, d: int) -> float:
    """Peak beyond vectors before and after the block, in GB; the interpreter counts."""
    return results[f"14000 x {d}", VALUES].peak_gb - 2 * 14_000 * d * 4 / 1e9


TARGETS = [
    *(
        Target(
            f"both scores of 14,000 x {d}, in sample and held out",
            bound,
            lambda results, size=f"14000 x {d}": results[size, VALUES].seconds,
            " s",
        )
        for d, bound in ((768, 1.5), (4096, 40))
    ),
    Target(
        "14,000 x 4096, memory beyond the vectors",
        1.4,
        lambda results: memory_beyond(results, 4096),
        " GB",
    ),
]
AGREEMENTS = [
    Agreement(name, VALUES, LEFT_OUT, 1e-9) for name in ("linearity", "linearity_increment")
]
