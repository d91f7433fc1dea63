"""The values of good checkpoints, and the selection of values for one claim."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shape_of_learning.checkpoints.verdict import Kind
from shape_of_learning.claims.bounds import BoundedNumber, bound_by_jackknife
from shape_of_learning.claims.claim import Claim, ClaimVerdict, EvidenceModel
from shape_of_learning.claims.criteria import PAIR
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.suspects import are_copies, is_near_width
from shape_of_learning.metrics.tidy import AVERAGED_LAYERS, VALUE_COLUMNS, have_few_windows
from shape_of_learning.words import list_first

NO_ROWS = pd.DataFrame({"model": [], "revision": [], "shown": []}, dtype=str)
VALUES = list(VALUE_COLUMNS)  # with all windows, then the jackknife values
# A checkpoint with a larger share of suspect layers is left out. If a larger share of layers is undefined, the mean
# over the other layers is not the mean that the claim is about.
MAX_SHARE_LEFT_OUT = 0.25
# The loss of a trained model is lower than that of a guess by at least this many nats per token. Frequencies of tokens,
# which a model learns first, lower the loss by about three nats.
MIN_LOSS_GAIN = 0.5
UNTRAINED = "untrained weights (step 0, and steps at which weights have not moved yet) do not count"
UNTRAINED_CONTROL = "untrained"
# Reasons why values have no interval.
FEW_WINDOWS_DECIDE = "since a few windows decide them"
LACKING_GROUPS = "since they lack a value without one of the 16 groups of windows"
MANY_UNDEFINED = "since many layers are undefined, and a mean over the others is not the mean that the claim is about"


@dataclass(frozen=True)
class LayerValues:
    """The values of an estimator on a model by checkpoint and layer, for one selection of rows.

    Attributes
    ----------
    revisions : sequence of str
        Revisions of the checkpoints, by ascending step.
    steps : ndarray of float64
        Steps of the checkpoints, NaN for a checkpoint without a step.
    selection : str
        The selection of rows, as in the tables.
    layers : ndarray of int
        Layers in ascending order.
    values : ndarray of float64, shape (..., checkpoints, layers, 17)
        Values with all windows, then without each of the 16 groups of windows. The first value is NaN if it is
        undefined, the other values are NaN if the interval is withheld. Earlier axes are draws of a simulation.
    near_duplicates, same_token : ndarray of float64, shape (checkpoints, layers)
        Share of vectors with a near-duplicate, and share of vectors whose nearest neighbour is the same token; NaN for
        measures that do not use neighbours.
    n : ndarray of float64, shape (checkpoints,)
        Number of vectors of a batch.
    undefined_layers : int
        Number of layers that are left out because they are undefined at some checkpoint.
    is_before_norm : bool
        Whether the last layer is known to be the state before the final norm.
    few_windows : ndarray of bool, shape (checkpoints, layers), optional
        Whether too few windows decide a value, so that its interval is withheld.
    """

    revisions: Sequence[str]
    steps: np.ndarray
    selection: str
    layers: np.ndarray
    values: np.ndarray
    near_duplicates: np.ndarray
    n: np.ndarray
    same_token: np.ndarray | None = None
    undefined_layers: int = 0
    is_before_norm: bool = False
    few_windows: np.ndarray | None = None

    @property
    def means(self) -> np.ndarray:
        """Means over layers, shape (..., checkpoints, 17)."""
        return self.values.mean(axis=-2)

    @property
    def last(self) -> np.ndarray:
        """Values at the last checkpoint, shape (..., layers, 17)."""
        return self.values[..., -1, :, :]

    def keep_checkpoints(self, places: Sequence[int] | np.ndarray) -> "LayerValues":
        """Return the values of the checkpoints at some places, in this order; a place may occur more than once."""

        def select(shares: np.ndarray | None) -> np.ndarray | None:
            return None if shares is None else shares[places]

        return replace(
            self,
            revisions=[self.revisions[place] for place in places],
            steps=self.steps[places],
            values=self.values[..., places, :, :],
            near_duplicates=self.near_duplicates[places],
            same_token=select(self.same_token),
            n=self.n[places],
            few_windows=select(self.few_windows),
        )

    def keep_layers(self, is_kept: np.ndarray) -> "LayerValues":
        """Return the values of the layers for which `is_kept`, (layers,) of bool, is true; all must be defined."""

        def select(shares: np.ndarray | None) -> np.ndarray | None:
            return None if shares is None else shares[:, is_kept]

        return replace(
            self,
            layers=self.layers[is_kept],
            values=self.values[..., is_kept, :],
            near_duplicates=self.near_duplicates[:, is_kept],
            same_token=select(self.same_token),
            few_windows=select(self.few_windows),
            undefined_layers=0,
        )


@dataclass(frozen=True)
class Evidence:
    """All values and tables that claims use, for one selection of rows and one text.

    Attributes
    ----------
    models : mapping of str to EvidenceModel
        The models of the run.
    curves : mapping of (str, str) to LayerValues
        Values of good checkpoints, by model and estimator.
    tables : mapping of str to DataFrame
        Other tables, by their names under `reads` in paper.yaml, each with ``model`` and ``revision``.
    near_duplicate_limits : mapping of str to float or None
        Estimator of the intrinsic dimension -> the largest share of near-duplicates with which its values are
        trusted; None if copies do not matter.
    controls : mapping of (str, str, str) to LayerValues
        Values of null models, by model, estimator and control, such as ``untrained``.
    """

    models: Mapping[str, EvidenceModel]
    curves: Mapping[tuple[str, ...], LayerValues] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    near_duplicate_limits: Mapping[str, float | None] = field(default_factory=dict)
    controls: Mapping[tuple[str, ...], LayerValues] = field(default_factory=dict)


def read_evidence(
    models: Iterable[EvidenceModel],
    near_duplicate_limits: Mapping[str, float | None],
    jackknife: Iterable[Path],
    tables: Sequence[Path],
    controls: Iterable[Path] = (),
) -> Evidence:
    """Read the tables with the evidence on the claims of a paper.

    Parameters
    ----------
    models : iterable of EvidenceModel
        All models of the run.
    near_duplicate_limits : mapping of str to float or None
        As in :class:`Evidence`.
    jackknife : iterable of Path
        ``tables/jackknife/{model}.csv``.
    tables : sequence of Path
        Further tables, ``tables/{kind}/{model}.csv``. Tables of the kind ``verdicts`` say which checkpoints are good:
        of a model with a table of verdicts, only good checkpoints count, in all tables.
    controls : iterable of Path
        ``tables/controls/{model}.csv``.
    """
    paths_by_kind = defaultdict(list)
    for path in tables:
        paths_by_kind[path.parent.name.removeprefix("last_")].append(path)
    verdicts = read_tables(paths_by_kind["verdicts"])
    good_tables = {
        kind: select_good_rows(read_tables(paths), verdicts)
        for kind, paths in paths_by_kind.items()
    }
    values = select_good_rows(read_tables(jackknife, ["layer"]), verdicts)
    models_by_name = {model.name: model for model in models}
    curves = group_curves(["model", "estimator"], values)
    null_rows = select_good_rows(read_tables(controls, ["layer"]), verdicts)
    control_curves = {
        **group_curves(
            ["model", "estimator", "control"], _select_untrained(values, models_by_name)
        ),
        **group_curves(["model", "estimator", "control"], null_rows),
    }
    return Evidence(models_by_name, curves, good_tables, near_duplicate_limits, control_curves)


def _select_untrained(values: pd.DataFrame, models: Mapping[str, EvidenceModel]) -> pd.DataFrame:
    """Return the rows of step 0 of pretrained models that have later steps, as rows of the control `untrained`."""
    if values.empty:
        return values
    pretrained_models = [name for name, model in models.items() if model.is_from_scratch]
    trained_models = values.loc[values["step"] > 0, "model"]
    is_start = (
        (values["step"] == 0)
        & values["model"].isin(pretrained_models)
        & values["model"].isin(trained_models)
    )
    return values[is_start].assign(control=UNTRAINED_CONTROL)


def read_tables(paths: Iterable[Path], words: Sequence[str] = ()) -> pd.DataFrame:
    """Read tables of one kind into one table; `words` names columns of text that looks like numbers."""
    types: Any = dict.fromkeys(("model", "revision", *words), str)
    tables = [pd.read_csv(p, dtype=types, keep_default_na=False, na_values=[""]) for p in paths]
    # Empty columns have no type, and would change the types of the other tables.
    filled_tables = [table for table in tables if len(table)]
    return pd.concat(filled_tables, ignore_index=True) if filled_tables else NO_ROWS


def select_good_rows(rows: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of models without verdicts, and the rows of checkpoints whose verdict is good."""
    judged_models = set(verdicts["model"])
    good_rows = verdicts[verdicts["shown"] == "yes"]
    good_checkpoints = set(zip(good_rows["model"], good_rows["revision"], strict=True))
    checkpoints = zip(rows["model"], rows["revision"], strict=True)
    return rows.loc[[c[0] not in judged_models or c in good_checkpoints for c in checkpoints]]


