"""Errors of the linear fit of a block, token by token, and how few tokens make most of them."""

import math
from typing import NamedTuple

import numpy as np

from shape_of_learning.estimators.pair import Pair, blocks

QUANTILES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
WORST = 0.01


def fit_errors(pair: Pair) -> np.ndarray:
    r"""Length of each token's residual of the linear fit between normalised vectors.

    .. math:: e_i = \frac{\|y_i - \hat y_i\|}{\|Y - \bar y\|_F}

    with the least-squares prediction. Their squares sum to one less the linearity.

    Parameters
    ----------
    pair : Pair

    Returns
    -------
    ndarray of float64, shape (n,)
        NaN throughout if there are no more vectors than the rank of x and one, or y does not vary.

    References
    ----------
    Razzhigaev et al., Your Transformer is Secretly Linear, ACL 2024, appendix A, figure 9.
    """
    fit = pair.fit
    errors = np.full(len(pair), math.nan)
    if fit.is_defined:
        coefficients = fit.coefficients()
        for some in blocks(np.arange(len(pair))):
            x, residuals = pair.rows(some)
            residuals -= fit.mean_t + (x - fit.mean_x) @ coefficients
            errors[some] = np.sqrt(np.einsum("ij,ij->i", residuals, residuals) / fit.squares.yy)
    return errors


class ErrorSummary(NamedTuple):
    """How the errors of a block are spread over tokens.

    Attributes
    ----------
    quantiles : ndarray of float64, shape (8,)
        At the :data:`QUANTILES`.
    worst_share : float
        Of the total squared error, the share of the worst 1 % of tokens, one at least.
    """

    quantiles: np.ndarray
    worst_share: float


def error_summary(errors: np.ndarray) -> ErrorSummary:
    """Summarise the errors of :func:`fit_errors`, shape (n,).

    Examples
    --------
    >>> float(error_summary(np.array([0.1] * 99 + [1.0])).worst_share.__round__(4))
    0.5025
    """
    if np.isnan(errors).any():
        return ErrorSummary(np.full(len(QUANTILES), math.nan), math.nan)
    squares = np.sort(np.square(errors))
    worst = squares[-max(1, round(WORST * len(squares))) :].sum()
    total = squares.sum()
    share = float(worst / total) if total else math.nan
    return ErrorSummary(np.quantile(errors, QUANTILES), share)
