"""What claims are judged by: values of sound checkpoints, and the record of what a statistic reads of them."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shape_of_learning.claims.claim import Claim, EvidenceModel
from shape_of_learning.metrics.tidy import AVERAGED_LAYERS, GROUPS, TIDY_COLUMNS

NO_ROWS = pd.DataFrame({"model": [], "revision": [], "shown": []}, dtype=str)
VALUES = list(TIDY_COLUMNS[-1 - GROUPS :])  # with all windows, and without each group of them
MOST_NAMED = 4


@dataclass(frozen=True)
class Curve:
    """One estimator of one model by checkpoint and layer, under one selection of rows.

    Attributes
    ----------
    revisions : sequence of str
        Of the checkpoints, by ascending step.
    steps : ndarray of float64
        Theirs, NaN where there is none.
    selection : str
        As in the tables.
    layers : ndarray of int
        Ascending.
    values : ndarray of float64, shape (..., checkpoints, layers, 17)
        With all windows, then without each of the 16 groups. NaN where undefined. Axes before these are draws
        of a simulation.
    near_duplicates : ndarray of float64, shape (checkpoints, layers)
        Share of vectors with a near-duplicate; NaN for measures that are not of neighbours.
    n : ndarray of float64, shape (checkpoints,)
        Vectors of a batch.
    undefined : int
        Layers that are left out, since they are undefined somewhere.
    """

    revisions: Sequence[str]
    steps: np.ndarray
    selection: str
    layers: np.ndarray
    values: np.ndarray
    near_duplicates: np.ndarray
    n: np.ndarray
    undefined: int = 0

    @property
    def means(self) -> np.ndarray:
        """Means over layers, shape (..., checkpoints, 17)."""
        return self.values.mean(axis=-2)

    @property
    def last(self) -> np.ndarray:
        """Values at the last checkpoint, shape (..., layers, 17)."""
        return self.values[..., -1, :, :]


@dataclass(frozen=True)
class Evidence:
    """All that a claim may be judged by, under one selection of rows, of one text.

    Attributes
    ----------
    models : mapping of str to EvidenceModel
        Those of the run.
    curves : mapping of (str, str) to Curve
        Of each model and estimator, without checkpoints that are not shown.
    tables : mapping of str to DataFrame
        Other tables, by the names that paper.yaml `reads`, each with ``model`` and ``revision``.
    suspect_above : mapping of str to float
        Of each estimator that has conditions, the share of near-duplicates up to which they hold.
    """

    models: Mapping[str, EvidenceModel]
    curves: Mapping[tuple[str, ...], Curve] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    suspect_above: Mapping[str, float] = field(default_factory=dict)


def read_evidence(
    models: Sequence[Mapping[str, Any]],
    suspect_above: Mapping[str, float],
    left_out: Iterable[Path],
    tables: Sequence[Path],
) -> Evidence:
    """Read what the claims of a paper are judged by.

    Parameters
    ----------
    models : sequence of mapping
        Of each model of the run what :class:`EvidenceModel` holds.
    suspect_above : mapping of str to float
        As in :class:`Evidence`.
    left_out : iterable of Path
        ``tables/left_out/{model}.csv``.
    tables : sequence of Path
        Further tables, ``tables/{kind}/{model}.csv``. Those of the kind ``verdicts`` say which checkpoints
        are sound: a model that has one is judged by these alone, in all tables.
    """
    of_kind = defaultdict(list)
    for path in tables:
        of_kind[path.parent.name.removeprefix("last_")].append(path)
    verdicts = read_tables(of_kind["verdicts"])
    read = {kind: sound(read_tables(paths), verdicts) for kind, paths in of_kind.items()}
    values = sound(read_tables(left_out, ["layer"]), verdicts)
    known = {each["name"]: EvidenceModel(**each) for each in models}
    curves = curves_by(["model", "estimator"], values)
    return Evidence(known, curves, read, suspect_above)


def read_tables(paths: Iterable[Path], words: Sequence[str] = ()) -> pd.DataFrame:
    """Read tables of one kind below each other; `words` are columns that only look like numbers."""
    types: Any = dict.fromkeys(("model", "revision", *words), str)
    tables = [pd.read_csv(p, dtype=types, keep_default_na=False, na_values=[""]) for p in paths]
    filled = [table for table in tables if len(table)]  # empty columns have no type
    return pd.concat(filled, ignore_index=True) if filled else NO_ROWS


def sound(rows: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Rows of models without verdicts, and of checkpoints that theirs say to show."""
    judged, good = set(verdicts["model"]), verdicts[verdicts["shown"] == "yes"]
    shown = set(zip(good["model"], good["revision"], strict=True))
    both = zip(rows["model"], rows["revision"], strict=True)
    return rows.loc[[each[0] not in judged or each in shown for each in both]]


def curves_by(keys: Sequence[str], rows: pd.DataFrame) -> dict[tuple[str, ...], Curve]:
    """Curves by some columns, from rows with left-out values; averages over layers are left out."""
    if rows.empty:
        return {}
    rows = rows[rows["layer"].str.isdigit()].astype({"layer": int})
    return {key: _curve(of) for key, of in rows.groupby([*keys], sort=False)}


def _curve(rows: pd.DataFrame) -> Curve:
    first = rows.drop_duplicates("revision").fillna({"step": 0}).sort_values("step", kind="stable")
    place = {revision: number for number, revision in enumerate(first["revision"])}
    rows = rows.assign(place=rows["revision"].map(place)).sort_values(["place", "layer"])
    layers = np.unique(rows["layer"])
    shape = (len(place), len(layers))
    return Curve(
        revisions=list(place),
        steps=rows["step"].to_numpy(np.float64)[:: len(layers)],
        selection=rows["selection"].iloc[0],
        layers=layers,
        values=rows[VALUES].to_numpy(np.float64).reshape(*shape, len(VALUES)),
        near_duplicates=rows["near_duplicates"].to_numpy(np.float64).reshape(shape),
        n=rows["n"].to_numpy(np.float64).reshape(shape).mean(axis=1),
    )


