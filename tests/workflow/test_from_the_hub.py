"""The chain on checkpoints that a real Hub server on loopback serves."""

import csv
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import tiny_runs
from checkouts import Checkout
from hub_fetching import save_model
from hub_server import HubRepository, Proxy, proxied, served
from shape_of_learning.checkpoints.lock import read_lock
from shape_of_learning.checkpoints.tensor_digests import read_tensor_digests
from shape_of_learning.checkpoints.tensor_hashing import tensor_digests
from tiny_models import save_tiny_model, save_tokenizer

STEPS = (0, 1000)
ENTRY = {
    "role": "decoder",
    "layers": 2,
    "hidden_size": 32,
    "repository": "org/model",
    "tokenizer": "org/words",
    "training": {"revision": "step{step}", "tokens_per_step": 100, "steps": list(STEPS)},
}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory, hub_program: Path) -> Iterator[str]:
    """A model with two revisions that hold pickled weights only, its tokenizer apart, as BLOOM."""
    root, sources = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("sources")
    model = HubRepository(root, "org/model")
    for step in STEPS:
        folder = save_model(sources / f"step{step}", seed=step, form="bin", hidden_size=32)
        model.commit(f"step{step}", folder, large=("pytorch_model.bin",))
    save_tokenizer(sources / "words")
    HubRepository(root, "org/words").commit("main", sources / "words")
    with served(root, hub_program) as address:
        yield address


def run(
    checkout: Checkout,
    endpoint: str,
    *targets: str,
    succeeds: bool = True,
    embeddings: dict | None = None,
    **entry,
) -> str:
    checkout.write("config/models/mine.yaml", {"mine": {**ENTRY, **entry}})
    changes = {
        "embeddings": embeddings or {},
        "models": ["mine"],
        "keep_checkpoints": True,
        # With so small a vocabulary a window has some 400 tokens: enough for one batch.
        "sampling": {"windows": 16, "window_characters": 512},
        "figures": {"figure_2": ["mine"], "figure_3": ["mine"]},
    }
    checkout.write("changes.yaml", changes)
    return checkout.snakemake(
        *(*targets, "--configfile", "config/demo.yaml", "changes.yaml", "--cores", "2"),
        succeeds=succeeds,
        environment={"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"},
    )


def test_revisions_are_fetched_pinned_measured_and_drawn(checkout, endpoint):
    run(checkout, endpoint, "figure_2")
    for step in STEPS:
        folder = checkout.folder / f"resources/checkpoints/mine/step{step}"
        record = json.loads((folder / "checkpoint.json").read_text())
        assert record["revision"] == f"step{step}"
        assert len(record["commit"]) == 40
        assert (folder / "pytorch_model.bin").exists()
        assert (folder / "tokenizer.json").exists()
    drawn = (checkout.folder / "results/figures/figure_2.csv").read_text()
    # Layers 0, 1 and 2 of two steps.
    assert len(drawn.splitlines()) == 1 + 2 * 3
    assert not checkout.partial_files()


def test_a_kept_checkpoint_is_taken_as_another_run_has_left_it(checkout, endpoint):
    """Two runs that share downloads may both have planned to make it."""
    receipt = "results/checkpoints/mine/step0.json"
    run(checkout, endpoint, receipt)
    weights = checkout.folder / "resources/checkpoints/mine/step0/pytorch_model.bin"
    inode = weights.stat().st_ino
    (checkout.folder / receipt).unlink()
    said = run(checkout, endpoint, receipt)
    assert "Fetching mine at step0" in said
    assert weights.stat().st_ino == inode


