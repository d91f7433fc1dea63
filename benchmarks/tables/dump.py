"""Hidden states of all layers of a model of Pythia-160M's shape, random weights, on two cores.

The dump runs batches of 16 windows side by side, one thread each, and writes HDF5 files. Beside it: forward
passes over the same batches that keep nothing, without logits and with them (the dump's loss takes them,
too), and the loop of the authors' notebook, one window at a time, whose hidden states stay in memory. On a
CPU a window keeps all cores nearly as busy as a batch does, so that the bare pass bounds what can be gained;
and that, by its operations, the machine's peak: the products with the blocks' weights alone, as fast as large
matrices are multiplied.
"""

from pathlib import Path

from benchmarks.contest import CORES, Contender, Measured, contest
from benchmarks.results import Results
from benchmarks.targets import Target

TITLE = "Embedding dump on the CPU"
SHAPE, WINDOWS = "pythia-160m", 64
DUMP, DUMP_LOSS = "dump", "dump with loss"
BARE, BARE_ONE_BY_ONE = "bare, batches side by side", "bare, one batch on all cores"
BARE_LOGITS, LOOP = "bare with logits", "the authors' loop"
PEAK = "products alone, at the machine's peak"
OWN = (DUMP, DUMP_LOSS)
SIZE = f"{SHAPE}, {WINDOWS} windows"


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """All in turns."""
    shape, windows = ("tiny", 6) if tiny else (SHAPE, WINDOWS)
    model = {"shape": shape, "windows": windows, "threads": CORES}
    calls = {
        DUMP: ("dump", {"folder": folder, "loss": False}),
        DUMP_LOSS: ("dump", {"folder": folder, "loss": True}),
        BARE: ("bare", {"style": "side by side"}),
        BARE_ONE_BY_ONE: ("bare", {"style": "one by one"}),
        BARE_LOGITS: ("bare", {"style": "logits"}),
        LOOP: ("authors_loop", {}),
        PEAK: ("products_at_their_fastest", {}),
    }
    return contest(
        [
            Contender(
                name,
                f"benchmarks.dumping:{function}",
                {**model, **more},
                f"{shape}, {windows} windows",
            )
            for name, (function, more) in calls.items()
        ],
        repeats,
    )


def share_of_bare(results: Results) -> float:
    """Tokens per second of the dump in percent of those of the faster bare pass, loss left out of both."""
    bare = min(results[SIZE, name].seconds for name in (BARE, BARE_ONE_BY_ONE))
    return 100 * bare / results[SIZE, DUMP].seconds


def limit(results: Results) -> float:
    """How much faster than the authors' loop a dump could be that took no time beside the forward pass."""
    return max(results.faster(SIZE, bare, LOOP) for bare in (BARE, BARE_ONE_BY_ONE))


TARGETS = [
    Target(
        "bare pass against the authors' loop, the limit of a dump", None, limit, " times as fast"
    ),
    Target(
        "products alone at the machine's peak against the authors' loop, the limit of a pass",
        None,
        lambda r: r.faster(SIZE, PEAK, LOOP),
        " times as fast",
    ),
    Target("tokens/s of the bare pass, without loss", 90, share_of_bare, " %", at_least=True),
    Target(
        "tokens/s of the bare pass with logits, with loss",
        90,
        lambda r: 100 * r.faster(SIZE, DUMP_LOSS, BARE_LOGITS),
        " %",
        at_least=True,
    ),
    Target(
        "with loss, against the authors' loop without",
        3,
        lambda r: r.faster(SIZE, DUMP_LOSS, LOOP),
        " times as fast",
        at_least=True,
    ),
    Target(
        "without loss, against the authors' loop",
        3,
        lambda r: r.faster(SIZE, DUMP, LOOP),
        " times as fast",
        at_least=True,
    ),
]
AGREEMENTS = []