def group_curves(keys: Sequence[str], rows: pd.DataFrame) -> dict[tuple[str, ...], LayerValues]:
    """Group rows with jackknife values by some columns, without averages over layers."""
    if rows.empty:
        return {}
    rows = rows[rows["layer"].str.isdigit()].astype({"layer": int})
    return {key: _make_curve(group) for key, group in rows.groupby([*keys], sort=False)}


def _make_curve(rows: pd.DataFrame) -> LayerValues:
    first = rows.drop_duplicates("revision").fillna({"step": 0}).sort_values("step", kind="stable")
    place = {revision: number for number, revision in enumerate(first["revision"])}
    rows = rows.assign(place=rows["revision"].map(place)).sort_values(["place", "layer"])
    layers = np.unique(rows["layer"])
    shape = (len(place), len(layers))
    few_windows = have_few_windows(rows["effective_windows"], rows["windows"])
    return LayerValues(
        revisions=list(place),
        steps=rows["step"].to_numpy(np.float64)[:: len(layers)],
        selection=rows["selection"].iloc[0],
        layers=layers,
        values=rows[VALUES].to_numpy(np.float64).reshape(*shape, len(VALUES)),
        near_duplicates=rows["near_duplicates"].to_numpy(np.float64).reshape(shape),
        same_token=rows["same_token"].to_numpy(np.float64).reshape(shape),
        is_before_norm="before_final_norm" in rows["selection"].iloc[-1],
        n=rows["n"].to_numpy(np.float64).reshape(shape).mean(axis=1),
        few_windows=few_windows.to_numpy(bool).reshape(shape),
    )


