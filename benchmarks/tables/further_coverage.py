"""How often 95 % intervals of measures of blocks and of spread hold the truth: simulated hidden states."""

from functools import partial
from pathlib import Path

from benchmarks.contest import Measured
from benchmarks.sampled_blocks import ESTIMATORS, SIMULATIONS, simulated
from benchmarks.tables.coverage import all_draws, rows_of

TITLE = "Coverage of 95 % intervals, blocks and spread"
DRAWS = 150
OWN = ESTIMATORS
TARGETS: list[object] = []
AGREEMENTS: list[object] = []


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """Draw many samples of 128 windows of each kind."""
    rows = []
    for kind in list(SIMULATIONS)[: 1 if tiny else None]:
        draws = all_draws(partial(simulated, kind), 3 if tiny else DRAWS)
        rows += rows_of(f"simulated, {kind}", [draw[kind, 0] for draw in draws])
    return rows
