"""Statistics of the isotropy of weights. Numbers of weights are exact, since no text is sampled."""

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
FEWEST_STEPS_OF_CHANGES = 12  # so that the fit of the decays leaves degrees of freedom
FEWEST_STEPS_OF_DEVELOPMENT = 6
# Lengths of decays in shares of the training; a mixture of these decays fits any decay between them.
DECAYS = (0.05, 0.15, 0.5)
MOST_TURN = 1e6  # standard deviations


def isotropic_matrices(data: ClaimData, estimators: tuple[str, str]) -> Units:
    """Return the isotropy I of a model's output embeddings, and a cosine of its last layer if it is measured.

    Parameters
    ----------
    data : ClaimData
    estimators : sequence of str
        The names of ln I of a matrix and of a cosine of hidden states.
    """
    matrix, cosine = estimators
    isotropies = _select_last_values(data, matrix)
    cosines = {
        name: bound_by_jackknife(curve.last[..., -1, :])
        for name, (curve,) in data.select_curves(cosine).items()
        if name in isotropies and has_last_layer(data, name, curve)
    }
    data.require(cosines, f"`{matrix}` beside `{cosine}`")
    unknown_cosine = make_undecided(bound_exactly(np.nan))
    return {
        name: {
            "isotropy": bound_exactly(np.exp(isotropy)),
            "cosine": cosines.get(name, unknown_cosine),
        }
        for name, isotropy in isotropies.items()
    }


def isotropy_beside_others(
    data: ClaimData, estimators: tuple[str], models: Sequence[str], larger_models: Sequence[str]
) -> Units:
    """Compare the isotropy I of the output embeddings of some models with that of other models.

    Returns
    -------
    Units
        Of each of `models`, ``isotropy``; and ``over_least`` and ``over_greatest``, the isotropy less the least and the
        greatest isotropy of `larger_models`.
    """
    isotropy = {
        name: np.exp(value) for name, value in _select_last_values(data, *estimators).items()
    }
    data.require_models(isotropy, [*models, *larger_models], f"`{estimators[0]}`")
    larger_isotropies = [isotropy[name] for name in larger_models]
    return {
        name: {
            "isotropy": bound_exactly(isotropy[name]),
            "over_least": bound_exactly(isotropy[name] - min(larger_isotropies)),
            "over_greatest": bound_exactly(isotropy[name] - max(larger_isotropies)),
        }
        for name in models
    }


def weights_beside(data: ClaimData, estimators: Sequence[str], reference: str) -> Units:
    """Compare measures of the weights of each model with those of the reference.

    Returns
    -------
    Units
        Of each model and estimator, ``ESTIMATOR``, the value of the model less that of the reference; and
        ``ESTIMATOR_share``, this difference over the size of the reference's value, unknown if that value is 0.
    """
    tables = {estimator: _select_last_values(data, estimator) for estimator in estimators}
    for estimator, values in tables.items():
        data.require_models(values, [reference], f"`{estimator}`")
    units: dict[str, dict[str, BoundedNumber]] = {}
    for name in tables[estimators[0]]:
        if name == reference or not all(name in values for values in tables.values()):
            continue
        units[name] = {}
        for estimator, values in tables.items():
            difference = values[name] - values[reference]
            size = abs(values[reference])
            share = bound_exactly(difference / size if size else np.nan)
            units[name][estimator] = bound_exactly(difference)
            units[name][f"{estimator}_share"] = share if size else make_undecided(share)
    return units


def correlation_with_loss(data: ClaimData, estimators: tuple[str], first_step: int) -> Units:
    """Correlate changes of a measure of the output embeddings with changes of the loss, and test whether both turn.

    A change is the difference from one step to the next, from `first_step` on. If two independent curves saturate,
    their values are correlated beyond .8 in nine of ten pairs of curves, and so are their changes, which decay, in half
    of the pairs. So a fit of decays (:data:`DECAYS`) is first subtracted from the changes of both curves.

    Returns
    -------
    Units
        Of each model, ``correlation``, the correlation of the residuals of both fits; ``isotropy_turns`` and
        ``quality_turns``, the largest distance of a step above both ends or below both ends of the curve, in standard
        deviations of the fluctuation from step to step. This deviation is estimated from second differences. If a curve
        only rises, or only falls, the number is 0.
    """
    losses = pd.concat(data.select_rows("verdicts").values())[["model", "revision", "loss"]]
    units = {}
    for name, rows in data.select_rows("weights").items():
        is_meant = rows["estimator"].isin(estimators) & rows["matrix"].isin(("output", "tied"))
        measured_rows = rows[is_meant & (rows["step"] >= first_step)]
        joined_rows = measured_rows.merge(losses, on=["model", "revision"]).dropna(
            subset=["value", "loss"]
        )
        if len(joined_rows) < FEWEST_STEPS_OF_CHANGES:
            raise NotMeasured(
                f"model `{name}` has both `{estimators[0]}` and a loss at {len(joined_rows)} steps from step "
                f"{first_step:,} on, but {FEWEST_STEPS_OF_CHANGES} are needed"
            )
        steps, value, loss = (
            joined_rows.sort_values("step")[["step", "value", "loss"]].to_numpy(float).T
        )
        share = (steps[1:] - steps[0]) / (steps[-1] - steps[0])
        changes = [_remove_decay(np.diff(values), share) for values in (value, loss)]
        # The correlation is undefined if the changes of a curve do not vary.
        with np.errstate(invalid="ignore"):
            correlation = np.corrcoef(np.stack(changes))[0, 1]
        units[name] = {
            "correlation": bound_correlation(correlation, len(share) - len(DECAYS)),
            "isotropy_turns": bound_exactly(_find_turn(value)),
            "quality_turns": bound_exactly(_find_turn(loss)),
        }
    return units


