"""A claim that tests change, and evidence that is made for it."""

import numpy as np

from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.evidence import Evidence, EvidenceModel, LayerValues
from shape_of_learning.claims.judging import judge
from shape_of_learning.metrics.table_columns import GROUPS

CLAIM = {
    "sentence": "Blocks are linear.",
    "where": "abstract",
    "statistic": "mean_over_layers",
    "estimators": ["linearity"],
    "models": "decoders",
    "rule": {"supported": {"in": "all", "holds": {"at_least": 0.95}},
             "contradicted": {"in": "any", "holds": {"below": 0.9}}},
}  # fmt: skip


def measured(values, step=0, spread=0.0, **others):
    """One checkpoint whose layers have these values; their standard error is `spread` times sqrt(15)."""
    around = spread * np.concatenate([[0], np.tile([-1, 1], GROUPS // 2)])
    whole = np.asarray(values, float)[:, None] + around
    return LayerValues(
        f"step{step}", step, "all", tuple(range(1, len(values) + 1)), whole, **others
    )


def judged(values, claim=None, tables=None, models=(), **others):
    """The judgement on one decoder `d` whose checkpoints of each estimator of the claim are given."""
    known = {m.name: m for m in (*models, EvidenceModel("d", "decoder", 4, warmup_steps=2))}
    of = Claim(name="c", **CLAIM | (claim or {}))
    given = {("d", name): each for name, each in zip(of.estimators, values, strict=False)}
    return judge(of, Evidence(known, given, tables or {}, **others))


def judged_models(ends, rule, **others):
    """The judgement on decoders each of which has one layer of a value, or a checkpoint as above."""
    values = {
        (name, "linearity"): [
            each if isinstance(each, LayerValues) else measured([each], spread=1e-3)
        ]
        for name, each in ends.items()
    }
    known = {name: EvidenceModel(name, "decoder", 1) for name in ends}
    return judge(Claim(name="c", **CLAIM | {"rule": rule}), Evidence(known, values, **others))


def parts(of):
    """Estimates of the parts of the only unit."""
    assert of.verdict != "not measured", of.because
    return {part.part: part.estimate for part in of.parts}
