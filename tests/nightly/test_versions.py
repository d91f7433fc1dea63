"""The oldest and the newest versions that the extra `models` takes give the numbers of the pinned ones.

Each is installed by uv into an environment of its own, whose cache pip's users share: gigabytes, where PyTorch comes
with CUDA. `measure_in_versions.py` runs there.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import transformers as hf

import tiny_runs
from checkouts import REPOSITORY, Checkout
from tiny_models import USUAL, save_tokenizer

RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
# Relative tolerances of float32 forward passes by another build, and of a training by it.
TABLES = {"python.csv": 1e-4, "command.csv": 1e-4, "callback.csv": 1e-3}
KEYS = ["step", "layer", "estimator"]


def measure(python: Path, model: Path, output: Path) -> str:
    """Run the script and return its first line: the versions."""
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY / "workflow"), "HF_HUB_OFFLINE": "1"}
    process = subprocess.run(
        [python, REPOSITORY / "tests/measure_in_versions.py", model, output],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.returncode == 0, process.stdout[-5000:]
    return process.stdout.splitlines()[0]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("versions") / "model"
    hf.set_seed(0)
    config = hf.GPTNeoXConfig(**{**USUAL, "max_position_embeddings": 512})
    hf.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    save_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def pinned_tables(model: Path) -> Path:
    output = model.parent / "pinned"
    measure(Path(sys.executable), model, output)
    return output


def install(extra: str, resolution: str, folder: Path) -> Path:
    """Install the requirements of an extra of ours, without our package; return the Python that has them."""
    uv, python = Path(sys.executable).with_name("uv"), folder / "environment/bin/python"
    requirements = folder / "requirements.txt"
    find_links = os.environ.get("PIP_FIND_LINKS")
    options = ["--find-links", find_links] if find_links else []
    project = [REPOSITORY / "pyproject.toml", "--extra", extra, "--output-file", requirements]
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, python.parents[1]],
        [uv, "pip", "compile", "--quiet", "--resolution", resolution, *project, *options],
        [uv, "pip", "install", "--quiet", "--python", python, "-r", requirements, *options],
    ):
        subprocess.run(command, check=True, cwd=folder)
    return python


@pytest.mark.parametrize("end", RESOLUTIONS)
def test_oldest_and_newest_versions_give_the_numbers_of_the_pinned_ones(
    end, model, pinned_tables, tmp_path
):
    output = tmp_path / "tables"
    print(measure(install("models", RESOLUTIONS[end], tmp_path), model, output))
    for name, tolerance in TABLES.items():
        pinned_table, table = (pd.read_csv(folder / name) for folder in (pinned_tables, output))
        pd.testing.assert_frame_equal(pinned_table[KEYS], table[KEYS], check_dtype=False)
        np.testing.assert_allclose(pinned_table["value"], table["value"], rtol=tolerance, atol=1e-5)


def test_the_extra_workflow_is_enough_for_a_figure(checkout, tmp_path):
    alone = Checkout(checkout.folder, install("workflow", RESOLUTIONS["newest"], tmp_path))
    tiny_runs.set_up(alone)
    alone.snakemake("figure_1", "--configfile", "tiny.yaml", "--cores", "2", "--quiet", "rules")
    assert (alone.folder / "results/figures/figure_1.png").exists()
