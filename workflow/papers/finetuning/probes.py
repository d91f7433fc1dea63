"""Linear probes: texts as features, regressions, and the score of a constant prediction."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression, Ridge

# Half of the penalty times the sum of squared weights is added to the mean loss; features have variance 1 on average.
PENALTY = 0.02
MOST_ITERATIONS = 1000
TOLERANCE = 1e-6  # of the gradient's largest component, per example

Predict = Callable[[np.ndarray], np.ndarray]


def pool_tokens(X: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Average the tokens of each text.

    Parameters
    ----------
    X : ndarray, shape (tokens, width)
    texts : ndarray of int, shape (tokens,)
        The number of each token's text, ascending from 0; each text has at least one token.

    Returns
    -------
    ndarray of float64, shape (texts, width)
    """
    starts = np.flatnonzero(np.diff(texts, prepend=-1))
    counts = np.diff(starts, append=len(texts))
    return np.add.reduceat(np.asarray(X, dtype=np.float64), starts, axis=0) / counts[:, None]


def make_features(text_vectors: np.ndarray, *, has_pairs: bool) -> np.ndarray:
    """Make the features of each example: the vector of a text, or |u - v| and u v for a pair of texts (u, v).

    Parameters
    ----------
    text_vectors : ndarray of float64, shape (texts, width)
        The vectors of texts; the two texts of a pair follow each other.
    has_pairs : bool
        Whether an example is a pair of texts.

    Returns
    -------
    ndarray of float64, shape (examples, width) or (examples, 2 width)
        A linear model of u and v side by side could not compare the two texts of a pair.
    """
    if not has_pairs:
        return text_vectors
    first, second = text_vectors[::2], text_vectors[1::2]
    return np.hstack([np.abs(first - second), first * second])


def fit_probe(X: np.ndarray, labels: np.ndarray, *, has_classes: bool, blocks: int = 1) -> Predict:
    """Fit a logistic regression of classes or a ridge regression of grades, and return its prediction function.

    Parameters
    ----------
    X : ndarray of float64, shape (n, features)
    labels : ndarray, shape (n,)
        Classes as whole numbers, or grades.
    has_classes : bool
        Whether the labels are classes.
    blocks : int
        The number of blocks of features, of equal width. All features of a block are divided by one number, their root
        mean square deviation, so that a rotation of the block changes nothing.

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
        # For two classes, scikit-learn fits one vector of weights, the difference of the vectors of both classes.
        share = 2 if len(np.unique(labels)) == 2 else 1
        model = LogisticRegression(C=share / strength, tol=TOLERANCE, max_iter=MOST_ITERATIONS)
    else:
        model = Ridge(alpha=strength)
    model.fit((X - mean) / scale, labels)
    return lambda Y: model.predict((Y - mean) / scale)


def chance_score(metric: str, labels: ArrayLike) -> float:
    """Return the score of a constant prediction: the share of the most frequent class, or a correlation of 0."""
    if metric != "accuracy":
        return 0.0
    return float(np.unique(np.asarray(labels), return_counts=True)[1].max() / np.size(labels))
