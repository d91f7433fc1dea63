"""A claim that tests change, the claims of the papers, and evidence made for them."""

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
    """The claims of all papers; a test is skipped if the paper of its claim has been removed."""

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


def make_curve(values_by_step, spread=0.0, near=0.0):
    """Make the values of layers 1 onwards by step; their standard error is `spread` times sqrt(15)."""
    values = np.array(list(values_by_step.values()), float)
    deviations = spread * np.concatenate([[0], np.tile([-1, 1], GROUPS // 2)])
    return LayerValues(
        [f"step{step}" for step in values_by_step],
        np.array(list(values_by_step), float),
        "all",
        np.arange(values.shape[1]) + 1,
        values[..., None] + deviations,
        np.broadcast_to(near, values.shape),
        np.full(len(values), 4096.0),
    )


def judge_decoder(curves, claim=None, tables=None, models=(), **options):
    """Judge a claim on one decoder `d` of two layers, given its curves of the claim's estimators."""
    models_by_name = {
        model.name: model for model in (*models, EvidenceModel("d", "decoder", 2, warmup_steps=2))
    }
    judged_claim = Claim(**{"name": "c"} | CLAIM | (claim or {}))
    curves_by_estimator = {
        ("d", name): values for name, values in zip(judged_claim.estimators, curves, strict=False)
    }
    tables = {kind: pd.DataFrame(rows) for kind, rows in (tables or {}).items()}
    return judge(judged_claim, Evidence(models_by_name, curves_by_estimator, tables, **options))


def judge_models(values, conditions, near=None, **options):
    """Judge a claim on decoders with one layer each, given the value of each decoder."""
    curves = {
        (name, "linearity"): make_curve({0: [value]}, 1e-3, (near or {}).get(name, 0))
        for name, value in values.items()
    }
    models = {name: EvidenceModel(name, "decoder", 1) for name in values}
    return judge(Claim(name="c", **CLAIM | conditions), Evidence(models, curves, **options))


def read_conditions(supported, contradicted):
    """Read the conditions under which a claim is supported and contradicted, as in claims.yaml."""
    return {"supported": read_condition(supported), "contradicted": read_condition(contradicted)}


def read_numbers(judgement):
    """Return the estimates of the numbers of the only unit."""
    assert judgement.verdict != "not measured", judgement.because
    return {number.name: number.estimate for number in judgement.numbers}
