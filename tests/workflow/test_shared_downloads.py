"""Two runs at the same time, in different folders, share one folder of downloads."""

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tiny_runs
from checkouts import Checkout, check_out
from exports import make_pages, write_export
from hub_fetching import save_model
from hub_server import HubRepository, Proxy, serve_hub, serve_proxy
from tiny_models import save_tokenizer

WEIGHTS = "model.safetensors"
STEPS = (0, 8)
TARGETS = [f"results/losses/mine/step{step}.csv" for step in STEPS]


@pytest.fixture
def hub(tmp_path: Path, hub_program: Path) -> Iterator[Proxy]:
    """A model with a few steps."""
    root = tmp_path / "hub"
    repository = HubRepository(root, "org/model")
    for step in STEPS:
        folder = save_model(tmp_path / f"step{step}", seed=step, form="safetensors", hidden_size=32)
        (folder / WEIGHTS).chmod(0o644)
        save_tokenizer(folder)
        repository.commit(f"step{step}", folder, large=(WEIGHTS,))
    repository.commit("main", folder, large=(WEIGHTS,))
    with serve_hub(root, hub_program) as endpoint:
        yield Proxy(endpoint)


def set_up_checkout(folder: Path, downloads: Path, export: Path) -> Checkout:
    """Set up a checkout whose `resources` is a link, and which keeps its downloads."""
    checkout = check_out(folder)
    settings = tiny_runs.set_up(checkout)
    training = {"revision": "step{step}", "steps": list(STEPS)}
    checkout.write(
        "config/models/mine.yaml", {"mine": {"repository": "org/model", "training": training}}
    )
    digest = hashlib.sha256(export.read_bytes()).hexdigest()
    source = {"urls": [str(export)], "format": "mediawiki", "sha256": digest}
    changes = {
        **{"models": ["mine"], "keep_checkpoints": True, "embeddings": {"dump": False}},
        "corpus": {"source": "export", "sources": {"export": source}},
    }
    checkout.write("mine.yaml", {**settings, **changes})
    (folder / "resources").symlink_to(downloads)
    return checkout


def start(checkout: Checkout, endpoint: str) -> subprocess.Popen:
    command = ("snakemake", *TARGETS, "--configfile", "mine.yaml", "--cores", "1")
    settings = {"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"}
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=checkout.folder,
        env=checkout.environment(**settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_two_runs_that_share_downloads_both_finish(tmp_path, hub):
    downloads = tmp_path / "shared"
    downloads.mkdir()
    write_export(tmp_path / "export.xml", make_pages(40))
    first, second = (
        set_up_checkout(tmp_path / name, downloads, tmp_path / "export.xml") for name in "ab"
    )
    with serve_proxy(hub) as endpoint:
        runs = [start(first, endpoint)]
        # The second run starts when the first has a file that both need.
        while runs[0].poll() is None and not list(
            downloads.glob(f"checkpoints/mine/step*/{WEIGHTS}")
        ):
            time.sleep(0.1)
        runs.append(start(second, endpoint))
        outputs = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], outputs
    tables = [
        [(run_folder.folder / table).read_bytes() for table in TARGETS]
        for run_folder in (first, second)
    ]
    assert tables[0] == tables[1]
    assert hub.requests.count(WEIGHTS) == len(STEPS), "each is downloaded once"
    # A run that has ended removes no file that the other run needs.
    for run_folder in (first, second):
        assert run_folder.plan_jobs(*TARGETS, "--configfile", "mine.yaml") == {}
