"""The values of sound checkpoints, and which of them one claim is judged by."""

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
from shape_of_learning.metrics.suspects import are_copies, is_near_width
from shape_of_learning.metrics.tidy import AVERAGED_LAYERS, VALUE_COLUMNS, have_few_windows
from shape_of_learning.words import list_first

NO_ROWS = pd.DataFrame({"model": [], "revision": [], "shown": []}, dtype=str)
VALUES = list(VALUE_COLUMNS)  # with all windows, then the jackknife values
# A checkpoint with a larger share of suspect layers is not read. If more layers than this are undefined, the mean over
# the other layers is not the mean that the claim is about.
MAX_SUSPECT_SHARE = 0.25
# A trained model is better than a guess by at least so many nats per token. Frequencies of tokens, which a model learns
# first, give about three.
MIN_LOSS_GAIN = 0.5
UNTRAINED = "untrained weights (step 0, and steps at which weights have not moved yet) do not count"
UNTRAINED_CONTROL = "untrained"
# Why values have no interval.
FEW_WINDOWS_DECIDE = "since a few windows decide them"
LACKING_GROUPS = "since they lack a value without one of the 16 groups of windows"
MANY_UNDEFINED = "since many layers are undefined, and a mean over the others is not the mean that the claim is about"


@dataclass(frozen=True)
class LayerValues:
    """One estimator of one model by checkpoint and layer, under one selection of rows.

    Attributes
    ----------
    revisions : sequence of str
        Of the checkpoints, by ascending step.
    steps : ndarray of float64
        Steps of the checkpoints, NaN for a checkpoint without a step.
    selection : str
        As in the tables.
    layers : ndarray of int
        Ascending.
    values : ndarray of float64, shape (..., checkpoints, layers, 17)
        With all windows, then without each of the 16 groups. The first is NaN where a value is undefined, the others
        where its interval is withheld. Axes before these are draws of a simulation.
    near_duplicates, same_token : ndarray of float64, shape (checkpoints, layers)
        Share of vectors with a near-duplicate, and of those whose nearest neighbour is the same token; NaN for
        measures that are not of neighbours.
    n : ndarray of float64, shape (checkpoints,)
        Vectors of a batch.
    undefined : int
        Layers that are left out, since they are undefined somewhere.
    before_norm : bool
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
    undefined: int = 0
    before_norm: bool = False
    few_windows: np.ndarray | None = None

    @property
    def means(self) -> np.ndarray:
        """Means over layers, shape (..., checkpoints, 17)."""
        return self.values.mean(axis=-2)

    @property
    def last(self) -> np.ndarray:
        """Values at the last checkpoint, shape (..., layers, 17)."""
        return self.values[..., -1, :, :]

    def keep_layers(self, is_kept: np.ndarray) -> "LayerValues":
        """Return the values of some layers, for which `is_kept`, (layers,) of bool, is true; they are all defined."""

        def select(shares: np.ndarray | None) -> np.ndarray | None:
            return None if shares is None else shares[:, is_kept]

        return replace(
            self,
            layers=self.layers[is_kept],
            values=self.values[..., is_kept, :],
            near_duplicates=self.near_duplicates[:, is_kept],
            same_token=select(self.same_token),
            few_windows=select(self.few_windows),
            undefined=0,
        )


@dataclass(frozen=True)
class Evidence:
    """Everything that a claim may be judged by, for one selection of rows and one text.

    Attributes
    ----------
    models : mapping of str to EvidenceModel
        The models of the run.
    curves : mapping of (str, str) to LayerValues
        By model and estimator, without checkpoints that are not sound.
    tables : mapping of str to DataFrame
        Other tables, by the names that paper.yaml `reads`, each with ``model`` and ``revision``.
    near_duplicate_limits : mapping of str to float or None
        By intrinsic dimension, the share of near-duplicates up to which it can be trusted; None if copies do not
        matter.
    controls : mapping of (str, str, str) to LayerValues
        By model, estimator and control, such as ``untrained``.
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
    """Read the tables that the claims of a paper are judged by.

    Parameters
    ----------
    models : iterable of EvidenceModel
        All models of the run.
    near_duplicate_limits : mapping of str to float or None
        As in :class:`Evidence`.
    jackknife : iterable of Path
        ``tables/jackknife/{model}.csv``.
    tables : sequence of Path
        Further tables, ``tables/{kind}/{model}.csv``. Those of the kind ``verdicts`` say which checkpoints
        are sound: a model that has one is judged by these alone, in all tables.
    controls : iterable of Path
        ``tables/controls/{model}.csv``.
    """
    of_kind = defaultdict(list)
    for path in tables:
        of_kind[path.parent.name.removeprefix("last_")].append(path)
    verdicts = read_tables(of_kind["verdicts"])
    read = {
        kind: select_sound_rows(read_tables(paths), verdicts) for kind, paths in of_kind.items()
    }
    values = select_sound_rows(read_tables(jackknife, ["layer"]), verdicts)
    known = {model.name: model for model in models}
    curves = group_curves(["model", "estimator"], values)
    null = select_sound_rows(read_tables(controls, ["layer"]), verdicts)
    of_controls = {
        **group_curves(["model", "estimator", "control"], _select_untrained(values, known)),
        **group_curves(["model", "estimator", "control"], null),
    }
    return Evidence(known, curves, read, near_duplicate_limits, of_controls)


