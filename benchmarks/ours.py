"""The library's estimators as contenders."""

from collections.abc import Callable

import numpy as np

import shape_of_learning as sol
from shape_of_learning.estimators import linearity
from shape_of_learning.estimators.pair import Pair
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.resampling import window_groups
from shape_of_learning.metrics.table_columns import GROUPS

Work = Callable[[], dict[str, float]]
NEIGHBOURS = 100
WINDOWS = 128
LINEARITIES = (
    "linearity",
    "linearity_increment",
    "linearity_held_out",
    "linearity_increment_held_out",
)
# Of so few vectors all is computed once before, so that what is imported late is there.
FEW = 300


def prepared(cloud: str, compute: Callable) -> Work:
    """Read a cloud and return the computation on it, tried on a part."""
    X = np.load(cloud)
    compute(X[:FEW])
    return lambda: compute(X)


def four_dimensions(cloud: str) -> Work:
    """One search for four estimators."""

    def compute(X):
        r = sol.nearest_distances(X, NEIGHBOURS)
        return {"TwoNN": sol.two_nn(r), "MADA": sol.mada(r), "MOM": sol.mom(r), "MLE": sol.mle(r)}

    return prepared(cloud, compute)


def two_nn(cloud: str) -> Work:
    """A search of two neighbours for both variants of TwoNN."""

    def compute(X):
        r = sol.nearest_distances(X, 2)
        return {"TwoNN": sol.two_nn(r), "TwoNN, lowest fifth": sol.two_nn(r, kept=0.2)}

    return prepared(cloud, compute)


def nearest_distances(cloud: str, k: int = NEIGHBOURS) -> Work:
    """The search alone; its value is the mean distance."""
    return prepared(cloud, lambda X: {"mean distance": float(sol.nearest_distances(X, k).mean())})


def anisotropy(cloud: str) -> Work:
    """Anisotropy of a matrix in memory."""
    return prepared(cloud, lambda X: {"anisotropy": sol.anisotropy(X)})


def spread(cloud: str, measure: str) -> Work:
    """A measure of the spread over directions, by its name in the registry."""
    function = MEASURES[measure].chosen(measure, {}).load()
    return prepared(cloud, lambda X: {measure: function(X)})


def spectrum(cloud: str) -> Work:
    """All eigenvalues of the covariance."""
    from shape_of_learning.estimators.spectrum import spectrum

    return prepared(cloud, lambda X: {"largest": float(spectrum(X)[0])})


def log_partition_isotropy(cloud: str) -> Work:
    """Logarithm of partition isotropy of a matrix in an HDF5 file."""
    import h5py

    vectors = h5py.File(cloud)["vectors"]
    sol.log_partition_isotropy(vectors[:FEW, :FEW])
    return lambda: {"ln I": sol.log_partition_isotropy(vectors)}


def everything(cloud: str) -> Work:
    """All estimators of the workflow, as its memory is asked for."""

    def compute(X):
        r = sol.nearest_distances(X, NEIGHBOURS)
        return {
            "TwoNN": sol.two_nn(r),
            "TwoNN, lowest fifth": sol.two_nn(r, kept=0.2),
            "MADA": sol.mada(r),
            "MOM": sol.mom(r),
            "MLE": sol.mle(r),
            "anisotropy": sol.anisotropy(X),
            "anisotropy, not centred": sol.anisotropy(X, center=False),
            "average cosine": sol.average_cosine(X),
            "average cosine, centred": sol.average_cosine(X, center=True),
        }

    return prepared(cloud, compute)


def pair(cloud: str, left_out: bool) -> Work:
    """Both linearities of a block, in sample and held out, and what they are without groups of windows.

    The block adds a part of its input, turned by one coordinate, and a bend.
    """

    def compute(X):
        Y = X + np.float32(0.2) * np.roll(X, 1, axis=1) + np.tanh(X)
        return lambda: scores(X, Y)

    def scores(X, Y):
        windows = np.arange(len(X)) * WINDOWS // len(X)
        groups = window_groups(WINDOWS, 0)[windows]
        parts = [np.flatnonzero(groups == group) for group in range(GROUPS)] if left_out else []
        both = Pair(X, Y, windows)
        return {name: getattr(linearity, f"{name}_without")(both, parts)[0] for name in LINEARITIES}

    X = np.load(cloud)
    compute(X[:FEW])()
    return compute(X)