class NotMeasured(Exception):
    """The run lacks data that a claim needs; the message names the data."""

    verdict = ClaimVerdict.NOT_MEASURED


class OutsideTheClaim(NotMeasured):
    """The claim is not about the models or trainings of the run; the message gives the reason."""

    verdict = ClaimVerdict.OUTSIDE


class ClaimData:
    """The evidence that a statistic of one claim may use.

    Parameters
    ----------
    claim : Claim
    evidence : Evidence
    substitutes : mapping of str to str
        Estimator of the claim -> the estimator that is read in its place.
    control : str
        The control whose values replace the values of the models; empty for the models' own values.
    counts_suspects : bool
        Whether suspect values count, although they decide nothing alone.

    Attributes
    ----------
    models : dict of str to EvidenceModel
        The claim's models that are in the run, in the order of the claim, or else of the run.
    checkpoints : dict of (str, str)
        Model and revision of all checkpoints that were read.
    curves_read : dict of (str, str) to LayerValues
        The values that were read, by model and estimator.
    outside : dict of str to str
        Each model that is outside the claim -> the reason, such as the measured part of its training.
    suspects : dict of (str, str) to str
        Model and estimator with suspect values -> the number of suspect values.
    withheld : dict of (str, str) to tuple of str
        Model and estimator with values without an interval -> the number of these values, and the reason.
    """

    def __init__(
        self,
        claim: Claim,
        evidence: Evidence,
        substitutes: Mapping[str, str] | None = None,
        control: str = "",
        *,
        counts_suspects: bool = False,
    ) -> None:
        self.claim, self.evidence = claim, evidence
        self.counts_suspects = counts_suspects or claim.on_estimators
        self.substitutes, self.control = substitutes or {}, control
        self.models = {name: evidence.models[name] for name in claim.list_models(evidence.models)}
        self.checkpoints: dict[tuple[str, str], None] = {}
        self.curves_read: dict[tuple[str, str], LayerValues] = {}
        self.outside: dict[str, str] = {}
        self.suspects: dict[tuple[str, str], str] = {}
        self.withheld: dict[tuple[str, str], tuple[str, str]] = {}

    def select_curves(self, *estimators: str) -> dict[str, list[LayerValues]]:
        """Return the values of some estimators, for each model that has values of all of them.

        The values are those of the checkpoints and layers that the claim is about. Layers that are undefined or suspect
        at one of these checkpoints, and checkpoints with many suspect layers, are left out. A layer whose interval is
        withheld counts: a mean over it has no interval either, and decides nothing.

        Raises
        ------
        NotMeasured
            If fewer models have values than the claim needs.
        OutsideTheClaim
            If too few models have values only because the claim is not about some models: they are hardly trained, have
            one checkpoint, or were measured for too little of their training.
        """
        curves = {name: self.find_curves(name, *estimators) for name in self.models}
        measured_curves = {name: values for name, values in curves.items() if values}
        names = [self.substitutes.get(estimator, estimator) for estimator in estimators]
        is_last = self.claim.checkpoints == "last"
        place = "a good checkpoint" if is_last else "two or more good steps of the training"
        self.require(measured_curves, f"{list_names(names)} at {place}")
        return measured_curves

    def select_rows(self, table: str) -> dict[str, pd.DataFrame]:
        """Return the rows of another table by model; errors are those of :meth:`select_curves`."""
        tables = {name: self.find_rows(name, table) for name in self.models}
        filled_tables = {name: rows for name, rows in tables.items() if len(rows)}
        self.require(filled_tables, f"tables/{table}")
        return filled_tables

    def find_curves(self, model: str, *estimators: str) -> list[LayerValues]:
        """Return a model's values, even if the claim does not name it; empty if an estimator is missing."""
        names = [self.substitutes.get(estimator, estimator) for estimator in estimators]
        candidates = [self._select_curve(model, name) for name in names]
        curves = [curve for curve in candidates if curve is not None]
        if len(curves) < len(names):
            return []
        for name, curve in zip(names, curves, strict=True):
            self.checkpoints |= {(model, revision): None for revision in curve.revisions}
            self.curves_read[model, name] = curve
        return curves

    def keep_layers(self, model: str, estimator: str, is_kept: np.ndarray) -> LayerValues:
        """Keep only the layers of a curve that a statistic uses, so that the page shows no others."""
        key = model, self.substitutes.get(estimator, estimator)
        self.curves_read[key] = self.curves_read[key].keep_layers(is_kept)
        return self.curves_read[key]

    def find_rows(self, model: str, table: str) -> pd.DataFrame:
        """Return a model's rows of another table, even if the claim does not name it."""
        rows = self.evidence.tables.get(table, NO_ROWS)
        rows = rows[rows["model"] == model]
        self.checkpoints |= {(model, revision): None for revision in rows["revision"]}
        return rows

    def require_training(self) -> None:
        """Raise InputError unless the claim is about all steps of a training."""
        if self.claim.checkpoints != "training":
            raise InputError(
                f"claim `{self.claim.name}`: `{self.claim.statistic}` reads all steps of a training; add "
                "`checkpoints: training`"
            )

    def require(self, models: Collection[str], quantity: str) -> None:
        """Raise NotMeasured unless as many models as the claim needs have `quantity`, a phrase for the message."""
        claim_models = self.claim.models
        minimum = self.claim.needed_models
        count, run_count, count_with_outside = (
            self.claim.count_models(names, self.models)
            for names in (models, self.models, {*models, *self.outside})
        )
        if count >= minimum:
            return
        if self.outside and count_with_outside >= minimum:
            raise OutsideTheClaim(f"{group_models(self.outside)}; {describe_scope(self.claim)}")
        is_group = isinstance(claim_models, str)
        if is_group and run_count < minimum and self.models:
            kind = "models" if claim_models == "all" else str(claim_models).replace("_", "-")
            raise NotMeasured(
                f"it needs {minimum} {kind} (seeds of a training count as one), and the run has {run_count}"
            )
        lacking = [
            name for name in (self.models if is_group else claim_models) if name not in models
        ]
        if lacking and not self.models.keys() & lacking:
            verb = "is" if len(lacking) == 1 else "are"
            raise NotMeasured(f"{list_names(lacking)} {verb} not in the run")
        whose = (
            str(claim_models).replace("_", "-") if is_group and claim_models != "all" else "models"
        )
        reason = f"it needs {quantity} for at least {minimum} of the {whose}, and {count} of the judged models have it"
        raise NotMeasured(
            reason + (f"; it is missing for {list_names(lacking)}" if lacking else "")
        )

    def require_models(self, models: Collection[str], names: Sequence[str], quantity: str) -> None:
        """Raise NotMeasured unless all models in `names` have `quantity`, however many models the claim needs."""
        if lacking := [name for name in dict.fromkeys(names) if name not in models]:
            raise NotMeasured(
                f"it needs {quantity} for {list_names(lacking)}, and the run lacks it"
            )

    def _select_curve(self, model: str, estimator: str) -> LayerValues | None:
        """Select the checkpoints and layers that the claim is about; None if none is left."""
        curve = self._find_curve(model, estimator)
        if curve is None:
            return None
        if reason := self._describe_exclusion(model):
            self.outside[model] = reason
            return None
        is_in_claim = curve.layers >= AVERAGED_LAYERS[self.claim.average_over]
        is_suspect = self._find_suspects(model, estimator, curve)
        places = self._select_checkpoints(model, estimator, curve, is_suspect[:, is_in_claim])
        if not len(places):
            return None
        curve = curve.keep_checkpoints(places)
        return self._select_layers(model, estimator, curve, is_in_claim, is_suspect[places])

    def _find_curve(self, model: str, estimator: str) -> LayerValues | None:
        """Find the values of a model, or of its null model at the same steps; None if there are none."""
        model_curve = self.evidence.curves.get((model, estimator))
        if not self.control:
            return model_curve
        curve = self.evidence.controls.get((model, estimator, self.control))
        is_on_training = self.claim.checkpoints == "training"
        if curve and model_curve and is_on_training and len(curve.steps) == 1:
            return _repeat_control(curve, model_curve)
        return curve

    def _describe_exclusion(self, model: str) -> str:
        """Say why the claim is not about a model: it is hardly trained, or has one checkpoint; empty otherwise."""
        if self.claim.checkpoints != "training":
            return self._describe_high_loss(model)
        return "one checkpoint" if not self.control and self._has_one_checkpoint(model) else ""

    def _select_checkpoints(
        self, model: str, estimator: str, curve: LayerValues, is_suspect: np.ndarray
    ) -> np.ndarray:
        """Select the checkpoints that the claim is about, without those at which many layers are suspect.

        Parameters
        ----------
        model, estimator : str
        curve : LayerValues
        is_suspect : ndarray of bool, shape (checkpoints, layers)
            Of the layers that the claim is about.

        Returns
        -------
        ndarray of int64, shape (n,)
            The places of the checkpoints on the axis of checkpoints; n is 0 if too few are left.
        """
        is_on_training = self.claim.checkpoints == "training"
        places = np.array([len(curve.steps) - 1])
        if is_on_training:
            places = np.flatnonzero(self._find_training_steps(model, curve))
        has_many_suspects = is_suspect.mean(axis=-1) > MAX_SHARE_LEFT_OUT
        has_many_suspects &= not self.counts_suspects
        if number := int(is_suspect[places].sum()):
            left_out = ", left out" if has_many_suspects[places].any() else ""
            self.suspects[model, estimator] = f"{number:,} of {is_suspect[places].size:,}{left_out}"
        places = places[~has_many_suspects[places]]
        if not is_on_training or not len(places):
            return places
        unseen_part = self._describe_unseen(model, curve.steps[places])
        if unseen_part and not self.control:
            self.outside[model] = unseen_part
            return places[:0]
        return places if len(places) > 1 else places[:0]

    def _select_layers(
        self,
        model: str,
        estimator: str,
        curve: LayerValues,
        is_in_claim: np.ndarray,
        is_suspect: np.ndarray,
    ) -> LayerValues | None:
        """Select the layers that the claim is about, and that are defined and not suspect at all checkpoints.

        Parameters
        ----------
        model, estimator : str
        curve : LayerValues
            The values at the selected checkpoints.
        is_in_claim : ndarray of bool, shape (layers,)
        is_suspect : ndarray of bool, shape (checkpoints, layers)

        Returns
        -------
        LayerValues or None
            None if many layers are suspect, or none is defined.
        """
        is_doubtful = is_in_claim & is_suspect.any(axis=0) & (not self.counts_suspects)
        if is_doubtful.sum() > MAX_SHARE_LEFT_OUT * is_in_claim.sum():
            return None
        is_in_claim = is_in_claim & ~is_doubtful
        estimates = curve.values[..., 0]
        is_undefined = np.isnan(estimates).any(axis=tuple(range(estimates.ndim - 1)))
        is_kept = is_in_claim & ~is_undefined
        if not is_kept.any():
            return None
        layers = int(is_in_claim.sum())
        undefined_layers = layers - int(is_kept.sum())
        curve = replace(curve.keep_layers(is_kept), undefined_layers=undefined_layers)
        values, few_windows = curve.values, curve.few_windows
        if undefined_layers > MAX_SHARE_LEFT_OUT * layers:
            is_jackknife_value = np.arange(values.shape[-1]) > 0
            self.withheld[model, estimator] = (
                f"{undefined_layers} of {layers} layers",
                MANY_UNDEFINED,
            )
            return replace(curve, values=np.where(is_jackknife_value, np.nan, values))
        lacks_interval = np.isnan(values).any(axis=(*range(values.ndim - 3), -1))
        if lacks_interval.any():
            is_few = few_windows is not None and few_windows[lacks_interval].all()
            self.withheld[model, estimator] = (
                f"{lacks_interval.sum():,} of {lacks_interval.size:,} values",
                FEW_WINDOWS_DECIDE if is_few else LACKING_GROUPS,
            )
        return curve

    def _find_suspects(self, model: str, estimator: str, curve: LayerValues) -> np.ndarray:
        """Return which values are suspect by copies or by the width, as in figures, (checkpoints, layers) of bool."""
        if estimator not in self.evidence.near_duplicate_limits:
            return np.zeros(curve.near_duplicates.shape, bool)
        limit = self.evidence.near_duplicate_limits[estimator]
        same_token = np.nan if curve.same_token is None else curve.same_token
        width = self.evidence.models[model].width if model in self.evidence.models else 0
        is_copy: np.ndarray = are_copies(limit, curve.near_duplicates, same_token)
        return is_copy | is_near_width(_average_draws(curve), width)

    def _find_training_steps(self, model: str, curve: LayerValues) -> np.ndarray:
        """Return which checkpoints belong to the training, (checkpoints,) of bool.

        Untrained weights do not belong to it (step 0, and steps whose weights have not moved yet), nor do checkpoints
        without a step, and steps before the claim's `from_step`.
        """
        verdicts = self.evidence.tables.get("verdicts", NO_ROWS)
        unmoved_revisions: Collection[str] = ()
        if "verdict" in verdicts:
            is_unmoved = (verdicts["model"] == model) & (verdicts["verdict"] == Kind.NOT_YET_MOVED)
            unmoved_revisions = set(verdicts.loc[is_unmoved, "revision"])
        has_moved = np.array([revision not in unmoved_revisions for revision in curve.revisions])
        first_step = self.claim.seen.get("from_step", 0)
        return has_moved & (curve.steps > 0) & (curve.steps >= first_step)  # false for NaN

    def _has_one_checkpoint(self, model: str) -> bool:
        """Return whether a model has one good checkpoint only."""
        steps = (len(c.steps) for (name, *_), c in self.evidence.curves.items() if name == model)
        return max(steps) == 1

    def _describe_high_loss(self, model: str) -> str:
        """Describe the loss of a model that is hardly better than a guess; empty for other models."""
        verdicts = self.evidence.tables.get("verdicts", NO_ROWS)
        model_verdicts = verdicts[verdicts["model"] == model]
        if model_verdicts.empty or not model_verdicts["vocabulary"].iloc[-1] > 1:
            return ""
        loss, guess = (
            model_verdicts["loss"].iloc[-1],
            math.log(model_verdicts["vocabulary"].iloc[-1]),
        )
        return f"loss {loss:.2f}; a guess has {guess:.2f}" if loss > guess - MIN_LOSS_GAIN else ""

    def _describe_unseen(self, model: str, steps: np.ndarray) -> str:
        """Describe the measured part of a training if the claim needs more; empty otherwise."""
        needed_part = self.claim.seen
        end = self.models[model].last_step if model in self.models else None
        end = end or (float(steps[-1]) if len(steps) else 0.0)
        begins_late = len(steps) and steps[0] > max(
            needed_part.get("from", 1) * end, needed_part.get("from_step", 0)
        )
        ends_early = len(steps) and steps[-1] < needed_part.get("to", 0) * end
        if not (begins_late or ends_early):
            return ""
        checkpoint = (
            f"first step that counts {steps[0]:,.0f}"
            if begins_late
            else f"last one {steps[-1]:,.0f}"
        )
        return f"{checkpoint} of {end:,.0f}"


