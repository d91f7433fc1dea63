"""Tokens by how often their types occur."""

import numpy as np
from numpy.typing import ArrayLike


def frequency_bands(token_ids: ArrayLike) -> np.ndarray:
    """Band of each token by how often its type occurs here: 0 for once, 1 for 2 or 3, 2 for 4 to 7 times, ...

    Parameters
    ----------
    token_ids : array_like of int, shape (n,)

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    _, member, counts = np.unique(np.asarray(token_ids), return_inverse=True, return_counts=True)
    exponents: np.ndarray = np.frexp(counts)[1]
    return exponents.astype(np.int64)[member] - 1