def _select_untrained(values: pd.DataFrame, models: Mapping[str, EvidenceModel]) -> pd.DataFrame:
    """Return the rows of step 0 of pretrained models that have later steps, as those of the control `untrained`."""
    if values.empty:
        return values
    pretrained = [name for name, model in models.items() if model.is_from_scratch]
    trained = values.loc[values["step"] > 0, "model"]
    is_start = (
        (values["step"] == 0) & values["model"].isin(pretrained) & values["model"].isin(trained)
    )
    return values[is_start].assign(control=UNTRAINED_CONTROL)


def read_tables(paths: Iterable[Path], words: Sequence[str] = ()) -> pd.DataFrame:
    """Read tables of one kind below each other; `words` are columns that only look like numbers."""
    types: Any = dict.fromkeys(("model", "revision", *words), str)
    tables = [pd.read_csv(p, dtype=types, keep_default_na=False, na_values=[""]) for p in paths]
    filled = [table for table in tables if len(table)]  # empty columns have no type
    return pd.concat(filled, ignore_index=True) if filled else NO_ROWS


def select_sound_rows(rows: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of models without verdicts, and of checkpoints that a verdict says to show."""
    with_verdict = set(verdicts["model"])
    sound_rows = verdicts[verdicts["shown"] == "yes"]
    sound = set(zip(sound_rows["model"], sound_rows["revision"], strict=True))
    checkpoints = zip(rows["model"], rows["revision"], strict=True)
    return rows.loc[[c[0] not in with_verdict or c in sound for c in checkpoints]]


def group_curves(keys: Sequence[str], rows: pd.DataFrame) -> dict[tuple[str, ...], LayerValues]:
    """Group rows with jackknife values by some columns; averages over layers are left out."""
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
        before_norm="before_final_norm" in rows["selection"].iloc[-1],
        n=rows["n"].to_numpy(np.float64).reshape(shape).mean(axis=1),
        few_windows=few_windows.to_numpy(bool).reshape(shape),
    )


class NotMeasured(Exception):
    """The run lacks something that a claim needs; the message says what."""

    verdict = ClaimVerdict.NOT_MEASURED


class OutsideTheClaim(NotMeasured):
    """The claim is not about the models or trainings of the run; the message says why."""

    verdict = ClaimVerdict.OUTSIDE


class ClaimData:
    """The evidence that a statistic of one claim may use.

    Parameters
    ----------
    claim : Claim
    evidence : Evidence
    substitutes : mapping of str to str
        Estimators that are read in the place of the claim's.
    control : str
        The control whose values stand for those of the models; none if empty.
    with_suspects : bool
        Whether suspect values count, although they decide nothing alone.

    Attributes
    ----------
    models : dict of str to EvidenceModel
        The claim's models that are in the run, in its order or the run's.
    checkpoints : dict of (str, str)
        Model and revision of all checkpoints that were read.
    curves_read : dict of (str, str) to LayerValues
        By model and estimator.
    outside : dict of str to str
        For each model with too few checkpoints for the claim: a description of the measured part of its training.
    suspects : dict of (str, str) to str
        For each model and estimator with suspect values: how many they are.
    withheld : dict of (str, str) to tuple of str
        For each model and estimator with values without an interval: how many they are, and why.
    """

    def __init__(
        self,
        claim: Claim,
        evidence: Evidence,
        substitutes: Mapping[str, str] | None = None,
        control: str = "",
        *,
        with_suspects: bool = False,
    ) -> None:
        self.claim, self.evidence = claim, evidence
        self.with_suspects = with_suspects or claim.on_estimators
        self.substitutes, self.control = substitutes or {}, control
        self.models = {name: evidence.models[name] for name in claim.list_models(evidence.models)}
        self.checkpoints: dict[tuple[str, str], None] = {}
        self.curves_read: dict[tuple[str, str], LayerValues] = {}
        self.outside: dict[str, str] = {}
        self.suspects: dict[tuple[str, str], str] = {}
        self.withheld: dict[tuple[str, str], tuple[str, str]] = {}

    def select_curves(self, *estimators: str) -> dict[str, list[LayerValues]]:
        """Return the values of some estimators, of each model for which all are measured.

        They have the checkpoints and layers that the claim is about. Layers that are undefined at one of these
        checkpoints, and checkpoints with many suspect layers are left out. A layer whose interval is withheld counts:
        a mean with it has no interval either, and decides nothing.

        Raises
        ------
        NotMeasured
            If these are fewer models than the claim needs.
        OutsideTheClaim
            If there are too few only because too little of the training of some models was measured.
        """
        curves = {name: self.find_curves(name, *estimators) for name in self.models}
        found = {name: of_model for name, of_model in curves.items() if of_model}
        named = [self.substitutes.get(estimator, estimator) for estimator in estimators]
        is_last = self.claim.checkpoints == "last"
        at = "a sound checkpoint" if is_last else "two or more sound steps of the training"
        self.require(found, f"{list_names(named)} at {at}")
        return found

    def select_rows(self, table: str) -> dict[str, pd.DataFrame]:
        """Return the rows of another table, by model; raises as :meth:`select_curves`."""
        tables = {name: self.find_rows(name, table) for name in self.models}
        found = {name: rows for name, rows in tables.items() if len(rows)}
        self.require(found, f"tables/{table}")
        return found

    def find_curves(self, model: str, *estimators: str) -> list[LayerValues]:
        """Return a model's values, even if the claim does not name it; empty if an estimator is missing."""
        names = [self.substitutes.get(estimator, estimator) for estimator in estimators]
        selected = [self._select_curve(model, name) for name in names]
        curves = [curve for curve in selected if curve is not None]
        if len(curves) < len(names):
            return []
        for name, curve in zip(names, curves, strict=True):
            self.checkpoints |= {(model, revision): None for revision in curve.revisions}
            self.curves_read[model, name] = curve
        return curves

    def keep_layers(self, model: str, estimator: str, is_kept: np.ndarray) -> LayerValues:
        """Keep the layers of a curve that a statistic uses, so that the page shows these alone."""
        key = model, self.substitutes.get(estimator, estimator)
        self.curves_read[key] = self.curves_read[key].keep_layers(is_kept)
        return self.curves_read[key]

    def find_rows(self, model: str, table: str) -> pd.DataFrame:
        """Return a model's rows of another table, even if the claim does not name it."""
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
        reason = f"it needs {what} for at least {needed} of the {whose}, and {number} of those that are judged have it"
        raise NotMeasured(reason + (f", not for {list_names(lacking)}" if lacking else ""))

    def require_models(self, found: Collection[str], names: Sequence[str], what: str) -> None:
        """Raise NotMeasured unless these models have `what`, however many the claim needs."""
        if lacking := [name for name in dict.fromkeys(names) if name not in found]:
            raise NotMeasured(f"it needs {what} for {list_names(lacking)}, and the run lacks it")

    def _select_curve(self, model: str, estimator: str) -> LayerValues | None:
        """Select the checkpoints and layers that the claim is about; None if nothing is left."""
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
        is_left_out = suspect & (not self.with_suspects)
        many = is_left_out[:, wanted].mean(axis=-1) > MAX_SUSPECT_SHARE
        places = np.array([len(curve.steps) - 1])
        if self.claim.checkpoints == "training":
            places = np.flatnonzero(self._find_training_steps(model, curve))
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
        undefined = np.isnan(values[..., 0]).any(axis=tuple(range(values.ndim - 2)))
        doubtful = wanted & is_left_out[places].any(axis=0)
        if doubtful.sum() > MAX_SUSPECT_SHARE * wanted.sum():
            return None
        wanted &= ~doubtful  # few layers, at all steps
        kept = wanted & ~undefined
        if not kept.any():
            return None
        values = values[..., kept, :]
        few_windows = None if curve.few_windows is None else curve.few_windows[places][:, kept]
        if (wanted & ~kept).sum() > MAX_SUSPECT_SHARE * wanted.sum():
            values = np.where(np.arange(values.shape[-1]) > 0, np.nan, values)
            lacking = f"{wanted.sum() - kept.sum()} of {wanted.sum()} layers"
            self.withheld[model, estimator] = lacking, MANY_UNDEFINED
        elif (without := np.isnan(values).any(axis=(*range(values.ndim - 3), -1))).any():
            is_few = few_windows is not None and few_windows[without].all()
            reason = FEW_WINDOWS_DECIDE if is_few else LACKING_GROUPS
            self.withheld[model, estimator] = (
                f"{without.sum():,} of {without.size:,} values",
                reason,
            )
        return replace(
            curve,
            revisions=[curve.revisions[place] for place in places],
            steps=curve.steps[places],
            layers=curve.layers[kept],
            values=values,
            near_duplicates=curve.near_duplicates[places][:, kept],
            same_token=None if curve.same_token is None else curve.same_token[places][:, kept],
            n=curve.n[places],
            undefined=int(wanted.sum() - kept.sum()),
            few_windows=few_windows,
        )

    def _find_suspects(self, model: str, estimator: str, curve: LayerValues) -> np.ndarray:
        """Mark values that are copies or near the width, as tables and figures do, (checkpoints, layers) of bool."""
        if estimator not in self.evidence.near_duplicate_limits:
            return np.zeros(curve.near_duplicates.shape, bool)
        limit = self.evidence.near_duplicate_limits[estimator]
        same_token = np.nan if curve.same_token is None else curve.same_token
        width = self.evidence.models[model].width if model in self.evidence.models else 0
        suspect: np.ndarray = are_copies(limit, curve.near_duplicates, same_token)
        return suspect | is_near_width(_average_draws(curve), width)

    def _find_training_steps(self, model: str, curve: LayerValues) -> np.ndarray:
        """Return which checkpoints count for how a training goes, (checkpoints,) of bool.

        Untrained weights are no part of a training: neither step 0 nor steps whose weights have not moved since.
        """
        verdicts = self.evidence.tables.get("verdicts", NO_ROWS)
        unmoved: Collection[str] = ()
        if "verdict" in verdicts:
            is_unmoved = (verdicts["model"] == model) & (verdicts["verdict"] == Kind.NOT_YET_MOVED)
            unmoved = set(verdicts.loc[is_unmoved, "revision"])
        has_moved = np.array([revision not in unmoved for revision in curve.revisions])
        first = self.claim.seen.get("from_step", 0)
        return has_moved & (curve.steps > 0) & (curve.steps >= first)  # not of NaN

    def _has_no_training(self, model: str) -> bool:
        """Return whether a model is measured at one checkpoint only."""
        steps = (len(c.steps) for (name, *_), c in self.evidence.curves.items() if name == model)
        return max(steps) == 1

    def _find_guesses(self, model: str) -> str:
        """Say why a model counts as untrained: its last checkpoint is hardly better than a guess."""
        verdicts = self.evidence.tables.get("verdicts", NO_ROWS)
        of_model = verdicts[verdicts["model"] == model]
        if of_model.empty or not of_model["vocabulary"].iloc[-1] > 1:
            return ""
        loss, guess = of_model["loss"].iloc[-1], math.log(of_model["vocabulary"].iloc[-1])
        return f"loss {loss:.2f}; a guess has {guess:.2f}" if loss > guess - MIN_LOSS_GAIN else ""

    def _describe_unseen(self, model: str, steps: np.ndarray) -> str:
        """Describe the measured part of a training if the claim needs more; empty otherwise."""
        seen, end = self.claim.seen, self.models[model].last_step if model in self.models else None
        end = end or (float(steps[-1]) if len(steps) else 0.0)
        late = len(steps) and steps[0] > max(seen.get("from", 1) * end, seen.get("from_step", 0))
        short = len(steps) and steps[-1] < seen.get("to", 0) * end
        if not (late or short):
            return ""
        which = f"first step that counts {steps[0]:,.0f}" if late else f"last one {steps[-1]:,.0f}"
        return f"{which} of {end:,.0f}"


def describe_scope(claim: Claim) -> str:
    """Say which models, and which part of a training, a claim is about."""
    if claim.checkpoints == "last":
        return "the claim is about trained models"
    seen, first = claim.seen, claim.seen.get("from_step")
    if not seen:
        return f"the claim is about trainings; {UNTRAINED}"
    begin = f"the first {100 * seen.get('from', 1):g} %" + (
        f" or at step {first:,}" if first else ""
    )
    end = f" and one after {100 * seen['to']:g} %" if "to" in seen else ""
    earlier = f"; steps before {first:,} do not count" if first else f"; {UNTRAINED}"
    return f"the claim needs a sound checkpoint in {begin} of the training{end}{earlier}"


def _repeat_control(control: LayerValues, curve: LayerValues) -> LayerValues:
    """Repeat a control of one checkpoint, such as untrained weights, at all steps of a curve."""
    at = [0] * len(curve.steps)
    return replace(
        control,
        revisions=curve.revisions,
        steps=curve.steps,
        values=control.values[..., at, :, :],
        near_duplicates=control.near_duplicates[at],
        same_token=None if control.same_token is None else control.same_token[at],
        n=control.n[at],
        few_windows=None if control.few_windows is None else control.few_windows[at],
    )


def _average_draws(curve: LayerValues) -> np.ndarray:
    """Return values with all windows, (checkpoints, layers), averaged over draws."""
    values = curve.values[..., 0]
    return values.reshape(-1, *values.shape[-2:]).mean(axis=0)


def select_common_layers(curves: Sequence[LayerValues]) -> list[np.ndarray]:
    """Return values of the layers that all curves have, at the last checkpoint, (..., layers, 17)."""
    common = [layer for layer in curves[0].layers if all(layer in curve.layers for curve in curves)]
    if not common:
        raise NotMeasured("of one model there is no layer where all estimators are defined")
    return [curve.last[..., np.isin(curve.layers, common), :] for curve in curves]


def subtract_each(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Subtract all of `others` (..., b, 17) from all of `values` (..., a, 17), to (..., a, b, 17)."""
    return values[..., :, None, :] - others[..., None, :, :]


def group_models(notes: Mapping[str, str]) -> str:
    """Name models with a note on each; models with the same note stand together."""
    models: dict[str, list[str]] = {}
    for name, note in notes.items():
        models.setdefault(note, []).append(name)
    return "; ".join(f"{list_names(names)} ({note})" for note, names in models.items())


def list_names(names: Sequence[str]) -> str:
    """Name things, of many the first few."""
    return list_first([f"`{name}`" for name in names])


def average_layers(curve: LayerValues) -> BoundedNumber:
    """Return the mean over layers at the last checkpoint."""
    return bound_by_jackknife(curve.means[..., -1, :])


def has_last_layer(data: ClaimData, model: str, curve: LayerValues) -> bool:
    """Return whether the last layer is defined; if it is not, another one would stand in its place."""
    return bool(curve.layers[-1] == data.models[model].layers)


def pair_models(data: ClaimData, measured: Mapping[str, Any], *roles: str) -> dict[str, list[Any]]:
    """Pair the numbers of models of two roles, by the names of the pairs."""
    named = [[name for name in measured if data.models[name].role == role] for role in roles]
    return {PAIR.join(pair): [measured[name] for name in pair] for pair in product(*named)}
