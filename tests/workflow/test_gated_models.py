"""Gated models with no token, a token without the licence, and one that has it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from checkouts import Checkout
from hub_fetching import save_model
from hub_server import HubRepository, Proxy, proxied, served
from tiny_models import save_tokenizer

TOKEN = "hf_withTheLicence"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory, hub_program: Path) -> Iterator[str]:
    """A model behind a gate and one before it."""
    root, sources = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("sources")
    folder = save_model(sources / "main", seed=0, form="safetensors", hidden_size=32)
    save_tokenizer(folder)
    HubRepository(root, "org/closed").commit("main", folder)
    with served(root, hub_program) as address:
        yield address


def planned(
    checkout: Checkout,
    endpoint: str,
    token: str,
    *arguments: str,
    succeeds: bool = True,
    **settings: object,
) -> str:
    """What a dry run says with a gated model, whose files the proxy shows to one token only."""
    shape = {"role": "decoder", "layers": 2, "hidden_size": 32}
    entry = {"repository": "org/closed", "gated": True, **shape}
    checkout.write("config/models/mine.yaml", {"closed": entry})
    figures = {"figure_1": ["closed", "demo-decoder"], "figure_3": []}
    changes = {"models": ["closed", "demo-decoder"], "figures": figures, **settings}
    checkout.write("changes.yaml", changes)
    with proxied(Proxy(endpoint, token=TOKEN)) as address:
        return checkout.snakemake(
            *("--dry-run", "--cores", "1", "--configfile", "config/demo.yaml", "changes.yaml"),
            *("--", *arguments),
            succeeds=succeeds,
            environment={"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0", "HF_TOKEN": token},
        )


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("", "no Hugging Face token is set"),
        ("hf_other", "the Hub refuses it to the Hugging Face token"),
    ],
)
def test_a_gate_that_is_closed_leaves_the_model_out_with_a_note(checkout, endpoint, token, reason):
    said = planned(checkout, endpoint, token, "figure_1")
    assert said.count(f"NOTE: model `closed` is gated and {reason}: it is left out") == 1
    assert "Pretraining demo-decoder" in said
    assert "Fetching closed" not in said
    assert "Traceback" not in said
    assert "hf_other" not in said


@pytest.mark.parametrize("token", ["", "hf_other"])
def test_a_gate_that_is_closed_ends_a_plan_that_must_have_the_model(checkout, endpoint, token):
    said = planned(checkout, endpoint, token, gated_models="fail", succeeds=False)
    (sentence,) = (line for line in said.splitlines() if line.startswith("ERROR: "))
    assert "model `closed` is gated and" in sentence
    assert "remove it from key `models`" in sentence
    assert said.splitlines()[-1] == sentence


def test_a_token_that_has_the_licence_opens_it(checkout, endpoint):
    said = planned(checkout, endpoint, TOKEN, "figure_1")
    assert "Fetching closed at main" in said
    assert "is gated" not in said
