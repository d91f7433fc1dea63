"""Checkpoints of a Hub on loopback are planned, pinned, fetched, measured and judged."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from checkouts import Checkout
from hub_fetching import save_model
from hub_server import HubRepository, Proxy, serve_hub, serve_proxy
from tiny_models import save_tokenizer

BIN, LOCK = "pytorch_model.bin", "config/locks/mine.yaml"
LISTING, VERDICTS = "results/checkpoints/mine.csv", "results/tables/verdicts/mine.csv"
STEPS = [0, 1, 2, 4, 16]
WRONG = {"4": "same weights as step 2", "16": "missing"}
SHAPE = {"role": "decoder", "layers": 2, "hidden_size": 32}
REPORT = {"steps": [4], "same_as": 2, "source": "https://example.org/1"}


@pytest.fixture
def hub(tmp_path: Path, hub_program: Path) -> Iterator[SimpleNamespace]:
    """A curve in which step 1 equals step 0 and step 4 equals step 2; its tokenizer is elsewhere, as BLOOM's."""
    root, sources = tmp_path / "hub", tmp_path / "sources"
    repository = HubRepository(root, "org/model")
    for step, seed in ((0, 0), (1, 0), (2, 2), (4, 2), (8, 8)):
        folder = save_model(sources / f"step{step}", seed=seed, form="bin", hidden_size=32)
        repository.commit(f"step{step}", folder, large=(BIN,))
    repository.commit("main", sources / "step8", large=(BIN,))
    save_tokenizer(sources / "words")
    HubRepository(root, "org/words").commit("main", sources / "words")
    with serve_hub(root, hub_program) as endpoint:
        yield SimpleNamespace(endpoint=endpoint)


def run_snakemake(
    checkout: Checkout, endpoint: str, *targets: str, succeeds=True, entry=None
) -> str:
    training = {"revision": "step{step}", "steps": STEPS, "tokens_per_step": 9}
    training["known_bad"] = [REPORT]
    whole = {"repository": "org/model", "tokenizer": "org/words", "training": training}
    checkout.write("config/models/mine.yaml", {"mine": whole | (entry or {})})
    settings = {
        "models": ["mine"],
        "embeddings": {"dump": False},
        "sampling": {"windows": 16, "window_characters": 512},
        "figures": {"figure_2": ["mine"], "figure_3": ["mine"]},
    }
    checkout.write("changes.yaml", settings)
    return checkout.snakemake(
        *(*targets, "--configfile", "config/demo.yaml", "changes.yaml", "--cores", "2"),
        succeeds=succeeds,
        environment={"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0", "HF_TOKEN": "hf_some"},
    )


def read_rows_by_step(checkout: Checkout, name: str) -> dict[str, dict[str, str]]:
    return {row["step"]: row for row in checkout.read_rows(name)}


def list_weights(checkout: Checkout) -> list[str]:
    return sorted(path.parent.name for path in (checkout.folder / "resources").rglob(BIN))


def test_revisions_are_pinned_judged_fetched_measured_and_removed(checkout, hub):
    proxy = Proxy(hub.endpoint)
    with serve_proxy(proxy) as endpoint:
        output = run_snakemake(checkout, endpoint, "--dry-run", VERDICTS)
        assert "NOTE: model `mine` is not pinned yet" in output
        assert not (checkout.folder / "config/locks").exists()
        run_snakemake(checkout, endpoint, LISTING)
        assert BIN not in proxy.requests
        lock = yaml.safe_load((checkout.folder / LOCK).read_text())
        assert lock["shape"] == {**SHAPE, "last_hidden_size": 32}
        assert list(lock["mains"]) == ["org/model"]
        table = read_rows_by_step(checkout, LISTING)
        verdicts = {step: row["verdict"] for step, row in table.items()}
        assert verdicts == {"0": "ok", "1": "not yet moved", "2": "ok", **WRONG}
        # With a lock the Hub is not asked again, and a job of a cluster never asks it.
        proxy.requests.clear()
        run_snakemake(checkout, endpoint, "resolve")
        run_snakemake(checkout, endpoint, LISTING, "--mode", "subprocess", "--force")
        assert proxy.requests == []
    output = run_snakemake(checkout, hub.endpoint, VERDICTS)
    assert "2 of 5 revisions are left out" in output
    verdicts_shown = {
        step: (row["verdict"], row["shown"])
        for step, row in read_rows_by_step(checkout, VERDICTS).items()
    }
    assert verdicts_shown["1"] == ("not yet moved", "yes")
    assert {step for step, (_, visibility) in verdicts_shown.items() if visibility == "no"} == {
        *WRONG
    }
    assert list_weights(checkout) == []


def test_an_entry_that_the_weights_contradict_fails_the_run(checkout, hub):
    output = run_snakemake(checkout, hub.endpoint, VERDICTS, succeeds=False, entry={"layers": 12})
    assert "for `layers` config.json of the checkpoint says 2 where the entry says 12" in output
