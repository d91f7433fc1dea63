"""Contenders that need a GPU."""

import subprocess
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.ours import NEIGHBOURS, Work
from shape_of_learning import anisotropy, mada, mle, mom, nearest_distances, two_nn

if TYPE_CHECKING:
    import torch

SEARCHED = 4096


def is_available() -> bool:
    """Whether PyTorch sees a GPU.

    Another process asks it: what this one imports counts in the memory of all that follow.
    """
    asking = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", asking], check=False).returncode == 0


def profile(layers: int, tokens: int, width: int) -> Work:
    """Anisotropy and four dimensions of one layer after another, each made on the GPU when it is its turn.

    Making it is not counted: in a forward pass it is there.
    """
    import torch

    device = torch.device("cuda")
    _all_of(torch.randn(SEARCHED, width, device=device))  # which loads the libraries
    scales = 3 * torch.arange(1, width + 1, device=device) ** -0.75

    def work() -> dict[str, float]:
        seconds = 0.0
        values: dict[str, float] = {}
        for layer in range(layers):
            torch.manual_seed(layer)
            X = torch.randn(tokens, width, device=device) * scales + torch.randn(
                width, device=device
            )
            torch.cuda.synchronize()
            start = time.perf_counter()
            values = _all_of(X)
            seconds += time.perf_counter() - start
        return {"seconds": seconds, **values}

    return work


def _all_of(X: "torch.Tensor") -> dict[str, float]:
    r = nearest_distances(X[:SEARCHED], NEIGHBOURS)
    dimensions = {"TwoNN": two_nn(r), "MADA": mada(r), "MOM": mom(r), "MLE": mle(r)}
    return {"anisotropy": anisotropy(X), **dimensions}
