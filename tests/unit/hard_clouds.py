"""Clouds on which float64 easily loses its precision, and their exact measures of isotropy."""

import math

import numpy as np

from clouds import gaussian, hidden_states
from shape_of_learning.random_streams import random_stream


def centre_exactly(X):
    """Subtract the mean in extended precision, which has the range for any square."""
    X = np.asarray(X, dtype=np.longdouble)
    X = X[:, np.ptp(X, axis=0) > 0]
    X = X - X.mean(axis=0)
    return X - X.mean(axis=0)  # removes the rounding error of the first mean


def squared_singular_values(X, center=True):
    """Return squared singular values of the matrix with entries up to 1, centred in extended precision."""
    X = centre_exactly(X) if center else np.asarray(X, dtype=np.longdouble)
    return np.linalg.svd((X / np.abs(X).max()).astype(float), compute_uv=False) ** 2


def make_huge_coordinate():
    X = hidden_states()
    X[17, 5] = 1e30
    return X


CLOUDS = {
    "tall": hidden_states,
    "wide": lambda: hidden_states(n=40, d=300),
    "two rows": lambda: gaussian(2, 5),
    "one column": lambda: gaussian(50, 1),
    "isotropic": lambda: gaussian(200, 50),
    "offset 5000 times the signal": lambda: gaussian(300, 40) + 5000 * gaussian(1, 40, seed=1),
    "offset 1e13 times the signal": lambda: gaussian(300, 40) + 1e13 * gaussian(1, 40, seed=1),
    "one constant coordinate": lambda: np.insert(hidden_states(), 3, 1e30 / 3, axis=1),
    "one huge coordinate": make_huge_coordinate,
    "two directions alike": lambda: gaussian(300, 40) * np.where(np.arange(40) < 2, 50, 1),
    "first row 3000 away": lambda: np.insert(hidden_states(), 0, 3000.0, axis=0),
    "float32": lambda: (hidden_states() + 50).astype(np.float32),
    "lengths from 1e-30 to 1e30": lambda: (
        hidden_states() * 10.0 ** random_stream(0, "lengths").uniform(-30, 30, (400, 1))
    ),
    "lengths rising": lambda: hidden_states() * np.logspace(-30, 30, 400)[:, None],
    "scale 1e30": lambda: 1e30 * hidden_states(),
    "scale 1e-30": lambda: 1e-30 * hidden_states(),
}


def mean_cosine_of_all_pairs(X, center=False):
    """Return the mean of all cosines of pairs, in extended precision."""
    X = centre_exactly(X) if center else np.asarray(X, dtype=np.longdouble)
    units = X / np.abs(X).max(axis=1, keepdims=True)
    units = (units / np.sqrt(np.square(units).sum(axis=1, keepdims=True))).astype(float)
    cosines = units @ units.T
    np.fill_diagonal(cosines, 0)
    return math.fsum(cosines.ravel()) / (len(X) * (len(X) - 1))