def describe_scope(claim: Claim) -> str:
    """Describe the models, or the part of a training, that a claim is about."""
    if claim.checkpoints == "last":
        return "the claim is about trained models"
    needed_part, first_step = claim.seen, claim.seen.get("from_step")
    if not needed_part:
        return f"the claim is about trainings; {UNTRAINED}"
    begin = f"the first {100 * needed_part.get('from', 1):g} %" + (
        f" or at step {first_step:,}" if first_step else ""
    )
    end = f" and one after {100 * needed_part['to']:g} %" if "to" in needed_part else ""
    earlier = f"; steps before {first_step:,} do not count" if first_step else f"; {UNTRAINED}"
    return f"the claim needs a good checkpoint in {begin} of the training{end}{earlier}"


def _repeat_control(control: LayerValues, curve: LayerValues) -> LayerValues:
    """Repeat a control of one checkpoint, such as untrained weights, at all steps of a curve."""
    repeated_control = control.keep_checkpoints([0] * len(curve.steps))
    return replace(repeated_control, revisions=curve.revisions, steps=curve.steps)


def _average_draws(curve: LayerValues) -> np.ndarray:
    """Return the values with all windows, (checkpoints, layers), averaged over draws."""
    values = curve.values[..., 0]
    return values.reshape(-1, *values.shape[-2:]).mean(axis=0)


