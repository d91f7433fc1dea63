"""Running fetch_checkpoint.py against a Hub on loopback, and what it is to fetch there."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
import transformers

from hub_server import HubRepository, served
from shape_of_learning.checkpoints.checkpoint_files import tokenizer_paths
from shape_of_learning.checkpoints.lock import Lock, LockedRevision, write_lock
from shape_of_learning.checkpoints.weight_listing import WeightFile, WeightListing
from tiny_models import save_tokenizer

SCRIPT = Path(__file__).parents[1] / "workflow" / "scripts" / "fetch_checkpoint.py"
LAYERS, WIDTH = 2, 16
LARGE_WIDTH = 256
WEIGHTS = "pytorch_model.bin"
TOKENIZER = ["tokenizer.json", "tokenizer_config.json"]
FILES = ["config.json", WEIGHTS, *TOKENIZER]  # of `org/whole`
NAME = "step7"  # of the revision, in the lock
# Runs a script whose pauses, and its client's, are a hundredth: nobody is spared by waiting here.
HURRIED = """
import runpy, sys, time
sleep = time.sleep
time.sleep = lambda seconds: sleep(seconds / 100)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Hub:
    """A running Hub, what was put there, and the repositories and the commit of each revision."""

    endpoint: str
    sources: Path
    commits: dict[str, str]
    listed: dict[str, dict[str, WeightFile]] = field(default_factory=dict)

    def pinned(
        self, repository: str, revision: str, commit: str, subfolder: str = ""
    ) -> LockedRevision:
        """What a lock says of a revision that was resolved when the Hub was well."""
        weights = self._weights(commit, f"{subfolder}/" if subfolder else "")
        problem = "" if weights else "no weights"
        listed = WeightListing(commit, weights, problem=problem)
        files = self.listed.get(commit, {})
        folder = f"{subfolder}/" if subfolder else ""
        index = [f"{folder}{name}.index.json" for name in ("model.safetensors", WEIGHTS)]
        paths = [f"{folder}config.json", *index, *tokenizer_paths(files, subfolder)]
        small = {path: files[path].hash for path in paths if path in files}
        return LockedRevision(repository, revision, subfolder, listed, small)

    def _weights(self, commit: str, folder: str) -> dict[str, WeightFile]:
        if commit not in self.listed:  # it was there when the lock was written
            return {WEIGHTS: WeightFile(1, f"git:{commit}")}
        files = self.listed[commit]
        names = {path.removeprefix(folder) for path in files if path.startswith(folder)}
        for whole in ("model.safetensors", "pytorch_model.bin"):
            if whole in names:
                return {whole: files[folder + whole]}
            if f"{whole}.index.json" in names:
                shards = {name for name in names if "-of-0000" in name}
                return {name: files[folder + name] for name in sorted(shards)}
        return {}


def save_model(
    folder: Path, *, seed: int, form: str, hidden_size: int = WIDTH, shard_size: str = "15KB"
) -> Path:
    """Save a random model as `safetensors`, in `shards` of these, as `bin`, or `both` whole."""
    torch.manual_seed(seed)
    model = transformers.GPTNeoXForCausalLM(
        transformers.GPTNeoXConfig(
            vocab_size=300,
            hidden_size=hidden_size,
            num_hidden_layers=LAYERS,
            num_attention_heads=2,
            intermediate_size=2 * hidden_size,
        )
    )
    if form in ("safetensors", "both"):
        model.save_pretrained(folder)
    if form == "shards":
        model.save_pretrained(folder, max_shard_size=shard_size)
    if form in ("bin", "both"):
        model.config.save_pretrained(folder)
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


