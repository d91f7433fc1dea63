"""How the vectors of a layer are divided into the batches that error bars come from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.estimators.arrays import distinct_rows, is_finite
from shape_of_learning.random_streams import random_stream

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Batch:
    """A batch of vectors, as a measure takes it.

    Attributes
    ----------
    n, n_unique : int
        Vectors, and distinct ones among them.
    content : ndarray, tensor or None
        The vectors themselves, the eigenvalues of their covariance or their nearest distances, as
        :class:`~shape_of_learning.metrics.registry.Measure` describes them. None of a broken checkpoint,
        whose hidden states are NaN or infinite.
    """

    n: int
    n_unique: int
    content: "np.ndarray | torch.Tensor | None"

    @classmethod
    def not_finite(cls, n: int) -> "Batch":
        """One that holds NaN or infinity: as if all vectors were one."""
        return cls(n, 1, None)


def vector_batches(vectors: "np.ndarray | torch.Tensor", size: int) -> list[Batch]:
    """Divide a layer, shape (tokens, width), into contiguous batches of at least `size` vectors."""
    batches = [vectors[rows] for rows in contiguous_batches(len(vectors), size)]
    return [
        Batch(len(batch), len(distinct_rows(batch)), batch)
        if is_finite(batch)
        else Batch.not_finite(len(batch))
        for batch in batches
    ]


def contiguous_batches(vectors: int, size: int) -> list[slice]:
    """Divide in dump order into batches of at least `size`, for anisotropy and cosine.

    Parameters
    ----------
    vectors : int
        Number of vectors of the layer.
    size : int
        Least number in a batch.

    Returns
    -------
    list of slice
        ``vectors // size`` batches whose lengths differ by at most one: the remainder is spread
        over them, since these measures depend little on the number of vectors.

    Raises
    ------
    InputError
        If there are fewer than `size` vectors.
    """
    require_one_batch(vectors, size)
    batches = vectors // size
    edges = [vectors * number // batches for number in range(batches + 1)]
    return list(map(slice, edges[:-1], edges[1:]))


def shuffle_of(seed: int, model: str, revision: str, layer: int) -> np.random.Generator:
    """The random numbers that decide the shuffle of a layer."""
    return random_stream(seed, "batches", model=model, revision=revision, layer=layer)


def shuffled_batches(vectors: int, size: int, stream: np.random.Generator) -> list[np.ndarray]:
    """Divide after a shuffle into batches of exactly `size`, for intrinsic dimension.

    Parameters
    ----------
    vectors, size : int
        Number of vectors of the layer and of a batch. Estimates of dimension depend on the number
        of vectors, so the ``vectors % size`` that are left over are dropped.
    stream : numpy.random.Generator
        Decides the shuffle.

    Returns
    -------
    list of ndarray of int64, shape (size,)
        Disjoint row numbers, ascending within a batch, in which order changes nothing but the disk
        likes it.

    Raises
    ------
    InputError
        If there are fewer than `size` vectors.
    """
    require_one_batch(vectors, size)
    order = stream.permutation(vectors)
    return [np.sort(order[i * size : (i + 1) * size]) for i in range(vectors // size)]


def require_one_batch(vectors: int, size: int) -> None:
    """Raise InputError if there are fewer than `size` vectors."""
    if vectors < size:
        raise InputError(
            f"the windows give {vectors} vectors, fewer than one batch of {size}; raise "
            "`sampling.windows` or lower `measurement.batch_vectors`"
        )
