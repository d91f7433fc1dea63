"""A training curve of ten revisions, of which three are wrong in three ways."""

import copy
import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import yaml

from checkouts import Checkout
from hub_fetching import save_model
from hub_server import HubRepository, Proxy, proxied, served
from tiny_models import save_tokenizer

STEPS = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256]
WRONG = {4: "same weights as step 2", 16: "missing", 64: "no weights"}
REPORT = {"steps": [4], "same_as": 2, "source": "https://example.org/1"}
LARGE = ("pytorch_model.bin",)


@dataclass(frozen=True)
class Hub:
    """A running Hub and the repository of the curve, which tests may change."""

    endpoint: str
    repository: HubRepository
    sources: Path


@pytest.fixture(scope="module")
def curve(tmp_path_factory: pytest.TempPathFactory) -> Hub:
    """The curve, which nobody serves yet."""
    folder = tmp_path_factory.mktemp("curve")
    sources = folder / "sources"
    repository = HubRepository(folder / "hub", "org/model")
    for step in STEPS:
        folder = sources / f"step{step}"
        if step == 4:
            shutil.copytree(sources / "step2", folder)
        else:
            save_model(folder, seed=step, form="bin", hidden_size=32)
            save_tokenizer(folder)
        if step == 64:
            (folder / "pytorch_model.bin").unlink()
            repository.commit(f"step{step}", folder)
        elif step != 16:
            repository.commit(f"step{step}", folder, large=LARGE)
    return Hub("", repository, sources)


@pytest.fixture
def hub(curve: Hub, tmp_path: Path, hub_program: Path) -> Iterator[Hub]:
    """A copy of it, on a Hub of its own."""
    shutil.copytree(curve.sources.parent, tmp_path / "curve")
    repository = copy.copy(curve.repository)
    root = tmp_path / "curve/hub"
    repository.folder = root / "models" / repository.name
    with served(root, hub_program) as endpoint:
        yield Hub(endpoint, repository, tmp_path / "curve/sources")


def run(
    checkout: Checkout,
    endpoint: str,
    *targets: str,
    succeeds: bool = True,
    offline: bool = False,
    steps=None,
    tokens_per_step: int | None = 100,
    **changes,
) -> str:
    training = {"revision": "step{step}", "steps": steps or STEPS, "known_bad": [REPORT]}
    if tokens_per_step is not None:
        training["tokens_per_step"] = tokens_per_step
    entry = {
        "role": "decoder",
        "label": "Tiny",
        "layers": 2,
        "hidden_size": 32,
        "repository": "org/model",
        "training": training,
    }
    checkout.write("config/models/mine.yaml", {"tiny": entry})
    settings = {
        "models": ["tiny"],
        # One job per checkpoint; what a dump is measured from is another matter.
        "embeddings": {"dump": False},
        "sampling": {"windows": 64, "window_characters": 100},
        "measurement": {"batch_vectors": 1000},
        "figures": {"figure_2": ["tiny"], "figure_3": ["tiny"]},
    } | changes
    checkout.write("changes.yaml", settings)
    return checkout.snakemake(
        *(*targets, "--configfile", "config/demo.yaml", "changes.yaml", "--cores", "2"),
        succeeds=succeeds,
        environment={"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": str(int(offline))},
    )


def rows(checkout: Checkout, name: str) -> list[dict[str, str]]:
    with (checkout.folder / "results" / name).open(newline="") as file:
        return list(csv.DictReader(file))


def drawn_steps(checkout: Checkout, figure: str) -> list[int]:
    return sorted({int(row["step"]) for row in rows(checkout, f"figures/{figure}.csv")})


def caption(checkout: Checkout, figure: str) -> str:
    """What the figure's rule logs as its caption."""
    return (checkout.folder / f"results/logs/figures/{figure}.log").read_text()


def test_three_wrong_revisions_get_three_verdicts_and_are_left_out_and_named(checkout, hub):
    proxy = Proxy(hub.endpoint)
    with proxied(proxy) as endpoint:
        run(checkout, endpoint, "results/checkpoints/tiny.csv")
    assert not [name for name in proxy.asked if name.endswith((".bin", ".safetensors"))]
    table = rows(checkout, "checkpoints/tiny.csv")
    columns = ["step", "tokens", "revision", "commit", "files", "bytes", "hash", "verdict"]
    assert list(table[0]) == columns
    verdicts = {int(row["step"]): row["verdict"] for row in table}
    assert verdicts == {step: WRONG.get(step, "ok") for step in STEPS}
    good = next(row for row in table if row["step"] == "2")
    weights = hub.sources / "step2" / "pytorch_model.bin"
    assert good["tokens"] == "200"
    assert good["files"] == "pytorch_model.bin"
    assert int(good["bytes"]) == weights.stat().st_size

    steps = [0, 2, *WRONG, 256]
    said = run(checkout, hub.endpoint, "figure_2", "figure_4", "loss_by_step", steps=steps)
    assert "3 of 6 revisions are left out" in said
    for figure in ("figure_2", "figure_4", "loss_by_step"):
        assert drawn_steps(checkout, figure) == [0, 2, 256]
        for step, verdict in WRONG.items():
            assert verdict in caption(checkout, figure)
            assert str(step) in caption(checkout, figure)
    fetched = {log.stem for log in (checkout.folder / "results/logs/checkpoints/tiny").iterdir()}
    assert fetched == {"step0", "step2", "step256"}


