"""On a GPU: the dump of models of the paper's sizes with random weights, and a profile of all layers.

The profile is 32 layers of 121,000 x 4096 in the GPU's memory, one after the other: anisotropy of all
vectors, four dimensions of 4096. The authors' notebook would need over four hours for it, by its own log.
"""

from dataclasses import replace
from pathlib import Path

from benchmarks import gpu
from benchmarks.contest import Contender, Measured, contest
from benchmarks.targets import Target

TITLE = "On a GPU"
SHAPES, TINY_SHAPES, WINDOWS = ("pythia-2.8b", "bloom-3b", "llama-2-7b"), ("tiny",), 128
PROFILE = "profile of all layers"
PROFILE_SIZE = "32 x 121000 x 4096"
DUMP, BARE, LOOP = "dump with loss", "bare with logits", "the authors' loop"
OWN = (DUMP, PROFILE)


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """Whatever there is a GPU for."""
    if not gpu.is_available():
        return [Measured("", PROFILE, note="not measured: there is no GPU")]
    contenders = []
    for shape in TINY_SHAPES if tiny else SHAPES:
        model = {"shape": shape, "windows": WINDOWS, "threads": 1}
        size = f"{shape}, {WINDOWS} windows"
        contenders += [
            Contender(
                DUMP, "benchmarks.dumping:dump", {**model, "folder": folder, "loss": True}, size
            ),
            Contender(BARE, "benchmarks.dumping:bare", {**model, "style": "logits"}, size),
            Contender(LOOP, "benchmarks.dumping:authors_loop", model, size),
        ]
    layers, tokens, width = (2, 5000, 64) if tiny else (32, 121_000, 4096)
    sizes = {"layers": layers, "tokens": tokens, "width": width}
    name = f"{layers} x {tokens} x {width}"
    contenders.append(Contender(PROFILE, "benchmarks.gpu:profile", sizes, name))
    return contest([replace(each, on_gpu=True) for each in contenders], repeats)


TARGETS = [
    Target("profile of 32 layers", 10, lambda r: r[PROFILE_SIZE, PROFILE].seconds, " s"),
    *(
        Target(
            f"dump of {shape}, tokens/s of the bare pass",
            90,
            lambda r, size=f"{shape}, {WINDOWS} windows": 100 * r.faster(size, DUMP, BARE),
            " %",
            at_least=True,
        )
        for shape in SHAPES
    ),
    *(
        Target(
            f"dump of {shape}, against the authors' loop",
            20,
            lambda r, size=f"{shape}, {WINDOWS} windows": r.faster(size, DUMP, LOOP),
            " times as fast",
            at_least=True,
        )
        for shape in SHAPES
    ),
]
AGREEMENTS = []
