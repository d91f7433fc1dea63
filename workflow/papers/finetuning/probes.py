"""Linear probes: texts as features, regressions, and the score of a constant prediction."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression, Ridge

# Half of it times the squared weights is added to the mean loss; features have variance 1 on average.
PENALTY = 0.02
MOST_ITERATIONS = 1000
TOLERANCE = 1e-6  # of the gradient's largest component, per example

Predict = Callable[[np.ndarray], np.ndarray]


def pool_tokens(X: np.ndarray, texts: np.ndarray) -> np.ndarray:
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


def make_features(pooled: np.ndarray, *, has_pairs: bool) -> np.ndarray:
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


def fit_probe(X: np.ndarray, labels: np.ndarray, *, has_classes: bool, blocks: int = 1) -> Predict:
    """Fit a logistic regression of classes or a ridge regression of grades, and return how it predicts.

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
    """
    mean = X.mean(axis=0)
    spread = np.sqrt(((X - mean) ** 2).reshape(len(X), blocks, -1).mean(axis=(0, 2)))
    scale = np.repeat(np.where(spread > 0, spread, 1.0), X.shape[1] // blocks)
    strength = len(X) * PENALTY
    if has_classes:
        labels = labels.astype(np.int64)
        # Of two classes scikit-learn has one vector of weights, the difference of the two that others have.
        share = 2 if len(np.unique(labels)) == 2 else 1
        model = LogisticRegression(C=share / strength, tol=TOLERANCE, max_iter=MOST_ITERATIONS)
    else:
        model = Ridge(alpha=strength)
    model.fit((X - mean) / scale, labels)
    return lambda Y: model.predict((Y - mean) / scale)


def chance_score(metric: str, labels: ArrayLike) -> float:
    """Score of predictions that know nothing of the texts: always the most frequent class; no correlation."""
    if metric != "accuracy":
        return 0.0
    return float(np.unique(np.asarray(labels), return_counts=True)[1].max() / np.size(labels))
