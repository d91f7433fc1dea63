"""How a statistic reads the evidence on a claim: of which models, steps and layers, and without which."""

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from shape_of_learning.claims.bounds import BoundedNumber, bound_by_jackknife
from shape_of_learning.claims.claim import Claim, ClaimVerdict
from shape_of_learning.claims.criteria import PAIR
from shape_of_learning.claims.evidence import NO_ROWS, Evidence, LayerValues
from shape_of_learning.metrics.tidy import AVERAGED_LAYERS

MOST_NAMED = 4
# A checkpoint at which more than this share of the layers is suspect is not read; without as many layers, since they
# are undefined or have no interval, a mean over the others is not the claim's.
MANY = 0.25
# Nats per token by which a trained model is better than a guess, at least: the frequencies of tokens alone, which are
# learned first, are worth about three.
LEARNED = 0.5
# Ours: an order of magnitude. TwoNN finds 2 in an untrained GPT-NeoX and MADA 40 to 60, since 73 % of the nearest
# neighbours are the same token; with one vector per token TwoNN finds 60 to 85, too.
FACTOR, MOST_COPIES = 10, 0.5
FURTHER_OUT = ("mada", "mom")


class NotMeasured(Exception):
    """What a claim needs and the run does not have, in one sentence."""

    verdict = ClaimVerdict.NOT_MEASURED


class OutsideTheClaim(NotMeasured):
    """Why what the run has is nothing that the claim is on."""

    verdict = ClaimVerdict.OUTSIDE


