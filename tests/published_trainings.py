"""Repositories of published trainings on a Hub on loopback, with real names and made-up files."""

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hub_server import GIT

# Steps of the revisions of every Pythia.
PYTHIA = [0, *(2**i for i in range(10)), *range(1000, 144_000, 1000)]
# EleutherAI/pythia#205: steps with the weights of main, and steps with those of a second file.
ROUND = [70_000, 80_000, 90_000, 100_000, 103_000, 110_000, 120_000, 130_000, 140_000]
OF_MAIN = {*PYTHIA[:11], *range(1000, 54_000, 1000), 55_000, 60_000, 65_000, *ROUND}
SECOND = {54_000, *range(56_000, 60_000, 1000), *range(61_000, 65_000, 1000), 143_000}


def make_pointer(content: str) -> str:
    """Return the text that git stores for a large file."""
    digest = hashlib.sha256(content.encode()).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n"


def publish(
    root: Path, name: str, branches: Mapping[str, Mapping[str, str]], tags: bool = False
) -> Path:
    """Make a repository whose branches, or tags besides `main`, hold these files: path -> content.

    Files of weights are stored as large files.
    """
    folder = root / "models" / name
    folder.mkdir(parents=True)
    subprocess.run([*GIT, "init", "--quiet", "--initial-branch=main"], cwd=folder, check=True)
    stream = []
    for branch, files in branches.items():
        kind = "tags" if tags and branch != "main" else "heads"
        message = f"commit refs/{kind}/{branch}\ncommitter t <t@l> 1 +0000\ndata {len(branch)}\n{branch}\ndeleteall\n"
        for path, content in files.items():
            is_large = path.endswith((".bin", ".safetensors"))
            blob = make_pointer(content) if is_large else content
            message += f"M 644 inline {path}\ndata {len(blob.encode())}\n{blob}\n"
        stream.append(message)
    subprocess.run(
        [*GIT, "fast-import", "--quiet"], cwd=folder, check=True, input="\n".join(stream).encode()
    )
    return folder


def make_one_file(weights: str) -> dict[str, str]:
    return {"config.json": "{}", "model.safetensors": weights}


def make_shards(*weights: str) -> dict[str, str]:
    return {"config.json": "{}"} | {
        f"pytorch_model-{number:05}-of-{len(weights):05}.bin": content
        for number, content in enumerate(weights, 1)
    }


def make_pythia_2_8b() -> dict[str, dict[str, str]]:
    """Return the branches that EleutherAI/pythia#205 describes."""

    def choose_weights(step: int) -> str:
        return "main" if step in OF_MAIN else "second" if step in SECOND else f"step {step}"

    steps = {f"step{step}": make_one_file(choose_weights(step)) for step in PYTHIA}
    return {"main": make_one_file("main"), **steps}


def make_pythia_12b() -> dict[str, dict[str, str]]:
    """Return the branches that EleutherAI/pythia#206 describes."""

    def choose_weights(step: int) -> dict[str, str]:
        first = "first" if step in (50_000, 58_000, 143_000) else f"first {step}"
        return make_shards(first, f"second {step}", f"third {step}")

    return {"main": choose_weights(143_000)} | {
        f"step{step}": choose_weights(step) for step in PYTHIA
    }