def changed(file: Path) -> None:
    """Turn a bit, and leave size and time."""
    before, content = file.stat(), bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    ("dump", "names"),
    [
        (True, ("pytorch_model.bin", "config.json", "tokenizer.json")),
        (False, ("pytorch_model.bin",)),
    ],
)
def test_a_kept_checkpoint_is_looked_at_again_when_it_is_used(checkout, endpoint, dump, names):
    embeddings, loss = {"dump": dump}, "results/losses/mine/step0.csv"
    run(checkout, endpoint, "results/checkpoints/mine/step0.json", embeddings=embeddings)
    folder = checkout.folder / "resources/checkpoints/mine/step0"
    for name in names:
        good = (folder / name).read_bytes()
        changed(folder / name)
        said = run(checkout, endpoint, loss, succeeds=False, embeddings=embeddings)
        assert f"step0/{name} is not what it was when it came (expected {len(good)} bytes" in said
        assert "Traceback" not in said
        assert not (checkout.folder / loss).exists()
        assert not list(checkout.folder.glob("results/checkpoints/mine/*.tensors.csv"))
        (folder / name).write_bytes(good)
    # Another run that shares the downloads has another lock.
    step1000 = checkout.folder / "resources/checkpoints/mine/step1000"
    run(checkout, endpoint, "results/checkpoints/mine/step1000.json", embeddings=embeddings)
    folder.rename(folder.with_name("aside"))
    shutil.copytree(step1000, folder)
    said = run(checkout, endpoint, loss, succeeds=False, embeddings=embeddings)
    assert "step0 holds another checkpoint than results/checkpoints/mine/step0.json says" in said
    shutil.rmtree(folder)
    folder.with_name("aside").rename(folder)
    run(checkout, endpoint, loss, embeddings=embeddings)
    table = checkout.folder / "results/checkpoints/mine/step0.tensors.csv"
    assert read_tensor_digests(table) == tensor_digests(folder)


def test_a_run_that_keeps_nothing_removes_nothing_that_another_keeps(checkout, endpoint):
    run(checkout, endpoint, "results/checkpoints/mine/step0.json")
    kept = checkout.folder / "resources/checkpoints/mine/step0"
    before = {path.name: path.stat() for path in kept.iterdir()}
    checkout.write("other.yaml", {"run": "other", "keep_checkpoints": False})
    loss = "results/other/losses/mine/step0.csv"
    configurations = ("--configfile", "config/demo.yaml", "changes.yaml", "other.yaml")
    checkout.snakemake(
        *(loss, *configurations, "--cores", "2"),
        environment={"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"},
    )
    assert (checkout.folder / loss).exists()
    assert {path.name: path.stat() for path in kept.iterdir()} == before
    assert not list(checkout.folder.glob("resources/unkept*/*/*"))


def test_a_lock_pins_the_small_files_too(checkout, endpoint):
    run(checkout, endpoint, "resolve")
    lock = read_lock(checkout.folder / "config/locks/mine.yaml")
    assert [*lock.revisions["step0"].small_files] == ["config.json"]
    words = lock.tokenizer.small_files
    assert {"tokenizer.json", "tokenizer_config.json"} == set(words)
    assert all(re.fullmatch("git:[0-9a-f]{40}", digest) for digest in words.values())


def test_another_step_fetches_no_revision_again(checkout, endpoint):
    receipt, first = "results/checkpoints/mine/step0.json", {**ENTRY["training"], "steps": [0]}
    run(checkout, endpoint, receipt, training=first)
    said = run(checkout, endpoint, "--dry-run", receipt)
    assert "model `mine`: asking the Hub" in said, "the other step needed no asking"
    assert "Nothing to be done" in said


def test_a_missing_revision_is_one_sentence(checkout, endpoint):
    training = {**ENTRY["training"], "steps": [7, 8]}
    said = run(checkout, endpoint, "figure_2", succeeds=False, training=training)
    assert "model `mine` has no checkpoint that can be used" in said
    assert "`step7` (missing)" in said
    assert "Traceback" not in said
    assert not (checkout.folder / "resources/checkpoints").exists()


@pytest.mark.parametrize("steps", [[0, 1], "log"])
def test_a_repository_that_is_not_there_or_not_shown_is_no_verdict(checkout, endpoint, steps):
    training = {**ENTRY["training"], "steps": steps}
    said = run(
        checkout, endpoint, "figure_2", succeeds=False, repository="org/none", training=training
    )
    assert "the Hub has no repository `org/none`, or shows it only to others" in said
    assert "HF_TOKEN" in said
    assert "Traceback" not in said
    assert not (checkout.folder / "config/locks").exists()


def test_a_gated_repository_without_a_token_is_one_sentence(checkout, endpoint):
    with proxied(Proxy(endpoint, token="the right one")) as gate:
        said = run(checkout, gate, "figure_2", succeeds=False)
    assert "HF_TOKEN" in said
    assert "Traceback" not in said
    assert not list((checkout.folder / "resources/checkpoints").glob("*/step*"))


