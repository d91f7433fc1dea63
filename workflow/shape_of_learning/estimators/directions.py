"""Sums of unit vectors: where the rows of a cloud point on average."""

import numpy as np

# Squared norms between these are taken as they are: no square of a coordinate that counts beside the
# largest underflows, and none overflows.
LEAST_SQUARE, LARGEST_SQUARE = 1e-250, 1e300


class DirectionSum:
    r"""Sum of :math:`x_i / \|x_i\|` over rows that may come in blocks, in any order.

    Parameters
    ----------
    width : int
        Number of coordinates, d.
    noise : float
        Rows whose norm is not above it have no direction and are left out.

    Attributes
    ----------
    total : ndarray of float64, shape (d,)
        The sum.
    directed : int
        Rows that it is taken over.
    """

    def __init__(self, width: int, noise: float = 0.0):
        self.noise = noise
        self.total = np.zeros(width)
        self.directed = 0

    def add(self, rows: np.ndarray) -> None:
        """Take in finite `rows`, float64 of shape (n, d)."""
        with np.errstate(over="ignore"):
            squares = np.einsum("ij,ij->i", rows, rows)
        usual = (squares > LEAST_SQUARE) & (squares < LARGEST_SQUARE)
        norms = np.sqrt(squares)
        directed = usual & (norms > self.noise)
        weights = np.divide(1.0, norms, out=np.zeros(len(rows)), where=directed)
        # Not a matrix product, whose last bits depend on the number of threads.
        self.total += np.einsum("i,ij->j", weights, rows)
        self.directed += int(directed.sum())
        if not usual.all():
            self._add_extreme(rows[~usual])

    def _add_extreme(self, rows: np.ndarray) -> None:
        largest = np.abs(rows).max(axis=1)
        rows, largest = rows[largest > 0], largest[largest > 0]
        # Divided by its largest entry first, no row is too large or too small to be squared.
        rows = rows / largest[:, None]
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        directed = norms > self.noise / largest
        self.total += (rows[directed] / norms[directed, None]).sum(axis=0)
        self.directed += int(directed.sum())

    def merge(self, other: "DirectionSum") -> None:
        """Take in what another sum has seen; both must measure from the same point."""
        self.total += other.total
        self.directed += other.directed

    def average_cosine(self) -> float:
        """Mean cosine over all pairs of different rows; NaN if fewer than two have a direction."""
        if self.directed < 2:
            return float("nan")
        pairs = self.directed * (self.directed - 1)
        return min((float(np.square(self.total).sum()) - self.directed) / pairs, 1.0)
