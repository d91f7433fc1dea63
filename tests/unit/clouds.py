"""Point clouds whose geometry is known."""

import numpy as np

from shape_of_learning.random_streams import random_stream


def gaussian(n: int, d: int, seed: int = 0) -> np.ndarray:
    return random_stream(seed, "gaussian").standard_normal((n, d))


def ball(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Uniform in the unit ball."""
    stream = random_stream(seed, "ball")
    directions = stream.standard_normal((n, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * stream.random((n, 1)) ** (1 / d)


def rotation(d: int, seed: int = 0) -> np.ndarray:
    return np.linalg.qr(random_stream(seed, "rotation").standard_normal((d, d)))[0]


def embedded(X: np.ndarray, d: int, seed: int = 0) -> np.ndarray:
    """The same cloud, turned at random in d dimensions."""
    return X @ rotation(d, seed)[: X.shape[1]]


def hidden_states(n: int = 400, d: int = 48, seed: int = 0) -> np.ndarray:
    """Twenty strong directions and weak noise in all, with an offset, as hidden states have."""
    stream = random_stream(seed, "hidden states")
    signal = stream.standard_normal((n, 20)) @ stream.standard_normal((20, d))
    return signal + 0.3 * stream.standard_normal((n, d)) + 5 * stream.standard_normal(d)
