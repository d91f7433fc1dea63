"""Statistics of the isotropy of weights. Numbers of weights alone have no interval."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from shape_of_learning.checkpoints.verdict import Kind
from shape_of_learning.claims.bounds import (
    BoundedNumber,
    bound_by_jackknife,
    bound_exactly,
    make_undecided,
)
from shape_of_learning.claims.criteria import Units
from shape_of_learning.claims.evidence import ClaimData, NotMeasured, has_last_layer

OUTPUT_MATRICES = ("output", "tied", "final_norm")  # the matrices at the end of a model
FEWEST_OF_CHANGES = 12  # steps, so that the fit of the decays leaves degrees of freedom
FEWEST_OF_DEVELOPMENT = 6  # steps
# In shares of the training; a mixture of these fits a decay of any speed between them.
DECAYS = (0.05, 0.15, 0.5)
MOST_TURN = 1e6  # standard deviations


def isotropic_matrices(data: ClaimData, estimators: tuple[str, str]) -> Units:
    """Return the isotropy I of a model's output embeddings, and a cosine of its last layer if it is measured.

    Parameters
    ----------
    data : ClaimData
    estimators : sequence of str
        ln I of a matrix, and a cosine of hidden states.
    """
    matrix, cosine = estimators
    of_weights = _select_last_values(data, matrix)
    cosines = {
        name: bound_by_jackknife(curve.last[..., -1, :])
        for name, (curve,) in data.select_curves(cosine).items()
        if name in of_weights and has_last_layer(data, name, curve)
    }
    data.require(cosines, f"`{matrix}` beside `{cosine}`")
    none = make_undecided(bound_exactly(np.nan))
    return {
        name: {"isotropy": bound_exactly(np.exp(isotropy)), "cosine": cosines.get(name, none)}
        for name, isotropy in of_weights.items()
    }


def isotropy_beside_others(
    data: ClaimData, estimators: tuple[str], of: Sequence[str], others: Sequence[str]
) -> Units:
    """Compare the isotropy I of the output embeddings of some models with that of other models.

    Returns
    -------
    Units
        Of each model of `of`: ``isotropy``; ``over_least`` and ``over_greatest``, the isotropy less the least and the
        greatest isotropy among `others`.
    """
    isotropy = {
        name: np.exp(value) for name, value in _select_last_values(data, *estimators).items()
    }
    data.require_models(isotropy, [*of, *others], f"`{estimators[0]}`")
    around = [isotropy[name] for name in others]
    less = {"isotropy": 0, "over_least": min(around), "over_greatest": max(around)}
    return {
        name: {part: bound_exactly(isotropy[name] - other) for part, other in less.items()}
        for name in of
    }


def weights_beside(data: ClaimData, estimators: Sequence[str], reference: str) -> Units:
    """Compare measures of the weights of each model with those of the reference.

    Returns
    -------
    Units
        Of each model and estimator ``ESTIMATOR``, the model less the reference, and ``ESTIMATOR_share``, this
        difference over the size of the reference, unknown where that is 0.
    """
    found = {estimator: _select_last_values(data, estimator) for estimator in estimators}
    for estimator, of in found.items():
        data.require_models(of, [reference], f"`{estimator}`")
    whole = [name for name in found[estimators[0]] if all(name in of for of in found.values())]
    units: dict[str, dict[str, BoundedNumber]] = {}
    for name in whole:
        for estimator, of in found.items():
            if name != reference:
                less, size = of[name] - of[reference], abs(of[reference])
                numbers = units.setdefault(name, {})
                numbers[estimator] = bound_exactly(less)
                share = bound_exactly(less / size if size else np.nan)
                numbers[f"{estimator}_share"] = share if size else make_undecided(share)
    return units


def correlation_with_loss(data: ClaimData, estimators: tuple[str], from_step: int) -> Units:
    """Correlate changes of a measure of the output embeddings with changes of the loss, and test whether both turn.

    Changes are from each step to the next, from `from_step` on. Two independent curves that both saturate have
    correlated values and changes: beyond .8 in nine of ten pairs of curves, and for the changes, which decay, in half
    of them. So a fit of decays of any speed (:data:`DECAYS`) is subtracted from both changes first.

    Returns
    -------
    Units
        Of each model ``correlation``, of the residuals of both fits; ``isotropy_turns`` and ``quality_turns``, how far
        a step between the ends lies above both ends or below both, in standard deviations of the fluctuation from step
        to step, which is estimated from second differences. A curve that only rises, or only falls, has 0.
    """
    losses = pd.concat(data.select_rows("verdicts").values())[["model", "revision", "loss"]]
    units = {}
    for name, rows in data.select_rows("weights").items():
        is_meant = rows["estimator"].isin(estimators) & rows["matrix"].isin(("output", "tied"))
        measured = rows[is_meant & (rows["step"] >= from_step)]
        both = measured.merge(losses, on=["model", "revision"]).dropna(subset=["value", "loss"])
        if len(both) < FEWEST_OF_CHANGES:
            raise NotMeasured(
                f"`{name}` has both `{estimators[0]}` and a loss at {len(both)} of its steps from step "
                f"{from_step:,} on, and {FEWEST_OF_CHANGES} are needed"
            )
        steps, value, loss = both.sort_values("step")[["step", "value", "loss"]].to_numpy(float).T
        share = (steps[1:] - steps[0]) / (steps[-1] - steps[0])
        changes = [_remove_decay(np.diff(of), share) for of in (value, loss)]
        with np.errstate(invalid="ignore"):  # undefined where one does not vary
            correlation = np.corrcoef(np.stack(changes))[0, 1]
        units[name] = {
            "correlation": bound_correlation(correlation, len(share) - len(DECAYS)),
            "isotropy_turns": bound_exactly(_find_turn(value)),
            "quality_turns": bound_exactly(_find_turn(loss)),
        }
    return units


def development_of_isotropy(data: ClaimData, estimators: tuple[str], isotropic: float) -> Units:
    """Return when isotropy falls in the training of each anisotropic model, and whether it rises first.

    Untrained weights do not count. The claim is not about models whose last value of I is `isotropic` or more, nor
    about models whose training has few measured steps, or none near its beginning or its end.

    Returns
    -------
    Units
        Of each model: ``late_share``, of the fall of ln I from its highest step to the last one the share after the
        middle of the training, 0 if there is no fall; ``first_rise``, the rise of ln I from the first step to the
        highest one, in shares of this fall, or 1 if the rise is larger; and ``recovery``, the share of the fall to the
        lowest step that the last one has won back.
    """
    units = {}
    for name, rows in data.select_rows("weights").items():
        is_meant = rows["estimator"].isin(estimators) & rows["matrix"].isin(("output", "tied"))
        verdicts = data.find_rows(name, "verdicts")
        is_unmoved = verdicts.get("verdict", pd.Series(dtype=str)) == Kind.NOT_YET_MOVED
        unmoved = set(verdicts.loc[is_unmoved, "revision"]) if is_unmoved.any() else set()
        own = rows[is_meant & (rows["step"] > 0) & ~rows["revision"].isin(unmoved)]
        own = own.dropna(subset="value").sort_values("step")
        steps, values = own["step"].to_numpy(float), own["value"].to_numpy(float)
        end = max(data.models[name].last_step or 0, steps[-1] if len(steps) else 0)
        if len(steps) < FEWEST_OF_DEVELOPMENT or steps[0] > end / 10 or steps[-1] < 0.85 * end:
            data.outside[name] = f"{len(steps)} steps from the first tenth to the end"
        elif np.exp(values[-1]) >= isotropic:
            data.outside[name] = f"isotropy {np.exp(values[-1]):.2f}, so it is not anisotropic"
        elif values.min() == values.max():
            data.outside[name] = "an isotropy that does not change"
        else:
            highest, lowest = values.max(), values.min()
            fall, rise = highest - values[-1], highest - values[0]
            middle = values[steps <= end / 2][-1]
            whole_fall = values[: values.argmin() + 1].max() - lowest
            units[name] = {
                "late_share": bound_exactly((middle - values[-1]) / fall if fall else 0.0),
                "first_rise": bound_exactly(rise / (max(fall, rise) or 1.0)),
                "recovery": bound_exactly(
                    (values[-1] - lowest) / whole_fall if whole_fall else 0.0
                ),
            }
    data.require(units, f"`{estimators[0]}` during a training that ends anisotropic")
    return units


def _remove_decay(changes: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the residuals of changes after a fit of a constant and decays over a `share` of the training."""
    decays = np.stack([np.ones_like(share), *(np.exp(-share / decay) for decay in DECAYS)], axis=1)
    rest: np.ndarray = changes - decays @ np.linalg.lstsq(decays, changes, rcond=None)[0]
    return rest


