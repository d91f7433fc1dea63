"""What a linear model reads from vectors: logistic regression of classes, ridge regression of grades."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

# Half of it times the squared weights is added to the mean loss; features have variance 1 on average.
PENALTY = 0.02
MOST_ITERATIONS = 1000
TOLERANCE = 1e-6  # of the gradient's largest component, per example


@dataclass(frozen=True)
class LinearProbe:
    """A fitted linear model of centred and scaled features.

    Attributes
    ----------
    mean, scale : ndarray of float64, shape (features,)
        Of the features it was fitted on; features of one block have one scale.
    weights : ndarray of float64, shape (features, outputs)
    intercept : ndarray of float64, shape (outputs,)
    classes : ndarray of int, shape (outputs,), or None
        None for grades, of which there is one output.
    """

    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray | None

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the classes or grades of features of shape (n, features)."""
        outputs = (X - self.mean) / self.scale @ self.weights + self.intercept
        return outputs[:, 0] if self.classes is None else self.classes[outputs.argmax(axis=1)]


def fit_probe(
    X: np.ndarray, labels: np.ndarray, *, has_classes: bool, blocks: int = 1
) -> LinearProbe:
    """Fit a probe; the same numbers give the same probe.

    Parameters
    ----------
    X : ndarray of float64, shape (n, features)
    labels : ndarray, shape (n,)
        Classes as whole numbers, or grades.
    has_classes : bool
        Which of them.
    blocks : int
        Blocks of as many features each, side by side. Each is divided by its root mean square deviation, one
        number, so that a rotation of its space changes nothing.

    Raises
    ------
    ValueError
        If features hold NaN or infinity.

    Notes
    -----
    Multinomial logistic regression is convex; L-BFGS starts at zero and ends where the gradient vanishes.
    """
    if not np.isfinite(X).all():
        raise ValueError("X holds NaN or infinity")
    mean = X.mean(axis=0)
    spread = np.sqrt(((X - mean) ** 2).reshape(len(X), blocks, -1).mean(axis=(0, 2)))
    scale = np.repeat(np.where(spread > 0, spread, 1.0), X.shape[1] // blocks)
    Z = (X - mean) / scale
    if has_classes:
        classes = np.unique(labels.astype(np.int64))
        return LinearProbe(mean, scale, *_logistic(Z, labels, classes), classes)
    weights, intercept = _ridge(Z, labels.astype(np.float64))
    return LinearProbe(mean, scale, weights, intercept, None)


def _ridge(Z: np.ndarray, grades: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n, features = Z.shape
    middle = grades.mean()
    gram = Z.T @ Z + PENALTY * n * np.eye(features)
    return np.linalg.solve(gram, Z.T @ (grades - middle))[:, None], np.array([middle])


def _logistic(
    Z: np.ndarray, labels: np.ndarray, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    n, features = Z.shape
    shape = (features + 1, len(classes))
    true = (labels[:, None] == classes).astype(np.float64)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(shape)
        logits = Z @ weights[1:] + weights[0]
        total = logsumexp(logits, axis=1, keepdims=True)
        errors = np.exp(logits - total) - true
        gradient = np.empty(shape)
        gradient[0] = errors.sum(axis=0)
        gradient[1:] = Z.T @ errors + n * PENALTY * weights[1:]
        misfit = float(total.sum() - (logits * true).sum())
        return misfit / n + PENALTY / 2 * float((weights[1:] ** 2).sum()), gradient.ravel() / n

    found = minimize(
        loss,
        np.zeros(shape).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MOST_ITERATIONS, "gtol": TOLERANCE, "ftol": 0},
    )
    weights = found.x.reshape(shape)
    return weights[1:], weights[0]
