"""Exact distances to 100 neighbours, beside one matrix product of the same size in float32.

The search multiplies in float64 and spares the half of the product that symmetry gives: as many bytes as a
whole product in float32, and twice the time of half a one, for which a register holds twice as many numbers.
"""

from pathlib import Path

from benchmarks.clouds import stored_cloud
from benchmarks.contest import Contender, Measured, contest
from benchmarks.targets import Target

TITLE = "Neighbour search"
SIZES = [(4096, 768), (4096, 2560), (4096, 4096)]
TINY = [(400, 12)]
OURS = "nearest_distances, k = 100"
PRODUCT, HALF = "X X^T in float32", "half of X X^T in float32"
OWN = (OURS,)


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """Search and product in turns."""
    contenders = []
    for n, d in TINY if tiny else SIZES:
        size, arguments = f"{n} x {d}", {"cloud": stored_cloud(folder, n, d)}
        contenders += [
            Contender(OURS, "benchmarks.ours:nearest_distances", arguments, size, repeats=9),
            *(
                Contender(
                    product,
                    "benchmarks.peers:matrix_product",
                    {**arguments, "half": product == HALF},
                    size,
                    repeats=9,
                )
                for product in (PRODUCT, HALF)
            ),
        ]
    return contest(contenders, repeats)


TARGETS = [
    Target(
        f"k = 100, 4096 x {d}, against {what}",
        bound,
        lambda results, size=f"4096 x {d}", product=product: results.faster(size, product, OURS),
        " times its time",
    )
    for product, what in ((PRODUCT, "one product"), (HALF, "half a product"))
    for d, bound in ((768, 3), (4096, 1.7))
]
AGREEMENTS = []
