"""Running fetch_checkpoint.py against a Hub on loopback, and what it is to fetch there."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import transformers

from hub_server import HubRepository, served
from tiny_models import save_tokenizer

SCRIPT = Path(__file__).parents[1] / "workflow" / "scripts" / "fetch_checkpoint.py"
LAYERS, WIDTH = 2, 16
LARGE_WIDTH = 256
WEIGHTS = "pytorch_model.bin"
TOKENIZER = ["tokenizer.json", "tokenizer_config.json"]
FILES = ["config.json", WEIGHTS, *TOKENIZER]  # of `org/whole`
FIRST_PAUSE = 0.01  # seconds; nobody is spared by waiting longer here


@dataclass(frozen=True)
class Hub:
    """A running Hub, what was put there, and the commit of each revision."""

    endpoint: str
    sources: Path
    commits: dict[str, str]


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
    commits = {
        f"org/{name}": HubRepository(root, f"org/{name}").commit(
            "main", sources / name, large=files
        )
        for name, files in stored.items()
    }
    with served(root, program) as endpoint:
        yield Hub(endpoint, sources, commits)


def size(hub: Hub) -> int:
    return (hub.sources / "whole" / WEIGHTS).stat().st_size


def shards(hub: Hub) -> list[str]:
    return sorted(path.name for path in (hub.sources / "large").glob("*.safetensors"))


def gathering(output: Path) -> Path:
    return output.with_name(f".{output.name}.download")


def command(output: Path, repository: str, revision: str, **more: object) -> list[str]:
    arguments = {
        "model": "tiny",
        "repository": repository,
        "revision": revision,
        "layers": LAYERS,
        "hidden-size": WIDTH,
        "role": "decoder",
        "first-pause": FIRST_PAUSE,
        "output": output,
        "log": output.parent / "log",
    } | {name.replace("_", "-"): value for name, value in more.items()}
    return [sys.executable, str(SCRIPT), *(f"--{k}={v}" for k, v in arguments.items())]


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
    endpoint: str,
    output: Path,
    repository: str,
    revision: str,
    settings: dict[str, str] | None = None,
    **more: object,
) -> str:
    """Fetch, and return the log."""
    done = subprocess.run(
        command(output, repository, revision, **more),
        env=environment(endpoint, output.parent, **(settings or {})),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    log = output.parent / "log"
    said = log.read_text()
    log.unlink()
    return said


def refusal(
    endpoint: str,
    output: Path,
    repository: str,
    revision: str,
    settings: dict[str, str] | None = None,
    **more: object,
) -> str:
    """The one line that a refused fetch prints."""
    done = subprocess.run(
        command(output, repository, revision, **more),
        env=environment(endpoint, output.parent, **(settings or {})),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert not output.exists(), "something is under the final name"
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("ERROR: model `tiny`: ")
    return lines[0]


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
