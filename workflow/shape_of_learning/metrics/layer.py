"""All measures of one layer that is in memory."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.metrics.batches import Batch, labelled_batch, vector_batches
from shape_of_learning.metrics.measure_entry import ChosenMeasure
from shape_of_learning.metrics.measurements import Measured, measure_batches
from shape_of_learning.metrics.neighbour_search import neighbour_batches
from shape_of_learning.metrics.spectra import spectrum_batches

if TYPE_CHECKING:
    import torch


def measure_layer(
    vectors: "np.ndarray | torch.Tensor",
    windows: np.ndarray,
    measures: Mapping[str, ChosenMeasure],
    batch_vectors: int,
    neighbours: int,
    stream: np.random.Generator,
    groups: np.ndarray,
    token_ids: np.ndarray | None = None,
) -> dict[str, Measured]:
    """Measure one layer, with one neighbour search and one set of spectra per batch at most.

    Parameters
    ----------
    vectors : ndarray or torch.Tensor, shape (tokens, width)
        The rows that are measured. Where it is a tensor on a GPU, that measures.
    windows : ndarray of int64, shape (tokens,)
        The window of each.
    measures : mapping of str to ChosenMeasure
        By name.
    batch_vectors, neighbours : int
        ``measurement.batch_vectors`` and ``measurement.neighbours`` of the configuration.
    stream : numpy.random.Generator
        Decides the shuffle before the batches of the neighbour search, :func:`.shuffle_of`.
    groups : ndarray of int64, shape (windows,)
        From :func:`.window_groups`.
    token_ids : ndarray of int64, shape (tokens,), optional
        The entry of the vocabulary of each vector, where a labelled measure groups by it.

    Returns
    -------
    dict of str to Measured
        For each measure its values.
    """

    def batches_of(kind: str, groups_are: str) -> list[Batch]:
        if kind == "vectors":
            return vector_batches(vectors, windows, batch_vectors)
        if kind == "spectrum":
            return spectrum_batches(vectors, windows, batch_vectors, groups)
        if kind == "labelled":
            labels = windows if groups_are == "windows" else token_ids
            assert labels is not None  # whoever asks for them gives them
            return [labelled_batch(vectors, windows, labels)]
        return neighbour_batches(vectors, windows, batch_vectors, neighbours, stream)

    kinds = {(measure.of, measure.groups) for measure in measures.values()}
    batches = {kind: batches_of(*kind) for kind in kinds}
    return {
        name: measure_batches(batches[measure.of, measure.groups], measure, groups)
        for name, measure in measures.items()
    }
