"""What a plan asks of the Hub, and what it writes: nothing that a lock answers, and no file."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from checkouts import Checkout
from hub_fetching import save_model
from hub_server import HubRepository, Proxy, proxied, served
from tiny_models import save_tokenizer

LOCK = "config/locks/tiny.yaml"
VERDICTS = "results/checkpoints/tiny.csv"
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory, hub_program: Path) -> Iterator[str]:
    """A model with a curve of three steps."""
    root, sources = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("sources")
    repository = HubRepository(root, "org/model")
    for step in (0, 1, 2):
        folder = save_model(sources / f"step{step}", seed=step, form="bin", hidden_size=32)
        save_tokenizer(folder)
        repository.commit(f"step{step}", folder, large=("pytorch_model.bin",))
    with served(root, hub_program) as address:
        yield address


def run(checkout: Checkout, endpoint: str, *arguments: str, succeeds: bool = True, **entry) -> str:
    """Run with an entry that says neither role nor layers nor widths."""
    training = {"revision": "step{step}", "steps": [0, 1]}
    written = {"repository": "org/model", "training": training, **entry}
    checkout.write("config/models/mine.yaml", {"tiny": written})
    checkout.write("changes.yaml", {"models": ["tiny"], "figures": {"figure_2": ["tiny"]}})
    return checkout.snakemake(
        *(*arguments, "--configfile", "config/demo.yaml", "changes.yaml", "--cores", "1"),
        succeeds=succeeds,
        environment={"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"},
    )


def tree(folder: Path) -> dict[str, str]:
    """All files but Snakemake's own, with what they hold; empty folders, too."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ""
        for path in folder.rglob("*")
        if ".snakemake" not in path.parts and "__pycache__" not in path.parts
    }


def test_a_dry_run_resolves_but_writes_nothing_and_says_so(checkout, endpoint):
    run(checkout, endpoint, "--dry-run", "all")  # the two files of the configuration
    before = tree(checkout.folder)
    said = run(checkout, endpoint, "--dry-run", "all")
    assert tree(checkout.folder) == before
    assert not {"results", "resources", "config/locks"} & set(before)
    assert "model `tiny`: asking the Hub" in said
    assert "NOTE: model `tiny` is not pinned yet; `snakemake resolve`" in said
    assert said.count("is not pinned yet") == 1


def test_what_is_left_out_is_said_by_a_dry_run_once(checkout, endpoint):
    training = {"revision": "step{step}", "steps": [0, 1, 7]}
    said = run(checkout, endpoint, "--dry-run", "all", training=training)
    sentence = "NOTE: model `tiny`: 1 of 3 revisions are left out; bad ones are `step7` (missing)"
    assert said.count(sentence) == 1


def test_resolve_pins_every_model_and_does_nothing_else(checkout, endpoint):
    proxy = Proxy(endpoint)
    with proxied(proxy) as address:
        said = run(checkout, address, "resolve")
    assert not [name for name in proxy.asked if name.endswith((".bin", ".safetensors"))]
    lock = yaml.safe_load((checkout.folder / LOCK).read_text())
    assert set(lock["revisions"]) == {"step0", "step1"}
    shape = {"role": "decoder", "layers": 2, "hidden_size": 32, "last_hidden_size": 32}
    assert lock["shape"] == shape
    assert "model `tiny`: asking the Hub" in said
    assert f"{LOCK} is written" in said
    assert not (checkout.folder / "resources").exists()


def test_what_a_lock_answers_is_not_asked(checkout, endpoint):
    run(checkout, endpoint, "resolve")
    lock = (checkout.folder / LOCK).read_bytes()
    proxy = Proxy(endpoint)
    with proxied(proxy) as address:
        said = run(checkout, address, "--dry-run", "all")
        run(checkout, address, VERDICTS)
        run(checkout, address, "resolve")
    assert proxy.asked == []
    assert "asking" not in said
    assert "not pinned" not in said
    assert (checkout.folder / LOCK).read_bytes() == lock
    assert (checkout.folder / VERDICTS).read_text().count(",ok\n") == 2


def test_a_job_of_a_cluster_asks_nobody(checkout, endpoint):
    """It reads the workflow in a Snakemake of its own."""
    run(checkout, endpoint, "resolve")
    proxy = Proxy(endpoint)
    with proxied(proxy) as address:
        said = run(checkout, address, VERDICTS, "--mode", "subprocess")
        (checkout.folder / LOCK).unlink()
        lost = run(checkout, address, VERDICTS, "--mode", "subprocess", "--force", succeeds=False)
    assert proxy.asked == []
    assert "asking" not in said
    assert "its lock is missing where a job runs" in lost


def test_another_step_asks_for_that_step_alone(checkout, endpoint):
    run(checkout, endpoint, "resolve")
    pinned = yaml.safe_load((checkout.folder / LOCK).read_text())["revisions"]
    proxy = Proxy(endpoint)
    training = {"revision": "step{step}", "steps": [0, 1, 2]}
    with proxied(proxy) as address:
        run(checkout, address, "resolve", training=training)
    commits = {name: revision["commit"] for name, revision in pinned.items()}
    assert not set(commits.values()) & set(proxy.asked), "a pinned revision was listed again"
    now = yaml.safe_load((checkout.folder / LOCK).read_text())["revisions"]
    assert {name: now[name] for name in pinned} == pinned
    assert set(now) == {"step0", "step1", "step2"}


def test_what_the_entry_says_is_checked_before_any_job(checkout, endpoint):
    said = run(checkout, endpoint, "resolve", layers=12, succeeds=False)
    assert "for `layers` config.json of the checkpoint says 2 where the entry says 12" in said
    assert "Traceback" not in said
    assert not (checkout.folder / LOCK).exists()


def test_resolving_where_nobody_can_be_asked_fails_and_a_plan_that_needs_no_shape_does_not(
    checkout,
):
    typed = {"role": "decoder", "layers": 2, "hidden_size": 32}
    said = run(checkout, NOWHERE, "resolve", succeeds=False, **typed)
    assert f"{NOWHERE} cannot be reached" in said
    assert "unchecked" in run(checkout, NOWHERE, "--dry-run", "all", **typed)
    said = run(checkout, NOWHERE, "--dry-run", "all", succeeds=False)
    assert "or state `role`, `layers` and `hidden_size`" in said
    assert "Traceback" not in said


def test_waiting_for_the_hub_is_said(checkout, endpoint):
    """It answers 429 once, and wants to be asked again in twelve seconds."""
    proxy = Proxy(endpoint, failing={"refs": 1}, status=429, retry_after="12")
    with proxied(proxy) as address:
        said = run(checkout, address, "resolve")
    assert f"model `tiny`: waiting for {address}, 10 s" in said
    assert "answered 429" in said
    assert (checkout.folder / LOCK).exists()
