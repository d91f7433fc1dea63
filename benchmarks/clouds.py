"""Vectors like hidden states: a few strong directions on a curved sheet, noise, an offset.

They are stored, so that all contenders get the very same.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.contest import Contender, run_contender
from shape_of_learning.random_streams import random_stream

SIGNAL_DIMENSION = 20
NOISE = 0.05


def cloud(n: int, d: int) -> np.ndarray:
    """Draw float32 vectors, shape (n, d), about a curved sheet of 20 dimensions.

    In blocks, so that preparing them takes little more memory than they do.
    """
    random = random_stream(0, "benchmark")
    inner = min(SIGNAL_DIMENSION, d)
    directions = random.standard_normal((2 * inner, d), dtype=np.float32) / np.float32(d) ** 0.5
    offset = random.standard_normal(d, dtype=np.float32)
    scales = np.float32(4) * np.arange(1, inner + 1, dtype=np.float32) ** -0.5
    X = np.empty((n, d), np.float32)
    for start in range(0, n, 1024):
        block = X[start : start + 1024]
        latent = random.standard_normal((len(block), inner), dtype=np.float32) * scales
        random.standard_normal(dtype=np.float32, out=block)
        block *= np.float32(NOISE)
        block += np.hstack([latent, np.sin(latent)]) @ directions
        block += offset
    return X


def stored_cloud(folder: Path, n: int, d: int, suffix: str = ".npy") -> Path:
    """Store a cloud unless it is there already, as NumPy has it or in an HDF5 file.

    Another process does: a child's peak of memory counts from what its parent has in memory.
    """
    path = folder / f"cloud_{n}_{d}{suffix}"
    if not path.exists():
        arguments = {"n": n, "d": d, "path": path}
        run_contender(Contender("cloud", "benchmarks.clouds:storing", arguments))
    return path


def storing(n: int, d: int, path: str) -> Callable[[], None]:
    """Store a cloud."""

    def store() -> None:
        if path.endswith(".npy"):
            np.save(path, cloud(n, d))
            return
        import h5py

        with h5py.File(path, "w") as file:
            file["vectors"] = cloud(n, d)

    return store