def select_common_layers(curves: Sequence[LayerValues]) -> list[np.ndarray]:
    """Return the values of each curve at the last checkpoint, (..., layers, 17), in the layers that all curves have.

    The list is empty if there is no such layer.
    """
    common = [layer for layer in curves[0].layers if all(layer in curve.layers for curve in curves)]
    if not common:
        return []
    return [curve.last[..., np.isin(curve.layers, common), :] for curve in curves]


def subtract_all_pairs(values: np.ndarray, subtrahends: np.ndarray) -> np.ndarray:
    """Subtract all of `subtrahends` (..., b, 17) from all of `values` (..., a, 17), to (..., a, b, 17)."""
    return values[..., :, None, :] - subtrahends[..., None, :, :]


def group_models(notes: Mapping[str, str]) -> str:
    """Name models with their notes; models with the same note share it."""
    models: dict[str, list[str]] = {}
    for name, note in notes.items():
        models.setdefault(note, []).append(name)
    return "; ".join(f"{list_names(names)} ({note})" for note, names in models.items())


def list_names(names: Sequence[str]) -> str:
    """List names as code; a long list is cut."""
    return list_first([f"`{name}`" for name in names])


def average_layers(curve: LayerValues) -> BoundedNumber:
    """Return the mean over layers at the last checkpoint, with its bounds."""
    return bound_by_jackknife(curve.means[..., -1, :])


def has_last_layer(data: ClaimData, model: str, curve: LayerValues) -> bool:
    """Return whether a curve has the model's last layer; if not, its last value belongs to an earlier layer."""
    return bool(curve.layers[-1] == data.models[model].layers)


def pair_models(data: ClaimData, numbers: Mapping[str, Any], *roles: str) -> dict[str, list[Any]]:
    """Pair the numbers of models of two roles, by the names of the pairs."""
    names_by_role = [[name for name in numbers if data.models[name].role == role] for role in roles]
    return {PAIR.join(pair): [numbers[name] for name in pair] for pair in product(*names_by_role)}