def test_a_figure_of_last_checkpoints_takes_the_last_good_one_and_says_so(checkout, hub):
    run(checkout, hub.endpoint, "figure_1", steps=[1, 2, 4], bad_checkpoints="flag")
    assert {row["revision"] for row in rows(checkout, "figures/figure_1.csv")} == {"step2"}
    said = "Tiny is drawn at step2: its last, step4, is left out (same weights as step 2)."
    assert said in caption(checkout, "figure_1")


def test_a_checkpoint_that_computes_nothing_is_broken_and_does_not_stop_the_run(checkout, hub):
    """Step 8 gives NaN, also in a dump; that no tokens are known of any step changes nothing."""
    folder = hub.sources / "step8"
    weights = torch.load(folder / "pytorch_model.bin")
    weights["gpt_neox.final_layer_norm.weight"] *= float("nan")
    torch.save(weights, folder / "pytorch_model.bin")
    hub.repository.commit("step8", folder, large=LARGE)
    run(checkout, hub.endpoint, "figure_2", steps=[0, 8], tokens_per_step=None, embeddings={})
    assert drawn_steps(checkout, "figure_2") == [0]
    assert "step 8 (broken: perplexity is infinite)" in caption(checkout, "figure_2")


def test_flagged_revisions_are_measured_and_drawn_hollow(checkout, hub):
    run(checkout, hub.endpoint, "figure_4", steps=[0, 2, *WRONG], bad_checkpoints="flag")
    # What is missing or has no weights cannot be drawn in any way.
    assert drawn_steps(checkout, "figure_4") == [0, 2, 4]
    shown = {int(row["step"]): row["shown"] for row in rows(checkout, "tables/verdicts/tiny.csv")}
    assert shown == {0: "yes", 2: "yes", 4: "hollow", 16: "no", 64: "no"}
    assert "Hollow" in caption(checkout, "figure_4")


def test_a_bad_revision_fails_the_run_before_any_download_if_that_is_asked_for(checkout, hub):
    said = run(checkout, hub.endpoint, "figure_4", succeeds=False, bad_checkpoints="fail")
    for step, verdict in WRONG.items():
        assert f"`step{step}` ({verdict})" in said
    assert "`bad_checkpoints`" in said
    assert "Traceback" not in said
    assert not list((checkout.folder / "resources").glob("*checkpoints*"))


def test_downloads_are_removed_once_they_are_measured_unless_they_are_kept(checkout, hub):
    table = "results/tables/verdicts/tiny.csv"  # with a loss
    run(checkout, hub.endpoint, table, steps=[0])
    assert not list((checkout.folder / "resources").rglob("*.bin"))
    run(checkout, hub.endpoint, table, steps=[2], keep_checkpoints=True)
    kept = {path.parent.name for path in (checkout.folder / "resources").rglob("*.bin")}
    assert kept == {"step2"}


def test_a_lock_gives_the_same_bytes_when_the_branch_has_moved(checkout, hub):
    target, table = "results/tables/verdicts/tiny.csv", "results/checkpoints/tiny.csv"
    run(checkout, hub.endpoint, target, steps=[1])
    before = (checkout.folder / target).read_bytes()
    lock = checkout.folder / "config/locks/tiny.yaml"
    pinned = yaml.safe_load(lock.read_text())["revisions"]["step1"]["commit"]
    hub.repository.commit("step1", hub.sources / "step256", large=LARGE)

    shutil.rmtree(checkout.folder / "results")
    run(checkout, hub.endpoint, target, table, steps=[1])
    assert (checkout.folder / target).read_bytes() == before
    assert rows(checkout, "checkpoints/tiny.csv")[0]["commit"] == pinned

    lock.unlink()
    shutil.rmtree(checkout.folder / "results")
    run(checkout, hub.endpoint, target, table, steps=[1])
    assert (checkout.folder / target).read_bytes() != before
    assert rows(checkout, "checkpoints/tiny.csv")[0]["commit"] != pinned


