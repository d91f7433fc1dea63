"""Verdicts on simulated trainings: how many planted mistakes are found, and how many alarms are false."""

import time
from collections import Counter
from pathlib import Path

from benchmarks.contest import Measured
from benchmarks.simulated_curves import SHOWN_BY, alarms, judged, simulated
from shape_of_learning.checkpoints.judged_checkpoint import OK

TITLE = "Verdicts on checkpoints"
CURVES, TINY = 1000, 20
CLEAN, FAULTY = "clean curves", "curves with mistakes"
OWN = (CLEAN, FAULTY)
TARGETS: list[object] = []
AGREEMENTS: list[object] = []


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """So many curves without a mistake, and as many with some; nothing depends on the machine."""
    curves = TINY if tiny else CURVES
    planted: Counter[str] = Counter()
    found: Counter[str] = Counter()
    rows = []
    for name, is_clean in ((CLEAN, True), (FAULTY, False)):
        begun = time.perf_counter()
        counted: Counter[str] = Counter()
        for seed in range(curves):
            curve = simulated(seed, is_clean=is_clean)
            verdicts = judged(curve)
            false = alarms(curve, verdicts)
            counted["steps"] += len(curve.steps)
            counted["false alarms"] += len(false)
            counted["curves with one"] += bool(false)
            counted["condemned with a copy"] += sum(
                verdicts.get(step, OK) != OK for step in curve.sources - curve.faults.keys()
            )
            for step, kind in curve.faults.items():
                if step in verdicts:
                    planted[kind] += 1
                    found[kind] += verdicts[step] != OK
        seconds = time.perf_counter() - begun
        rows.append(Measured("all", name, seconds, values={"curves": curves, **counted}))
    return rows + [
        Measured(shown_by, kind, values={"planted": planted[kind], "found": found[kind]})
        for kind, shown_by in SHOWN_BY.items()
    ]
