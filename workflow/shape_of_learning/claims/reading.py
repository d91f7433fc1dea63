"""What a statistic reads of the evidence, and the record of it."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.evidence import Curve, Evidence, EvidenceModel, LayerValues

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
    checkpoints : dict of (str, str)
        Model and revision of all that was read.
    tables : dict of str
        Other tables that were read, as ``KIND/MODEL``.
    values : list of LayerValues
        All measured values that were read.
    suspects : Counter of str
        How many values of a model are beyond the conditions of their estimator.
    undefined : int
        How many layers of a curve were left out, since they are undefined somewhere on it.
    """

    def __init__(self, claim: Claim, evidence: Evidence) -> None:
        self.claim = claim
        self.evidence = evidence
        self.checkpoints: dict[tuple[str, str], None] = {}
        self.tables: dict[str, None] = {}
        self.values: list[LayerValues] = []
        self.suspects: Counter[str] = Counter()
        self.undefined = 0

    @property
    def models(self) -> list[EvidenceModel]:
        """The claim's models that are in the run, in its order or the run's."""
        run, named = self.evidence.models, self.claim.models
        if not isinstance(named, str):
            return [run[name] for name in named if name in run]
        return [model for model in run.values() if self.claim.is_on(model.kind, model.role)]

    def curves(self, *estimators: str) -> dict[str, list[Curve]]:
        """Give the curves of some estimators, of each model of which all are measured.

        Raises
        ------
        NotMeasured
            If that is fewer models than the claim needs, or one has no layer where they are all defined.
        """
        found: dict[str, list[Curve]] = {}
        lacking = []
        for model in self.models:
            curves = [self._curve(model.name, estimator) for estimator in estimators]
            whole = [curve for curve in curves if curve is not None and curve.layers]
            if len(whole) == len(estimators):
                found[model.name] = whole
            else:
                lacking.append(model.name)
        at = "a sound checkpoint" if self.claim.checkpoints == "last" else "two or more sound steps"
        self.require(found, lacking, f"{_listed(estimators)} at {at}")
        for name, curves in found.items():
            for estimator, curve in zip(estimators, curves, strict=True):
                self._record(name, estimator, curve)
        return found

    def rows(self, table: str) -> dict[str, list[Mapping[str, str]]]:
        """Give the rows of another table, by model; raises as :meth:`curves`."""
        found = {model.name: self.rows_beside(model.name, table) for model in self.models}
        lacking = [name for name, own in found.items() if not own]
        found = {name: own for name, own in found.items() if own}
        self.require(found, lacking, f"tables/{table}")
        return found

    def beside(self, model: str, estimator: str) -> Curve | None:
        """Give the curve of a model that is none of the claim's, such as a twin's original, or None."""
        curve = self._curve(model, estimator)
        if curve is not None:
            self._record(model, estimator, curve)
        return curve

    def rows_beside(self, model: str, table: str) -> list[Mapping[str, str]]:
        """Give the rows of such a model."""
        rows = [row for row in self.evidence.tables.get(table, ()) if row["model"] == model]
        self.checkpoints |= {(model, row["revision"]): None for row in rows}
        self.tables |= {f"{table}/{model}": None} if rows else {}
        return rows

    def require(self, found: Collection[str], lacking: Sequence[str], what: str) -> None:
        """Raise NotMeasured unless as many models as the claim needs have `what`."""
        named, needed = self.claim.models, self.claim.needed
        if len(found) >= needed:
            return
        if isinstance(named, str):
            whose = "models" if named == "all" else named.replace("_", "-")
            some = f"{len(found)} {whose}, of {needed} that are needed," if found else f"no {whose}"
            without = f" ({_are(lacking, 'without')})" if lacking else ""
            raise NotMeasured(f"the run has {some} with {what}{without}")
        absent = [name for name in named if name not in self.evidence.models]
        said = [_are(absent, "not in the run")] if absent else []
        said += [_have_no(lacking, what)] if lacking else []
        raise NotMeasured("; ".join(said))

    def require_each(self, found: Collection[str], names: Sequence[str], what: str) -> None:
        """Raise NotMeasured unless these models have `what`, however many the claim needs."""
        if lacking := [name for name in dict.fromkeys(names) if name not in found]:
            raise NotMeasured(f"{_have_no(lacking, what)} in the run")

    def _curve(self, model: str, estimator: str) -> Curve | None:
        claim = self.claim
        return self.evidence.curve(model, estimator, claim.checkpoints, claim.average_over)

    def _record(self, model: str, estimator: str, curve: Curve) -> None:
        limit = self.evidence.suspect_above.get(estimator)
        self.undefined += curve.undefined
        for each in curve.checkpoints:
            self.checkpoints[model, each.revision] = None
            self.values.append(each)
            if limit is not None:
                shares = dict(zip(each.layers, each.near_duplicates, strict=True))
                if suspect := sum(shares[layer] > limit for layer in curve.layers):
                    self.suspects[model] += suspect


def of_common_layers(curves: Sequence[Curve]) -> list[np.ndarray]:
    """Values of the layers that all curves have, at the last checkpoint, (..., layers, 17)."""
    common = [layer for layer in curves[0].layers if all(layer in c.layers for c in curves)]
    if not common:
        raise NotMeasured(f"`{curves[0].model.name}` has no layer where all estimators are defined")
    return [c.values[..., -1, [c.layers.index(layer) for layer in common], :] for c in curves]


def _are(names: Sequence[str], what: str) -> str:
    return f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {what}"


def _have_no(names: Sequence[str], what: str) -> str:
    return f"{_listed(names)} {'has' if len(names) == 1 else 'have'} no {what}"


def _listed(names: Sequence[str]) -> str:
    named = ", ".join(f"`{name}`" for name in names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named