class ClaimData:
    """The evidence on one claim, as a statistic asks for it.

    Parameters
    ----------
    claim : Claim
    evidence : Evidence
    substitutes : mapping of str to str
        Estimators that are read in the place of the claim's.
    control : str
        The control whose values are read in the place of the models' own; none if empty.

    Attributes
    ----------
    models : dict of str to EvidenceModel
        The claim's models that are in the run, in its order or the run's.
    checkpoints : dict of (str, str)
        Model and revision of all that was read.
    curves_read : dict of (str, str) to LayerValues
        By model and estimator.
    outside : dict of str to str
        Models of which too little of the training was seen, and what was.
    suspects : dict of (str, str) to str
        Model and estimator of which values are beyond the conditions, and how many.
    """

    def __init__(
        self,
        claim: Claim,
        evidence: Evidence,
        substitutes: Mapping[str, str] | None = None,
        control: str = "",
    ) -> None:
        self.claim, self.evidence = claim, evidence
        self.substitutes, self.control = substitutes or {}, control
        self.models = {name: evidence.models[name] for name in claim.list_models(evidence.models)}
        self.checkpoints: dict[tuple[str, str], None] = {}
        self.curves_read: dict[tuple[str, str], LayerValues] = {}
        self.outside: dict[str, str] = {}
        self.suspects: dict[tuple[str, str], str] = {}

    def select_curves(self, *estimators: str) -> dict[str, list[LayerValues]]:
        """Give the curves of some estimators, of each model of which all are measured.

        They have the checkpoints and layers that the claim is on, but for layers that are undefined at one of
        these checkpoints, or without a group, and for checkpoints most of whose layers are suspect.

        Raises
        ------
        NotMeasured
            If that is fewer models than the claim needs.
        OutsideTheClaim
            If it would not be, had more been seen of their training.
        """
        found = {name: of for name in self.models if (of := self.find_curves(name, *estimators))}
        named = [self.substitutes.get(estimator, estimator) for estimator in estimators]
        at = "a sound checkpoint" if self.claim.checkpoints == "last" else "two or more sound steps"
        self.require(found, f"{list_names(named)} at {at}")
        return found

    def select_rows(self, table: str) -> dict[str, pd.DataFrame]:
        """Give the rows of another table, by model; raises as :meth:`select_curves`."""
        found = {name: of for name in self.models if len(of := self.find_rows(name, table))}
        self.require(found, f"tables/{table}")
        return found

    def find_curves(self, model: str, *estimators: str) -> list[LayerValues]:
        """Give the curves of a model, also of none of the claim's, such as a twin's original; [] if one lacks."""
        names = [self.substitutes.get(estimator, estimator) for estimator in estimators]
        selected = [self._select_curve(model, name) for name in names]
        curves = [curve for curve in selected if curve is not None]
        if len(curves) < len(names):
            return []
        for name, curve in zip(names, curves, strict=True):
            self.checkpoints |= {(model, revision): None for revision in curve.revisions}
            self.curves_read[model, name] = curve
        return curves

    def find_rows(self, model: str, table: str) -> pd.DataFrame:
        """Give the rows of such a model."""
        rows = self.evidence.tables.get(table, NO_ROWS)
        rows = rows[rows["model"] == model]
        self.checkpoints |= {(model, revision): None for revision in rows["revision"]}
        return rows

    def require(self, found: Collection[str], what: str) -> None:
        """Raise NotMeasured unless as many models as the claim needs have `what`."""
        named, needed = self.claim.models, self.claim.needed_models
        number, there, with_outside = (
            self.claim.count_models(names, self.models)
            for names in (found, self.models, {*found, *self.outside})
        )
        if number >= needed:
            return
        if self.outside and with_outside >= needed:
            raise OutsideTheClaim(f"{group_models(self.outside)}; {describe_scope(self.claim)}")
        is_group = isinstance(named, str)
        if is_group and there < needed and self.models:
            kind = str(named).replace("_", "-")
            raise NotMeasured(
                f"it needs {needed} {kind} (seeds of a training count as one), and the run has {there}"
            )
        lacking = [name for name in (self.models if is_group else named) if name not in found]
        if lacking and not self.models.keys() & lacking:
            verb = "is" if len(lacking) == 1 else "are"
            raise NotMeasured(f"{list_names(lacking)} {verb} not in the run")
        whose = str(named).replace("_", "-") if is_group and named != "all" else "models"
        said = (
            f"it needs {what} for at least {needed} of the {whose}, and the run has it for {number}"
        )
        raise NotMeasured(said + (f", not for {list_names(lacking)}" if lacking else ""))

    def require_each(self, found: Collection[str], names: Sequence[str], what: str) -> None:
        """Raise NotMeasured unless these models have `what`, however many the claim needs."""
        if lacking := [name for name in dict.fromkeys(names) if name not in found]:
            raise NotMeasured(f"it needs {what} for {list_names(lacking)}, and the run lacks it")

    def _select_curve(self, model: str, estimator: str) -> LayerValues | None:
        """The checkpoints and layers that the claim is on; None if none is left, or the claim is not on it."""
        key = (model, estimator, self.control) if self.control else (model, estimator)
        curve = (self.evidence.controls if self.control else self.evidence.curves).get(key)
        if curve is None:
            return None
        if self.claim.checkpoints == "last" and (guesses := self._find_guesses(model)):
            self.outside[model] = guesses
            return None
        if (
            self.claim.checkpoints == "training"
            and not self.control
            and self._has_no_training(model)
        ):
            self.outside[model] = "one checkpoint"
            return None
        own = self.evidence.curves.get((model, estimator))
        if self.control and len(curve.steps) == 1 and self.claim.checkpoints == "training" and own:
            curve = _repeat_control(curve, own)
        suspect = self._find_suspects(model, estimator, curve)
        wanted = curve.layers >= AVERAGED_LAYERS[self.claim.average_over]
        many = suspect[:, wanted].mean(axis=-1) > MANY
        places = np.array([len(curve.steps) - 1])
        if self.claim.checkpoints == "training":
            steps = self.claim.seen.get("from_step", 0)
            places = np.flatnonzero(curve.steps >= steps)  # not of NaN
        if number := int(suspect[places][:, wanted].sum()):
            left_out = ", left out" if many[places].any() else ""
            self.suspects[model, estimator] = (
                f"{number:,} of {suspect[places][:, wanted].size:,}{left_out}"
            )
        places = places[~many[places]]
        if not len(places):
            return None
        if self.claim.checkpoints == "training":
            if (outside := self._describe_unseen(model, curve.steps[places])) and not self.control:
                self.outside[model] = outside
                return None
            if len(places) < 2:
                return None
        values = curve.values[..., places, :, :]
        undefined = np.isnan(values).any(axis=tuple(range(values.ndim - 2)))
        wanted &= ~suspect[places].any(axis=0)  # few layers, at all steps
        kept = wanted & ~undefined.any(axis=-1)
        if (wanted & ~kept).sum() > MANY * wanted.sum():
            kept = wanted & ~undefined[:, 0]  # what is left has no interval, and decides nothing
        if not kept.any():
            return None
        return replace(
            curve,
            revisions=[curve.revisions[place] for place in places],
            steps=curve.steps[places],
            layers=curve.layers[kept],
            values=values[..., kept, :],
            near_duplicates=curve.near_duplicates[places][:, kept],
            n=curve.n[places],
            undefined=int(wanted.sum() - kept.sum()),
        )

    def _find_suspects(self, model: str, estimator: str, curve: LayerValues) -> np.ndarray:
        """Where the nearest neighbours are copies, (checkpoints, layers) of bool.

        More than a share of the vectors has a near-duplicate; or most nearest neighbours are the same token,
        and estimators that look further out find a dimension of another order of magnitude.
        """
        limit = self.evidence.suspect_above.get(estimator)
        if limit is None or self.claim.on_estimators:
            return np.zeros(curve.near_duplicates.shape, bool)
        suspect = curve.near_duplicates > limit
        further = [self.evidence.curves.get((model, name)) for name in FURTHER_OUT]
        known = [of for of in further if of and np.array_equal(of.layers, curve.layers)]
        if not known or self.control:
            return suspect
        others = np.full((len(known), *suspect.shape), np.nan)
        for number, of in enumerate(known):
            at = {revision: place for place, revision in enumerate(of.revisions)}
            places = [place for place, each in enumerate(curve.revisions) if each in at]
            others[number, places] = _average_draws(of)[[at[curve.revisions[p]] for p in places]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # where none has a value
            median = np.nanmedian(others, axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = np.abs(np.log(_average_draws(curve) / median)) > np.log(FACTOR)
        of_copies = True if curve.same_token is None else ~(curve.same_token <= MOST_COPIES)
        return suspect | (apart & of_copies)

    def _has_no_training(self, model: str) -> bool:
        """Whether all that is measured of a model is of one checkpoint."""
        of_model = (of for (name, *_), of in self.evidence.curves.items() if name == model)
        return max(len(curve.steps) for curve in of_model) == 1

    def _find_guesses(self, model: str) -> str:
        """What says that a model is untrained: at its last checkpoint it does hardly better than a guess."""
        verdicts = self.evidence.tables.get("verdicts", NO_ROWS)
        of_model = verdicts[verdicts["model"] == model]
        if of_model.empty or not of_model["vocabulary"].iloc[-1] > 1:
            return ""
        loss, guess = of_model["loss"].iloc[-1], math.log(of_model["vocabulary"].iloc[-1])
        return f"loss {loss:.2f}; a guess has {guess:.2f}" if loss > guess - LEARNED else ""

    def _describe_unseen(self, model: str, steps: np.ndarray) -> str:
        """What was seen of a training where that is less than the claim is on."""
        seen, end = self.claim.seen, self.models[model].last_step if model in self.models else None
        end = end or (float(steps[-1]) if len(steps) else 0.0)
        late = len(steps) and steps[0] > max(seen.get("from", 1) * end, seen.get("from_step", 0))
        short = len(steps) and steps[-1] < seen.get("to", 0) * end
        if not (late or short):
            return ""
        which = f"first step that counts {steps[0]:,.0f}" if late else f"last one {steps[-1]:,.0f}"
        return f"{which} of {end:,.0f}"


def describe_scope(claim: Claim) -> str:
    """Which models, and which part of a training, a claim is on."""
    if claim.checkpoints == "last":
        return "the claim is on trained models"
    seen, first = claim.seen, claim.seen.get("from_step")
    if not seen:
        return "the claim is on trainings"
    begin = f"the first {100 * seen.get('from', 1):g} %" + (
        f" or at step {first:,}" if first else ""
    )
    end = f" and one after {100 * seen['to']:g} %" if "to" in seen else ""
    earlier = f"; steps before {first:,} do not count" if first else ""
    return f"the claim needs a sound checkpoint in {begin} of the training{end}{earlier}"


def _repeat_control(control: LayerValues, curve: LayerValues) -> LayerValues:
    """A control of one checkpoint, such as untrained weights, at all steps of a curve."""
    at = [0] * len(curve.steps)
    return replace(
        control,
        revisions=curve.revisions,
        steps=curve.steps,
        values=control.values[..., at, :, :],
        near_duplicates=control.near_duplicates[at],
        same_token=None if control.same_token is None else control.same_token[at],
        n=control.n[at],
    )


def _average_draws(curve: LayerValues) -> np.ndarray:
    """Values with all windows, (checkpoints, layers), of draws their mean."""
    values = curve.values[..., 0]
    return values.reshape(-1, *values.shape[-2:]).mean(axis=0)


def select_common_layers(curves: Sequence[LayerValues]) -> list[np.ndarray]:
    """Values of the layers that all curves have, at the last checkpoint, (..., layers, 17)."""
    common = [layer for layer in curves[0].layers if all(layer in curve.layers for curve in curves)]
    if not common:
        raise NotMeasured("of one model there is no layer where all estimators are defined")
    return [curve.last[..., np.isin(curve.layers, common), :] for curve in curves]


def subtract_each(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Differences (..., a, b, 17) of any of some values (..., a, 17) and any of others (..., b, 17)."""
    return values[..., :, None, :] - others[..., None, :, :]


def group_models(said: Mapping[str, str]) -> str:
    """Name models with what is said of them, those together of which the same is said."""
    by: dict[str, list[str]] = {}
    for name, words in said.items():
        by.setdefault(words, []).append(name)
    return "; ".join(f"{list_names(names)} ({words})" for words, names in by.items())


def list_names(names: Sequence[str]) -> str:
    """Name things, of many the first ones."""
    named = ", ".join(f"`{name}`" for name in names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named


def average_layers(curve: LayerValues) -> BoundedNumber:
    """The mean over layers at the last checkpoint."""
    return bound_by_jackknife(curve.means[..., -1, :])


def has_last_layer(data: ClaimData, model: str, curve: LayerValues) -> bool:
    """Whether the last layer is defined, or else another one would stand in its place."""
    return bool(curve.layers[-1] == data.models[model].layers)


def pair_models(data: ClaimData, measured: Mapping[str, Any], *roles: str) -> dict[str, list[Any]]:
    """What is measured of two models, one of each role, by the name of their unit."""
    named = [[name for name in measured if data.models[name].role == role] for role in roles]
    return {PAIR.join(pair): [measured[name] for name in pair] for pair in product(*named)}
