"""What a statistic reads of the evidence, and the record of it."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.evidence import NO_ROWS, Curve, Evidence, EvidenceModel
from shape_of_learning.metrics.tidy import AVERAGED_LAYERS

MOST_NAMED = 4


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
    tables : dict of str
        Other tables that were read, as ``KIND/MODEL``.
    curves_read : list of Curve
    suspects : Counter of str
        How many values of a model are beyond the conditions of their estimator.
    """

    def __init__(self, claim: Claim, evidence: Evidence) -> None:
        self.claim = claim
        self.evidence = evidence
        run, named = evidence.models, claim.models
        if isinstance(named, str):
            named = [name for name, model in run.items() if claim.is_on(model.kind, model.role)]
        self.models: dict[str, EvidenceModel] = {name: run[name] for name in named if name in run}
        self.checkpoints: dict[tuple[str, str], None] = {}
        self.tables: dict[str, None] = {}
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
        found: dict[str, list[Curve]] = {}
        for name in self.models:
            curves = [self._curve(name, estimator) for estimator in estimators]
            whole = [curve for curve in curves if curve is not None]
            if len(whole) == len(estimators):
                found[name] = whole
                for estimator, curve in zip(estimators, whole, strict=True):
                    self._record(name, estimator, curve)
        at = "a sound checkpoint" if self.claim.checkpoints == "last" else "two or more sound steps"
        self.require(found, f"{_listed(estimators)} at {at}")
        return found

    def rows(self, table: str) -> dict[str, pd.DataFrame]:
        """Give the rows of another table, by model; raises as :meth:`curves`."""
        rows = {name: self.rows_beside(name, table) for name in self.models}
        found = {name: of for name, of in rows.items() if len(of)}
        self.require(found, f"tables/{table}")
        return found

    def beside(self, model: str, estimator: str) -> Curve | None:
        """Give the curve of a model that is none of the claim's, such as a twin's original, or None."""
        curve = self._curve(model, estimator)
        if curve is not None:
            self._record(model, estimator, curve)
        return curve

    def rows_beside(self, model: str, table: str) -> pd.DataFrame:
        """Give the rows of such a model."""
        rows = self.evidence.tables.get(table, NO_ROWS)
        rows = rows[rows["model"] == model]
        self.checkpoints |= {(model, revision): None for revision in rows["revision"]}
        if len(rows):
            self.tables[f"{table}/{model}"] = None
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

    def _record(self, model: str, estimator: str, curve: Curve) -> None:
        self.checkpoints |= {(model, revision): None for revision in curve.revisions}
        self.curves_read.append(curve)
        limit = self.evidence.suspect_above.get(estimator, np.inf)
        if suspect := int((curve.near_duplicates > limit).sum()):
            self.suspects[model] += suspect


def of_common_layers(curves: Sequence[Curve]) -> list[np.ndarray]:
    """Values of the layers that all curves have, at the last checkpoint, (..., layers, 17)."""
    common = [layer for layer in curves[0].layers if all(layer in each.layers for each in curves)]
    if not common:
        raise NotMeasured("of one model there is no layer where all estimators are defined")
    return [each.values[..., -1, np.isin(each.layers, common), :] for each in curves]


def _listed(names: Sequence[str]) -> str:
    named = ", ".join(f"`{name}`" for name in names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named