def test_each_step_may_have_a_repository_of_its_own(checkout, tmp_path, hub_program):
    """As the MultiBERTs have; and TinyLlama's later milestones, or steps in subfolders."""
    root = tmp_path / "hub"
    for step in (0, 20):
        bert = save_tiny_model(tmp_path / f"bert{step}", "bert", head=True, seed=step)
        HubRepository(root, f"org/bert-step_{step}k").commit("main", bert)
    neox = save_tiny_model(tmp_path / "neox", "gpt_neox", head=True, seed=1)
    HubRepository(root, "org/dense").commit("step-5k-token-10B", neox)
    nested = tmp_path / "nested"
    save_tiny_model(nested / "checkpoints" / "9", "gpt_neox", head=True, seed=2)
    HubRepository(root, "org/milestone").commit("main", nested)
    shape = {"layers": 3, "hidden_size": 32}
    encoder = {
        "role": "encoder",
        "repository": "org/bert-step_{kilosteps}k",
        "training": {"revision": "main", "tokens_per_step": 10, "steps": [0, 20000]},
    }
    milestone = {
        "step": 9000,
        "tokens": 18,
        "name": "step-9k",
        "repository": "org/milestone",
        "revision": "main",
        "subfolder": "checkpoints/9",
    }
    decoder = {
        "role": "decoder",
        "repository": "org/dense",
        "training": {
            "revision": "step-{kilosteps}k-token-{gigatokens}B",
            "steps": "log",
            "checkpoints": [milestone],
        },
    }
    models = {"encoder": {**encoder, **shape}, "decoder": {**decoder, **shape}}
    checkout.write("config/models/mine.yaml", models)
    checkout.write(
        "changes.yaml",
        {"models": list(models), "sampling": {"windows": 8, "window_characters": 100}},
    )
    verdicts = [f"results/tables/verdicts/{name}.csv" for name in models]
    with served(root, hub_program) as endpoint:
        checkout.snakemake(
            *(*verdicts, "--configfile", "config/demo.yaml", "changes.yaml", "--cores", "2"),
            environment={"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"},
        )
    encoders, decoders = (
        [line.split(",") for line in (checkout.folder / path).read_text().splitlines()[1:]]
        for path in verdicts
    )
    assert [row[1:4] for row in encoders] == [["step0", "0", "0"], ["step20000", "20000", "200000"]]
    assert [row[1:4] for row in decoders] == [
        ["step-5k-token-10B", "5000", "10000000000"],
        ["step-9k", "9000", "18"],
    ]
    for row in (*encoders, *decoders):
        assert float(row[4]) > 0, "no loss"
        assert row[7:] == ["ok", "yes"]


def test_what_is_fetched_regularised_and_fine_tuned_goes_through_one_run(checkout, endpoint):
    twin = {"regulariser": "cosine", "strength": 0.5, "twin_of": "plain"}
    tuning = {"of": "plain", "task": "topic", "learning_rate": 0.001, "batch_size": 64}
    tuning |= {"epochs": 1, "seed": 0, "threads": 1}
    pretrained = {**tiny_runs.MODEL, "pretraining": {**tiny_runs.RECIPE, "context": 512}}
    twins = {**pretrained, "pretraining": {**pretrained["pretraining"], **twin}}
    entries = {"mine": ENTRY, "plain": pretrained, "twin": twins}
    entries["tuned"] = {"label": "tuned", "finetuning": tuning}
    checkout.write("config/models/mine.yaml", entries)
    changes = {
        "models": ["mine", "twin", "tuned"],
        "sampling": {"windows": 16, "window_characters": 512},
        "measurement": {"batch_vectors": 1400},
        "figures": {"linear_figure_1": "all"},
    }
    checkout.write("changes.yaml", changes)
    checkout.snakemake(
        *("linear_figure_1", "--configfile", "config/demo.yaml", "changes.yaml", "--cores", "2"),
        environment={"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"},
    )
    with (checkout.folder / "results/figures/linear_figure_1.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["estimator"] == "linearity"]
    assert {row["model"]: row["revision"] for row in rows} == {
        "mine": "step1000",
        "twin": "step1",
        "tuned": "step16",
    }
    assert all(0 < float(row["value"]) <= 1 for row in rows)