@contextmanager
def whole_and_large(root: Path, program: Path) -> Iterator[Hub]:
    """Serve a model in one file, `org/whole`, and one in shards, `org/large`, stored as large files."""
    sources = root / "sources"
    whole = save_model(sources / "whole", seed=1, form="bin")
    large = save_model(
        sources / "large", seed=2, form="shards", hidden_size=LARGE_WIDTH, shard_size="600KB"
    )
    for folder in (whole, large):
        save_tokenizer(folder)
    stored = {
        "whole": (WEIGHTS,),
        "large": tuple(path.name for path in large.glob("*.safetensors")),
    }
    commits, listed = {}, {}
    for name, files in stored.items():
        repository = HubRepository(root, f"org/{name}")
        commits[repository.name] = repository.commit("main", sources / name, large=files)
        listed |= repository.listed
    with served(root, program) as endpoint:
        yield Hub(endpoint, sources, commits, listed)


def size(hub: Hub) -> int:
    return (hub.sources / "whole" / WEIGHTS).stat().st_size


def shards(hub: Hub) -> list[str]:
    return sorted(path.name for path in (hub.sources / "large").glob("*.safetensors"))


def gathering(output: Path) -> Path:
    return output.with_name(f".{output.name}.download")


def command(
    hub: Hub,
    output: Path,
    repository: str,
    revision: str,
    *,
    commit: str = "",
    subfolder: str = "",
    tokenizer: LockedRevision | None = None,
    layers: int = LAYERS,
    hidden_size: int = WIDTH,
    **options: object,
) -> list[str]:
    """The command for a revision, which is pinned to where it is now or to another `commit`."""
    lock = output.with_name(f"{output.name}.lock.yaml")
    commit = commit or hub.commits.get(f"{repository}@{revision}") or hub.commits[repository]
    pinned = hub.pinned(repository, revision, commit, subfolder)
    write_lock(lock, Lock({NAME: "ok"}, revisions={NAME: pinned}, tokenizer=tokenizer))
    arguments = {
        "model": "tiny",
        "name": NAME,
        "lock": lock,
        "shape": json.dumps(
            {
                "role": "decoder",
                "layers": layers,
                "hidden_size": hidden_size,
                "last_hidden_size": hidden_size,
            }
        ),
        "output": output,
        "log": output.parent / "log",
    } | options
    given = (f"--{key}={value}" for key, value in arguments.items())
    return [sys.executable, "-c", HURRIED, str(SCRIPT), *given]


def environment(endpoint: str, folder: Path, **more: str) -> dict[str, str]:
    """No settings of the user's own; the Hugging Face cache is in `folder`."""
    own = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    settings = {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(folder / "hf"),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "NO_PROXY": "127.0.0.1",
        "PYTHONPATH": str(SCRIPT.parents[1]),
    }
    return own | settings | more


def fetch(
    hub: Hub,
    output: Path,
    repository: str,
    revision: str = "main",
    settings: dict[str, str] | None = None,
    **more: object,
) -> str:
    """Fetch, and return the log."""
    done = run(hub, output, repository, revision, settings, **more)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    log = output.parent / "log"
    said = log.read_text()
    log.unlink()
    return said


def refusal(
    hub: Hub,
    output: Path,
    repository: str,
    revision: str = "main",
    settings: dict[str, str] | None = None,
    **more: object,
) -> str:
    """The one line that a refused fetch prints."""
    done = run(hub, output, repository, revision, settings, **more)
    assert done.returncode == 1
    assert not output.exists(), "something is under the final name"
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("ERROR: model `tiny`: ")
    return lines[0]


def run(
    hub: Hub,
    output: Path,
    repository: str,
    revision: str,
    settings: dict[str, str] | None,
    *,
    endpoint: str = "",
    **more: object,
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(hub, output, repository, revision, **more),
        env=environment(endpoint or hub.endpoint, output.parent, **(settings or {})),
        capture_output=True,
        text=True,
    )
    output.with_name(f"{output.name}.lock.yaml").unlink()
    return done


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_same_files(fetched: Path, source: Path, expected: list[str]) -> None:
    assert names(fetched) == sorted([*expected, "checkpoint.json"])
    assert {n: (fetched / n).read_bytes() for n in expected} == {
        n: (source / n).read_bytes() for n in expected
    }


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own, of that size; skips the test where it cannot be mounted."""
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = subprocess.run(mounting, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
