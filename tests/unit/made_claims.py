"""A claim that tests change, those of the papers, and evidence that is made for them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shape_of_learning.claims.claim import Claim, EvidenceModel, read_condition
from shape_of_learning.claims.evidence import Evidence, LayerValues
from shape_of_learning.claims.judgement import judge
from shape_of_learning.metrics.tidy import GROUPS
from shape_of_learning.plan.papers import read_papers

PAPERS = read_papers(Path(__file__).parents[2] / "workflow" / "papers")


class Claims(dict[str, Claim]):
    """The claims of all papers; a test of one whose paper has been removed is skipped."""

    def __missing__(self, name: str) -> Claim:
        pytest.skip(f"no paper has the claim `{name}`", allow_module_level=True)


CLAIMS = Claims({name: claim for paper in PAPERS for name, claim in paper.claims.items()})
CLAIM = {
    "sentence": "Blocks are linear.",
    "where": "abstract",
    "statistic": "mean_over_layers",
    "estimators": ["linearity"],
    "models": "decoders",
    "supported": read_condition({"in": "all", "at_least": 0.95}),
    "contradicted": read_condition({"in": "any", "below": 0.9}),
}


def curve(by_step, spread=0.0, near=0.0):
    """Values of layers from 1 on, by step; their standard error is `spread` times sqrt(15)."""
    values = np.array(list(by_step.values()), float)
    around = spread * np.concatenate([[0], np.tile([-1, 1], GROUPS // 2)])
    return LayerValues(
        [f"step{step}" for step in by_step],
        np.array(list(by_step), float),
        "all",
        np.arange(values.shape[1]) + 1,
        values[..., None] + around,
        np.broadcast_to(near, values.shape),
        np.full(len(values), 4096.0),
    )


def judged(curves, claim=None, tables=None, models=(), **others):
    """The judgement on one decoder `d` of two layers, whose curves of the claim's estimators are given."""
    known = {m.name: m for m in (*models, EvidenceModel("d", "decoder", 2, warmup_steps=2))}
    of = Claim(**{"name": "c"} | CLAIM | (claim or {}))
    given = {("d", name): each for name, each in zip(of.estimators, curves, strict=False)}
    tables = {kind: pd.DataFrame(rows) for kind, rows in (tables or {}).items()}
    return judge(of, Evidence(known, given, tables, **others))


def judged_models(values, conditions, near=None, **others):
    """The judgement on decoders each of which has one layer of a value."""
    curves = {
        (name, "linearity"): curve({0: [value]}, 1e-3, (near or {}).get(name, 0))
        for name, value in values.items()
    }
    known = {name: EvidenceModel(name, "decoder", 1) for name in values}
    return judge(Claim(name="c", **CLAIM | conditions), Evidence(known, curves, **others))


def conditions(supported, contradicted):
    """When a claim is supported and when it is contradicted, as claims.yaml has it."""
    return {"supported": read_condition(supported), "contradicted": read_condition(contradicted)}


def numbers(judgement):
    """Estimates of the numbers of the only unit."""
    assert judgement.verdict != "not measured", judgement.because
    return {number.name: number.estimate for number in judgement.numbers}
