"""One pass over a layer's file, as contenders."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.ours import Work
from shape_of_learning import anisotropy
from shape_of_learning.embeddings.hidden_state_files import HiddenStateWriter
from shape_of_learning.embeddings.hidden_state_rows import HiddenStateRows
from shape_of_learning.estimators.moments import Moments, rows_per_block
from shape_of_learning.random_streams import random_stream
from shape_of_learning.storage.files import require_space


def writing(folder: str, tokens: int, width: int) -> Callable[[], None]:
    """Write hidden states of a falling spectrum, about half of it one direction."""

    def work() -> None:
        require_space(Path(folder), tokens * (4 * width + 16))
        random = random_stream(0, "benchmark of the stream")
        scales = np.float32(3) * np.arange(1, width + 1, dtype=np.float32) ** -0.75
        offset = random.standard_normal(width, dtype=np.float32)
        numbers = np.arange(tokens)
        writer = HiddenStateWriter(Path(folder), [width], numbers, numbers, {})
        for start in range(0, tokens, 1024):
            rows = slice(start, min(start + 1024, tokens))
            values = random.standard_normal((rows.stop - rows.start, width), dtype=np.float32)
            writer.write(0, rows, values * scales + offset)
        writer.close()

    return work


def pass_over(folder: str, rows: int, kind: str) -> Work:
    """Read the file, or do with its rows what `kind` says."""
    import scipy.linalg  # noqa: F401

    layer = HiddenStateRows(Path(folder), 0)
    work = {"read": read, "products": products, "streamed": streamed}[kind]
    return lambda: work(layer, slice(0, rows), rows_per_block(layer.width))


def read(layer: HiddenStateRows, rows: slice, size: int) -> dict[str, float]:
    """Read all rows, a block at a time."""
    return {"rows": sum(len(block) for block in layer.blocks(rows, size))}


def products(layer: HiddenStateRows, rows: slice, size: int) -> dict[str, float]:
    """X^T X in float64, without shift, in place."""
    from scipy.linalg.blas import dsyrk

    total = np.zeros((layer.width, layer.width), order="F")
    for block in layer.blocks(rows, size):
        dsyrk(1.0, block.astype(float).T, beta=1.0, c=total, overwrite_c=True)
    return {}


def streamed(layer: HiddenStateRows, rows: slice, size: int) -> dict[str, float]:
    """Both anisotropies from one pass."""
    moments = Moments(layer.width, {"scatter"})
    for block in layer.blocks(rows, size):
        moments.add(block)
    return {
        "anisotropy": anisotropy(moments),
        "anisotropy, not centred": anisotropy(moments, center=False),
    }


def in_memory(folder: str, rows: int, decomposed: bool) -> Work:
    """Anisotropy of the first rows as one matrix, ours or by singular values."""
    with HiddenStateRows(Path(folder), 0) as layer:
        X = layer.read(slice(0, rows))

    def work() -> dict[str, float]:
        if not decomposed:
            return {"anisotropy": anisotropy(X)}
        squares = np.linalg.svd(X - X.mean(axis=0, dtype=float), compute_uv=False) ** 2
        return {"anisotropy": float(squares[0] / squares.sum())}

    return work
