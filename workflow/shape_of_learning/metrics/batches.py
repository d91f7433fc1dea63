"""How the vectors of a layer are divided into the batches that error bars come from."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.estimators.arrays import distinct_rows, is_finite
from shape_of_learning.estimators.dimension import mean_distance_to_mean
from shape_of_learning.estimators.neighbours import nearest_neighbours
from shape_of_learning.estimators.pair import Pair
from shape_of_learning.metrics.leaving_out import NeighbourLists, spectra
from shape_of_learning.metrics.measure_entry import searched_neighbours
from shape_of_learning.random_streams import random_stream


@dataclass(frozen=True)
class Batch:
    """A batch of vectors, and what measures are taken of.

    Attributes
    ----------
    n_unique : int
        Distinct ones among its vectors.
    windows : ndarray of int64, shape (n,)
        The window of text of each vector.
    content : ndarray or tensor, (vectors, windows), Pair, Spectra, NeighbourLists or None
        What the measures of a family are taken of. None of a broken checkpoint, whose hidden states are NaN
        or infinite.
    """

    n_unique: int
    windows: np.ndarray
    content: Any

    @property
    def n(self) -> int:
        """Number of vectors."""
        return len(self.windows)


def vector_batches(vectors: Any, windows: np.ndarray, size: int) -> list[Batch]:
    """Divide a layer into contiguous batches of at least `size` vectors, for measures of vectors.

    Parameters
    ----------
    vectors : ndarray or torch.Tensor, shape (tokens, width)
        One layer.
    windows : ndarray of int64, shape (tokens,)
        The window of each.
    size : int
        Least number of vectors in a batch.
    """
    return [
        Batch(len(distinct_rows(vectors[rows])), windows[rows], vectors[rows])
        if is_finite(vectors[rows])
        else _broken(windows[rows])
        for rows in contiguous_batches(len(vectors), size)
    ]


def spectrum_batches(
    vectors: Any, windows: np.ndarray, size: int, groups: np.ndarray
) -> list[Batch]:
    """Find the spectra of the same batches, with all windows and without each of their `groups`."""
    return [
        batch
        if batch.content is None
        else Batch(batch.n_unique, batch.windows, spectra(batch.content, groups[batch.windows]))
        for batch in vector_batches(vectors, windows, size)
    ]


def neighbour_batches(
    vectors: Any,
    windows: np.ndarray,
    size: int,
    neighbours: int,
    stream: np.random.Generator,
    *,
    with_copies: bool = True,
) -> list[Batch]:
    """Shuffle a layer, divide it into batches of exactly `size` vectors and search within each.

    Parameters
    ----------
    vectors, windows
        As for :func:`vector_batches`.
    size : int
        Vectors of a batch.
    neighbours : int
        How many nearest others measures ask for; :func:`.searched_neighbours` says how many are looked for.
    stream : numpy.random.Generator
        Decides the shuffle.
    with_copies : bool
        Whether a measure counts identical vectors one by one, and needs the unit of its distances.
    """
    searched = min(searched_neighbours(neighbours), size - 1)
    batches = []
    for rows in shuffled_batches(len(vectors), size, stream):
        batch, batch_windows = vectors[rows], windows[rows]
        if not is_finite(batch):
            batches.append(_broken(batch_windows))
            continue
        unit = np.array((mean_distance_to_mean(batch) if with_copies else 0) or 1.0)
        lists = NeighbourLists(*nearest_neighbours(batch, searched), unit)
        batches.append(Batch(len(lists.distances), batch_windows, lists))
    return batches


def window_batch(vectors: Any, windows: np.ndarray) -> Batch:
    """Take all vectors of a layer, with the window of each."""
    if not is_finite(vectors):
        return _broken(windows)
    return Batch(len(distinct_rows(vectors)), windows, (vectors, windows))


def block_batch(before: Any, after: Any, windows: np.ndarray) -> Batch:
    """Take all vectors before and after a block: batches would be too few for wide models.

    ``n_unique`` counts the vectors before the block.
    """
    if not (is_finite(before) and is_finite(after)):
        return _broken(windows)
    return Batch(len(distinct_rows(before)), windows, Pair(before, after, windows))


def _broken(windows: np.ndarray) -> Batch:
    """One that holds NaN or infinity: as if all vectors were one."""
    return Batch(1, windows, None)


def contiguous_batches(vectors: int, size: int) -> list[slice]:
    """Divide in the order of the tokens into batches of at least `size`, for anisotropy and cosine.

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
        Disjoint row numbers, ascending within a batch.

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
