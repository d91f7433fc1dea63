"""Multiply and decompose matrices by SciPy's BLAS and LAPACK, in place and without Python's lock.

The functions of ``scipy.linalg.blas`` call the same routines, but hold the lock, so that threads wait for each other.
Matrices are float64 in Fortran's order.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np


def add_square(x: np.ndarray, total: np.ndarray) -> None:
    """Add ``x.T @ x`` of rows in C's order, (b, d), to the upper triangle of `total`, (d, d)."""
    rows, d = x.shape
    _run("dsyrk", "U", "N", d, rows, 1.0, x.T, d, 1.0, total, d)


def add_product(x: np.ndarray, t: np.ndarray, total: np.ndarray) -> None:
    """Add ``x.T @ t`` of rows in C's order, (b, d) and (b, q), to `total`, (d, q)."""
    rows, d, q = *x.shape, t.shape[1]
    _run("dgemm", "N", "T", d, q, rows, 1.0, x.T, d, t.T, q, 1.0, total, d)


def solve_upper(upper: np.ndarray, b: np.ndarray, *, transpose: bool = False) -> np.ndarray:
    """Overwrite b, (d, q), with the solution of ``upper @ x = b``, or of ``upper.T @ x = b``."""
    d, q = b.shape
    _run("dtrsm", "L", "U", "T" if transpose else "N", "N", d, q, 1.0, upper, d, b, d)
    return b


def multiply_upper(upper: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Overwrite b, (d, q), with ``upper @ b``."""
    d, q = b.shape
    _run("dtrmm", "L", "U", "N", "N", d, q, 1.0, upper, d, b, d)
    return b


def decompose_cholesky(a: np.ndarray) -> bool:
    """Overwrite the upper triangle of a symmetric matrix, (d, d), with U of ``a = U.T @ U``; False if there is no U."""
    info = np.zeros(1, np.intc)
    _run("dpotrf", "U", len(a), a, len(a), info)
    return not info[0]


def _run(routine: str, *arguments: str | int | float | np.ndarray) -> None:
    """Call a routine, which takes pointers to all arguments."""
    _find_routine(routine)(*map(_point_to, arguments))


def _point_to(value: str | int | float | np.ndarray) -> Any:
    if isinstance(value, np.ndarray):
        assert value.flags.f_contiguous, "a matrix is not in Fortran's order"
        return value.ctypes
    if isinstance(value, str):
        return ctypes.byref(ctypes.c_char(value.encode()))
    return ctypes.byref(ctypes.c_int(value) if isinstance(value, int) else ctypes.c_double(value))


@cache
def _find_routine(name: str) -> Callable[..., None]:
    """Find a routine among those that SciPy offers to compiled code; `ctypes` calls it without the lock."""
    from scipy.linalg import cython_blas, cython_lapack

    capsules: dict[str, Any] = cython_blas.__pyx_capi__ | cython_lapack.__pyx_capi__
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = python.PyCapsule_GetName(capsules[name])
    address = python.PyCapsule_GetPointer(capsules[name], signature)
    arguments = signature.count(b"*")
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)
