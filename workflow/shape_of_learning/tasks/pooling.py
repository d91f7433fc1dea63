"""From the tokens of texts to one row of features for each example."""

import numpy as np


def mean_pooled(X: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Mean of the tokens of each text.

    Parameters
    ----------
    X : ndarray, shape (tokens, width)
    texts : ndarray of int, shape (tokens,)
        Number of the text of each token: 0, 1, ... ascending, each at least once.

    Returns
    -------
    ndarray of float64, shape (texts, width)
    """
    starts = np.flatnonzero(np.diff(texts, prepend=-1))
    counts = np.diff(starts, append=len(texts))
    return np.add.reduceat(np.asarray(X, dtype=np.float64), starts, axis=0) / counts[:, None]


def features(pooled: np.ndarray, *, has_pairs: bool) -> np.ndarray:
    """Rows of features: of single texts their vectors, of pairs (u, v) the numbers in |u - v| and u v.

    Parameters
    ----------
    pooled : ndarray of float64, shape (texts, width)
        Of pairs, the two texts one after the other.
    has_pairs : bool

    Returns
    -------
    ndarray of float64, shape (examples, width) or (examples, 2 width)
        A linear model of u and v side by side could not tell which pairs belong together.
    """
    if not has_pairs:
        return pooled
    first, second = pooled[::2], pooled[1::2]
    return np.hstack([np.abs(first - second), first * second])
