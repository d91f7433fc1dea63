"""Intrinsic dimension: all four estimators, and TwoNN alone."""

from pathlib import Path

from benchmarks.clouds import stored_cloud
from benchmarks.contest import Contender, Measured, contest
from benchmarks.results import Results
from benchmarks.targets import Agreement, Target

TITLE = "Intrinsic dimension"
SIZES = [(4096, 768), (4096, 2560), (4096, 4096)]
TINY = [(400, 12)]
SKDIM = ("TwoNN", "MADA", "MOM", "MLE")
OURS, OURS_TWO_NN = "ours, all four", "ours, TwoNN"
OWN = (OURS, OURS_TWO_NN)
DADAPY, AUTHORS = "DADApy, TwoNN", "the authors' code, TwoNN"


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """Each estimator of each package by itself."""
    contenders = []
    for n, d in TINY if tiny else SIZES:
        size, arguments = f"{n} x {d}", {"cloud": stored_cloud(folder, n, d)}
        contenders += [
            Contender(OURS, "benchmarks.ours:four_dimensions", arguments, size),
            Contender(OURS_TWO_NN, "benchmarks.ours:two_nn", arguments, size),
            *(
                Contender(
                    f"scikit-dimension, {name}",
                    "benchmarks.peers:scikit_dimension",
                    {**arguments, "estimator": name},
                    size,
                    needs="skdim",
                )
                for name in SKDIM
            ),
            Contender(
                DADAPY,
                "benchmarks.peers:dadapy",
                arguments,
                size,
                needs="DADApy",
                environment="dadapy",
            ),
            Contender(
                AUTHORS, "benchmarks.peers:authors_two_nn", arguments, size, needs="llm_microscope"
            ),
        ]
    return contest(contenders, repeats)


def sum_of_scikit_dimension(results: Results, size: str) -> float:
    """How many times as long as ours the four of scikit-dimension take."""
    total = sum(results[size, f"scikit-dimension, {name}"].seconds for name in SKDIM)
    return total / results[size, OURS].seconds


TARGETS = [
    *(
        Target(
            f"four estimators, {size}, against the four of scikit-dimension one after the other",
            10,
            lambda results, size=size: sum_of_scikit_dimension(results, size),
            " times as fast",
            at_least=True,
        )
        for size in (f"{n} x {d}" for n, d in SIZES)
    ),
    *(
        Target(
            f"TwoNN, {n} x {d}, against DADApy with maxk=3",
            bound,
            lambda results, size=f"{n} x {d}": results.faster(size, OURS_TWO_NN, DADAPY),
            " times as fast",
            at_least=True,
        )
        for (n, d), bound in zip(SIZES, (1.2, 2, 2), strict=True)
    ),
    *(
        Target(
            f"TwoNN, {n} x {d}, against the authors' code",
            150,
            lambda results, size=f"{n} x {d}": results.faster(size, OURS_TWO_NN, AUTHORS),
            " times as fast",
            at_least=True,
        )
        for n, d in SIZES
    ),
]
AGREEMENTS = [
    *(Agreement(name, OURS, f"scikit-dimension, {name}", 1e-6) for name in SKDIM),
    Agreement("TwoNN", OURS_TWO_NN, DADAPY, 1e-6),
    Agreement(
        "TwoNN, lowest fifth",
        OURS_TWO_NN,
        AUTHORS,
        1e-3,
        "one point in 4096 more or less in the fit: they keep n // 5",
    ),
]