def development_of_isotropy(data: ClaimData, estimators: tuple[str], isotropic: float) -> Units:
    """Return when isotropy falls in the training of each anisotropic model, and whether it rises first.

    Untrained weights do not count. The claim leaves out models whose last value of I is `isotropic` or more, and
    models with few measured steps, or without measured steps near the beginning or the end of the training.

    Returns
    -------
    Units
        The numbers describe ln I of each model. Its fall is the difference between the highest step and the last step.
        ``late_share`` is the share of the fall that follows the middle of the training, 0 if there is no fall.
        ``first_rise`` is the rise from the first step to the highest step in shares of the fall, or 1 if the rise is
        larger. ``recovery`` is the rise from the lowest step to the last step, in shares of the whole fall to the
        lowest step.
    """
    units = {}
    for name, rows in data.select_rows("weights").items():
        is_meant = rows["estimator"].isin(estimators) & rows["matrix"].isin(("output", "tied"))
        verdicts = data.find_rows(name, "verdicts")
        is_unmoved = verdicts.get("verdict", pd.Series(dtype=str)) == Kind.NOT_YET_MOVED
        unmoved_revisions = set(verdicts.loc[is_unmoved, "revision"]) if is_unmoved.any() else set()
        model_rows = rows[is_meant & (rows["step"] > 0) & ~rows["revision"].isin(unmoved_revisions)]
        model_rows = model_rows.dropna(subset="value").sort_values("step")
        steps = model_rows["step"].to_numpy(float)
        values = model_rows["value"].to_numpy(float)
        end = max(data.models[name].last_step or 0, steps[-1] if len(steps) else 0)
        if (
            len(steps) < FEWEST_STEPS_OF_DEVELOPMENT
            or steps[0] > end / 10
            or steps[-1] < 0.85 * end
        ):
            data.outside[name] = f"{len(steps)} steps from the first tenth to the end"
        elif np.exp(values[-1]) >= isotropic:
            data.outside[name] = f"isotropy {np.exp(values[-1]):.2f}, so it is not anisotropic"
        elif values.min() == values.max():
            data.outside[name] = "an isotropy that does not change"
        else:
            lowest = values.min()
            fall = values.max() - values[-1]
            rise = values.max() - values[0]
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
    # The second difference of noise has six times the variance of the noise.
    fluctuation = np.sqrt(np.mean(np.diff(values, 2) ** 2) / 6)
    above = np.minimum(values[1:-1] - values[0], values[1:-1] - values[-1]).max()
    below = np.minimum(values[0] - values[1:-1], values[-1] - values[1:-1]).max()
    turn = max(above, below, 0.0)
    return float(min(turn / fluctuation, MOST_TURN)) if fluctuation > 0 else 0.0


def _select_last_values(data: ClaimData, estimator: str) -> dict[str, float]:
    """Select a measure of the output embeddings, or of the final norm, at the last checkpoint of each model."""
    last_values = {}
    for name, rows in data.select_rows("weights").items():
        is_meant = (rows["estimator"] == estimator) & rows["matrix"].isin(OUTPUT_MATRICES)
        model_rows = rows[is_meant].dropna(subset="value")
        if len(model_rows):
            last_values[name] = float(
                model_rows.loc[model_rows["step"].fillna(0).idxmax(), "value"]
            )
    data.require(last_values, f"`{estimator}`")
    return last_values


def bound_correlation(correlation: float, number: int) -> BoundedNumber:
    """Give a correlation of independent pairs Fisher's interval, which rests on the inverse hyperbolic tangent."""
    from scipy.special import ndtri

    def bounds(below: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(divide="ignore"):  # the value of a perfect correlation is infinite
            middle = np.arctanh(correlation)
        ends = middle + np.array([1, -1]) * ndtri([below, above]) / np.sqrt(number - 3)
        low, high = np.tanh(ends)
        return low, high

    return BoundedNumber(np.asarray(correlation), bounds, (-1, 1))
