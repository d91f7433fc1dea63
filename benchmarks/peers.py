"""Other packages and plain linear algebra as contenders, each as its own documentation would have it called.

All get the vectors in float64, which is what they compute in.
"""

import ctypes
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np

from benchmarks.ours import FEW, NEIGHBOURS, Work

M_MMAP_THRESHOLD = -3  # of malloc.h


def prepared(cloud: str, compute: Callable) -> Work:
    """Read a cloud and return the computation on it, tried on a part."""
    warnings.simplefilter("ignore")
    X = np.load(cloud).astype(float)
    compute(X[:FEW])
    return lambda: compute(X)


def scikit_dimension(cloud: str, estimator: str) -> Work:
    """One estimator of scikit-dimension, with the neighbours that ours has."""
    import skdim

    settings = {"n_neighbors": NEIGHBOURS} if estimator == "MOM" else {}

    def compute(X):
        fitted = getattr(skdim.id, estimator)().fit(X, **settings)
        return {estimator: float(fitted.dimension_)}

    return prepared(cloud, compute)


def dadapy(cloud: str) -> Work:
    """TwoNN of DADApy, with three neighbours instead of its hundred."""
    from dadapy import Data

    def compute(X):
        data = Data(coordinates=X, maxk=3, verbose=False)
        return {"TwoNN": float(data.compute_id_2NN()[0])}

    return prepared(cloud, compute)


def authors_package() -> ModuleType:
    """Load the functions of llm_microscope by their path, since importing the package fails (0.0.7)."""
    folder = Path(find_spec("llm_microscope").submodule_search_locations[0])
    spec = spec_from_file_location("llm_microscope_functions", folder / "functions.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def authors_two_nn(cloud: str) -> Work:
    """TwoNN of the paper's authors, which fits the lowest fifth of the ratios."""
    import torch

    # Each step takes and gives back tens of megabytes and keeps two numbers, which the C library by default
    # puts where these were, so that memory grows with every step, beyond any machine's. Large blocks apart:
    if sys.platform == "linux":
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 20)
    functions = authors_package()

    def compute(X):
        value = functions.intrinsic_dimension(torch.from_numpy(X), torch.device("cpu"))
        return {"TwoNN, lowest fifth": float(value)}

    return prepared(cloud, compute)


def matrix_product(cloud: str, half: bool = False) -> Work:
    """X X^T in float32, or the `half` of it that is enough since it is symmetric.

    NumPy notices by itself that both factors are one matrix, and spares the other half; a copy prevents that.
    """
    X = np.load(cloud)
    Y = X if half else X.copy()
    return lambda: {"trace": float(np.einsum("ii->", X @ Y.T))}


def eigenvalues(cloud: str) -> Work:
    """LAPACK's eigenvalues of a covariance that is there already."""
    X = np.load(cloud).astype(float)
    covariance = np.cov(X, rowvar=False)
    np.linalg.eigvalsh(covariance[:FEW, :FEW])
    return lambda: {"largest": float(np.linalg.eigvalsh(covariance)[-1])}


def svd(cloud: str, vectors: bool = True) -> Work:
    """Anisotropy by its definition, from a singular value decomposition with or without its vectors."""

    def compute(X):
        found = np.linalg.svd(X - X.mean(axis=0), full_matrices=False, compute_uv=vectors)
        squares = (found[1] if vectors else found) ** 2
        return {"anisotropy": float(squares[0] / squares.sum())}

    return prepared(cloud, compute)
