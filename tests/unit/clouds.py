"""Point clouds whose geometry is known."""

import numpy as np
from scipy.spatial.distance import cdist

from shape_of_learning.random_streams import random_stream


def gaussian(n: int, d: int, seed: int = 0) -> np.ndarray:
    return random_stream(seed, "gaussian").standard_normal((n, d))


def rotation(d: int, seed: int = 0) -> np.ndarray:
    return np.linalg.qr(random_stream(seed, "rotation").standard_normal((d, d)))[0]


def hidden_states(n: int = 400, d: int = 48, seed: int = 0) -> np.ndarray:
    """Draw points with twenty strong directions, weak noise in all, and an offset, like hidden states."""
    stream = random_stream(seed, "hidden states")
    signal = stream.standard_normal((n, 20)) @ stream.standard_normal((20, d))
    return signal + 0.3 * stream.standard_normal((n, d)) + 5 * stream.standard_normal(d)


def distances_by_brute_force(X: np.ndarray, k: int) -> np.ndarray:
    """Return the distances of all rows to their k nearest other rows, copies included."""
    distances = cdist(X, X)
    np.fill_diagonal(distances, np.inf)
    return np.sort(distances, axis=1)[:, :k]