class NotMeasured(Exception):
    """What a claim needs and the run does not have, in one sentence."""


class Reading:
    """The evidence on one claim, as a statistic asks for it.

    Parameters
    ----------
    claim : Claim
    evidence : Evidence

    Attributes
    ----------
    models : dict of str to EvidenceModel
        The claim's models that are in the run, in its order or the run's.
    checkpoints : dict of (str, str)
        Model and revision of all that was read.
    curves_read : list of Curve
    suspects : Counter of str
        How many values of a model are beyond the conditions of their estimator.
    """

    def __init__(self, claim: Claim, evidence: Evidence) -> None:
        self.claim, self.evidence = claim, evidence
        self.models = {name: evidence.models[name] for name in claim.models_of(evidence.models)}
        self.checkpoints: dict[tuple[str, str], None] = {}
        self.curves_read: list[Curve] = []
        self.suspects: Counter[str] = Counter()

    def curves(self, *estimators: str) -> dict[str, list[Curve]]:
        """Give the curves of some estimators, of each model of which all are measured.

        They have the checkpoints and layers that the claim is on, but for layers that are undefined at one of
        these checkpoints, or without a group.

        Raises
        ------
        NotMeasured
            If that is fewer models than the claim needs.
        """
        found = {name: of for name in self.models if (of := self.beside(name, *estimators))}
        at = "a sound checkpoint" if self.claim.checkpoints == "last" else "two or more sound steps"
        self.require(found, f"{_listed(estimators)} at {at}")
        return found

    def rows(self, table: str) -> dict[str, pd.DataFrame]:
        """Give the rows of another table, by model; raises as :meth:`curves`."""
        found = {name: of for name in self.models if len(of := self.rows_beside(name, table))}
        self.require(found, f"tables/{table}")
        return found

    def beside(self, model: str, *estimators: str) -> list[Curve]:
        """Give the curves of a model, also of none of the claim's, such as a twin's original; [] if one lacks."""
        found = [self._curve(model, estimator) for estimator in estimators]
        curves = [curve for curve in found if curve is not None]
        if len(curves) < len(estimators):
            return []
        for estimator, curve in zip(estimators, curves, strict=True):
            self.checkpoints |= {(model, revision): None for revision in curve.revisions}
            self.curves_read.append(curve)
            limit = self.evidence.suspect_above.get(estimator, np.inf)
            if suspect := int((curve.near_duplicates > limit).sum()):
                self.suspects[model] += suspect
        return curves

    def rows_beside(self, model: str, table: str) -> pd.DataFrame:
        """Give the rows of such a model."""
        rows = self.evidence.tables.get(table, NO_ROWS)
        rows = rows[rows["model"] == model]
        self.checkpoints |= {(model, revision): None for revision in rows["revision"]}
        return rows

    def require(self, found: Collection[str], what: str) -> None:
        """Raise NotMeasured unless as many models as the claim needs have `what`."""
        named, needed = self.claim.models, self.claim.needed
        if len(found) >= needed:
            return
        is_group = isinstance(named, str)
        lacking = [name for name in (self.models if is_group else named) if name not in found]
        if lacking and not self.models.keys() & lacking:
            verb = "is" if len(lacking) == 1 else "are"
            raise NotMeasured(f"{_listed(lacking)} {verb} not in the run")
        whose = str(named).replace("_", "-") if is_group and named != "all" else "models"
        said = f"it needs {what} for at least {needed} of the {whose}, and the run has it for {len(found)}"
        raise NotMeasured(said + (f", not for {_listed(lacking)}" if lacking else ""))

    def require_each(self, found: Collection[str], names: Sequence[str], what: str) -> None:
        """Raise NotMeasured unless these models have `what`, however many the claim needs."""
        if lacking := [name for name in dict.fromkeys(names) if name not in found]:
            raise NotMeasured(f"it needs {what} for {_listed(lacking)}, and the run lacks it")

    def _curve(self, model: str, estimator: str) -> Curve | None:
        """The checkpoints and layers that the claim is on, without undefined ones; None if none is left."""
        curve = self.evidence.curves.get((model, estimator))
        if curve is None:
            return None
        places = [len(curve.steps) - 1]
        if self.claim.checkpoints == "training":
            places = np.flatnonzero(~np.isnan(curve.steps)).tolist()
            if len(places) < 2:
                return None
        values = curve.values[..., places, :, :]
        undefined = np.isnan(values).any(axis=tuple(range(values.ndim - 2)))
        wanted = curve.layers >= AVERAGED_LAYERS[self.claim.average_over]
        kept = wanted & ~undefined.any(axis=-1)
        if not kept.any():  # as of too few windows, where no layer has an interval
            kept = wanted & ~undefined[:, 0]
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


def of_common_layers(curves: Sequence[Curve]) -> list[np.ndarray]:
    """Values of the layers that all curves have, at the last checkpoint, (..., layers, 17)."""
    common = [layer for layer in curves[0].layers if all(layer in each.layers for each in curves)]
    if not common:
        raise NotMeasured("of one model there is no layer where all estimators are defined")
    return [each.last[..., np.isin(each.layers, common), :] for each in curves]


def each_less_each(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Differences (..., a, b, 17) of any of some values (..., a, 17) and any of others (..., b, 17)."""
    return values[..., :, None, :] - others[..., None, :, :]


def _listed(names: Sequence[str]) -> str:
    named = ", ".join(f"`{name}`" for name in names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named