def _find_turn(values: np.ndarray) -> float:
    """Return how far a value between the ends lies beyond both ends, in standard deviations of the fluctuation."""
    fluctuation = np.sqrt(
        np.mean(np.diff(values, 2) ** 2) / 6
    )  # the second difference of noise has six variances
    above = np.minimum(values[1:-1] - values[0], values[1:-1] - values[-1]).max()
    below = np.minimum(values[0] - values[1:-1], values[-1] - values[1:-1]).max()
    turn = max(above, below, 0.0)
    return float(min(turn / fluctuation, MOST_TURN)) if fluctuation > 0 else 0.0


def _select_last_values(data: ClaimData, estimator: str) -> dict[str, float]:
    """Select a measure of the output embeddings or the final norm of each model at its last checkpoint."""
    found = {}
    for name, rows in data.select_rows("weights").items():
        is_meant = (rows["estimator"] == estimator) & rows["matrix"].isin(OUTPUT_MATRICES)
        own = rows[is_meant].dropna(subset="value")
        if len(own):
            found[name] = float(own.loc[own["step"].fillna(0).idxmax(), "value"])
    data.require(found, f"`{estimator}`")
    return found


def bound_correlation(correlation: float, number: int) -> BoundedNumber:
    """Give a correlation of independent pairs Fisher's interval, by the inverse hyperbolic tangent."""
    from scipy.special import ndtri

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(divide="ignore"):  # of a perfect one
            middle = np.arctanh(correlation)
        ends = middle + np.array([1, -1]) * ndtri([below, above]) / np.sqrt(number - 3)
        low, high = np.tanh(ends)
        return low, high

    return BoundedNumber(np.asarray(correlation), bounds, (-1, 1))