def test_a_pinned_commit_that_is_gone_is_said(checkout, hub):
    run(checkout, hub.endpoint, "results/checkpoints/tiny.csv", steps=[0, 1])
    lock = checkout.folder / "config/locks/tiny.yaml"
    pinned = yaml.safe_load(lock.read_text())["revisions"]["step1"]["commit"]
    shutil.rmtree(checkout.folder / "results")
    with proxied(Proxy(hub.endpoint, gone=pinned)) as endpoint:
        said = run(checkout, endpoint, "figure_4", succeeds=False, steps=[0, 1])
    assert "`step1`" in said
    assert "no longer has" in said
    assert "config/locks/tiny.yaml" in said
    assert "Traceback" not in said


def test_steps_by_rule_are_those_nearest_to_what_the_hub_offers_and_stay_locked(checkout, hub):
    table = "results/checkpoints/tiny.csv"
    run(checkout, hub.endpoint, table, steps={"log": 4})
    chosen = [int(row["step"]) for row in rows(checkout, "checkpoints/tiny.csv")]
    assert chosen == [0, 1, 8, 256]
    hub.repository.commit("step512", hub.sources / "step256", large=LARGE)
    proxy = Proxy(hub.endpoint)
    with proxied(proxy) as endpoint:
        again = ("--forcerun", "check_checkpoints")
        said = run(checkout, endpoint, table, *again, steps={"log": 4})
    assert "Listing the revisions of tiny" in said
    assert [int(row["step"]) for row in rows(checkout, "checkpoints/tiny.csv")] == chosen
    assert "refs" not in proxy.asked

    run(checkout, hub.endpoint, table, steps={"linear": 3})
    assert [int(row["step"]) for row in rows(checkout, "checkpoints/tiny.csv")] == [0, 256, 512]


def test_the_configuration_may_choose_other_steps(checkout, hub):
    target = "results/checkpoints/tiny.csv"
    run(checkout, hub.endpoint, target, training_steps={"tiny": [0, 256]})
    assert [row["step"] for row in rows(checkout, "checkpoints/tiny.csv")] == ["0", "256"]


def sharded(folder: Path, seed: int) -> Path:
    save_model(folder, seed=seed, form="shards", hidden_size=32)
    save_tokenizer(folder)
    return folder


def test_shards_of_another_step_or_of_none_are_mixed_shards(checkout, tmp_path, hub_program):
    root = tmp_path / "shards"
    repository = HubRepository(root, "org/model")
    folders = {step: sharded(tmp_path / f"{step}", step) for step in (1, 2, 4, 8)}
    first, *_, last = sorted(folders[8].glob("*.safetensors"))
    shutil.copy(first, folders[2] / first.name)
    (folders[4] / last.name).unlink()
    for step, folder in [*folders.items(), ("main", folders[8])]:
        large = tuple(path.name for path in folder.glob("*.safetensors"))
        branch = step if step == "main" else f"step{step}"
        repository.commit(branch, folder, large=large)
    with served(root, hub_program) as endpoint:
        run(checkout, endpoint, "results/checkpoints/tiny.csv", steps=[1, 2, 4, 8])
    found = {row["step"]: row["verdict"] for row in rows(checkout, "checkpoints/tiny.csv")}
    assert found == {"1": "ok", "2": "mixed shards", "4": "mixed shards", "8": "ok"}


def test_nothing_unchecked_is_fetched_when_the_lock_is_gone_and_the_hub_is_down(checkout, hub):
    run(checkout, hub.endpoint, "figure_2", steps=[0, 1])
    (checkout.folder / "config/locks/tiny.yaml").unlink()
    said = run(checkout, "http://127.0.0.1:9", "figure_2", steps=[0, 1], succeeds=False)
    assert "http://127.0.0.1:9 cannot be reached" in said
    assert "cannot be fetched" in said
    assert "run `snakemake resolve`" in said
    assert "Traceback" not in said


def test_a_run_without_a_network_takes_all_from_the_hugging_face_cache(checkout, hub):
    """As on a cluster whose nodes have no internet: the cache is filled beforehand."""
    download = (
        "from huggingface_hub import snapshot_download\n"
        "for step in (0, 1): snapshot_download('org/model', revision=f'step{step}')"
    )
    online = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(checkout.folder / "hf")}
    subprocess.run([sys.executable, "-c", download], env={**os.environ, **online}, check=True)
    nowhere = "http://127.0.0.1:9"
    run(checkout, nowhere, "figure_2", steps=[0, 1], offline=True)
    assert drawn_steps(checkout, "figure_2") == [0, 1]
    said = run(checkout, nowhere, "figure_2", steps=[0, 2], succeeds=False, offline=True)
    assert "HF_HUB_OFFLINE" in said
    assert "Traceback" not in said
