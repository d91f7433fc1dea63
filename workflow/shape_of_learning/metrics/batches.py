"""How the vectors of a layer are divided into the batches that error bars come from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.estimators.arrays import distinct_rows, is_finite
from shape_of_learning.random_streams import random_stream

if TYPE_CHECKING:
    import torch


class Spectra(NamedTuple):
    """Eigenvalues of the covariance of a batch.

    Attributes
    ----------
    eigenvalues : ndarray of float64, shape (r,)
        Descending.
    without : ndarray of float64, shape (16, r)
        Those without each group of windows; NaN where fewer vectors remain than give so many.
    """

    eigenvalues: np.ndarray
    without: np.ndarray


class Labelled(NamedTuple):
    """Vectors and the group of each.

    Attributes
    ----------
    vectors : ndarray or tensor, shape (n, width)
    groups : ndarray of int64, shape (n,)
    """

    vectors: Any
    groups: np.ndarray


@dataclass(frozen=True)
class Batch:
    """A batch of vectors, and what measures are taken of.

    Attributes
    ----------
    n_unique : int
        Distinct ones among its vectors.
    windows : ndarray of int64, shape (n,)
        The window of text of each vector.
    content : ndarray, tensor, Labelled, Pair, Spectra, NeighbourLists or None
        The vectors themselves, with what belongs to each, their spectra or their nearest neighbours. None of
        a broken checkpoint, whose hidden states are NaN or infinite.
    """

    n_unique: int
    windows: np.ndarray
    content: Any

    @property
    def n(self) -> int:
        """Number of vectors."""
        return len(self.windows)

    @classmethod
    def not_finite(cls, windows: np.ndarray) -> "Batch":
        """One that holds NaN or infinity: as if all vectors were one."""
        return cls(1, windows, None)


def vector_batches(
    vectors: "np.ndarray | torch.Tensor", windows: np.ndarray, size: int
) -> list[Batch]:
    """Divide a layer into contiguous batches of at least `size` vectors.

    Parameters
    ----------
    vectors : ndarray or torch.Tensor, shape (tokens, width)
        One layer.
    windows : ndarray of int64, shape (tokens,)
        The window of each.
    size : int
        Least number of vectors in a batch.
    """
    batches = contiguous_batches(len(vectors), size)
    return [
        Batch(len(distinct_rows(vectors[rows])), windows[rows], vectors[rows])
        if is_finite(vectors[rows])
        else Batch.not_finite(windows[rows])
        for rows in batches
    ]


def labelled_batch(
    vectors: "np.ndarray | torch.Tensor", windows: np.ndarray, labels: np.ndarray
) -> Batch:
    """Take all vectors of a layer, with the group of each; shapes (tokens, width), (tokens,), (tokens,)."""
    if not is_finite(vectors):
        return Batch.not_finite(windows)
    return Batch(len(distinct_rows(vectors)), windows, Labelled(vectors, labels))


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


def shuffle_of(seed: int, model: str) -> np.random.Generator:
    """The random numbers that decide the shuffle of a model's tokens, one for all its layers and revisions.

    So an average over layers, or a difference between steps, is one of the same tokens.
    """
    return random_stream(seed, "batches", model=model)


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
            "`sampling.windows` or lower `measurement.batch_vectors` (with "
            "`measurement.token_types: one` only one vector of each token type is measured)"
        )
