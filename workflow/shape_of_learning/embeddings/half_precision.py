"""Whether hidden states may be stored in float16: nothing overflows, and TwoNN stays what it is."""

import math
from importlib import import_module

import numpy as np

from shape_of_learning.errors import InputError

# Largest finite number of float16 (IEEE 754 binary16).
LARGEST = 65504
# Largest relative change of the TwoNN estimate; its own statistical error is 1.7 % at n = 4096.
TOLERANCE = 0.01
# The first rows of a layer, about 18 windows drawn at random. Their float32 values stay in memory.
SAMPLE_ROWS = 2048


class HalfPrecision:
    """Round hidden states to float16, and refuse where that loses what is measured.

    Parameters
    ----------
    widths : list of int
        Width of the hidden state of each layer.
    tokens : int
        Number of rows of each layer.
    model : str
        How the messages name the model.

    Notes
    -----
    There is no bfloat16: HDF5 has no such type, and its 8 significant bits are fewer than the 11 of
    float16, to which a bfloat16 forward pass therefore rounds nothing unless it leaves the range.
    """

    def __init__(self, widths: list[int], tokens: int, model: str):
        # Found missing now rather than after the forward pass: the neighbour search needs it.
        import scipy  # noqa: F401

        self._model = model
        rows = min(tokens, SAMPLE_ROWS)
        self._samples = {
            layer: np.empty((rows, width), np.float32) for layer, width in enumerate(widths)
        }

    def rounded(self, layer: int, rows: slice, values: np.ndarray) -> np.ndarray:
        """Round rows of one layer.

        Parameters
        ----------
        layer : int
            0 is the embedding output.
        rows : slice
            Which rows of the layer they are.
        values : ndarray of float32, shape (n, width)
            Finite.

        Returns
        -------
        ndarray of float16, shape (n, width)

        Raises
        ------
        InputError
            If a value overflows.
        """
        with np.errstate(over="ignore"):
            narrow = values.astype(np.float16)
        if not np.isfinite(narrow).all():
            raise InputError(
                f"hidden state {layer} of the model in {self._model} reaches "
                f"{np.abs(values).max():.4g}, but float16 ends at {LARGEST}; set `embeddings.dtype` "
                "to float32"
            )
        sample = self._samples[layer]
        if rows.start < len(sample):
            part = sample[rows]
            part[:] = values[: len(part)]
        return narrow

    def check(self, layer: int) -> None:
        """Compare TwoNN of the sampled rows of one layer before and after rounding, and forget them.

        Raises
        ------
        InputError
            If it changes by more than :data:`TOLERANCE`, or becomes undefined.
        """
        sample = self._samples.pop(layer)
        before, after = _two_nn(sample), _two_nn(sample.astype(np.float16))
        change = abs(after - before) / before
        # Where it is undefined to begin with, as on a handful of distinct rows, nothing is lost.
        if math.isnan(before) or change <= TOLERANCE:
            return
        became = (
            "leaves it undefined"
            if math.isnan(after)
            else f"changes it to {after:.4g}, by {change:.1%}"
        )
        raise InputError(
            f"TwoNN of hidden state {layer} of the model in {self._model} is {before:.4g} on "
            f"{len(sample)} vectors, and rounding to float16 {became}; set `embeddings.dtype` "
            "to float32"
        )


def _two_nn(vectors: np.ndarray) -> float:
    # By name, so that the modules of the estimators are no sources of the dump: an edit to them
    # would otherwise run every forward pass again (see `dump_library` in the rules).
    neighbours = import_module("shape_of_learning.estimators.neighbours")
    intrinsic_dimension = import_module("shape_of_learning.estimators.intrinsic_dimension")
    if len(vectors) < 3:
        return math.nan
    return intrinsic_dimension.two_nn(neighbours.nearest_distances(vectors, 2))
