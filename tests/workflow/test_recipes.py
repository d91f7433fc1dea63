"""The recipes of docs/how_to: write their files and run their commands, on a tiny model and a small text."""

import csv
import os
import re
import shutil
import subprocess
from pathlib import Path
from pydoc_data.topics import topics

import pytest
import yaml

from checkouts import REPOSITORY, Checkout, check_out, make_environment
from test_own_training import RUN, train
from tiny_models import save_tiny_model

# A block is a file with its name, or commands.
BLOCK = re.compile(
    r"^```(?:\{code-block\} \w+\n:caption: (\S+)\n\n|sh\n)(.*?)^```$", re.MULTILINE | re.DOTALL
)
# The files that a recipe makes in results/, by its page. Other pages are run elsewhere: `paper` in
# tests/nightly/test_quick.py with a Hub on this machine, `cluster` in tests/slurm, `environments` by `make test-conda`,
# and `other_executors` nowhere.
RECIPE_OUTPUTS = {
    "own_model": "my-model/figures/dimension_by_depth.png my-model/figures/massive_tokens.pdf my-model/explorer.html",
    "own_run": "my-run/figures/heat_map.png my-run/figures/figure_2.png",
    "text": "one-key/explorer.html my-text/explorer.html",
    "measure": "my-model/tables/estimates.csv",
    "figure": "figures/my_mle_by_layer.png claims/mine.md",
    "rerun": "my-model/figures/figure_1.pdf",
    "share": "my-model/ro-crate-metadata.json ../report.zip",
    "robustness": "my-model/claims/choices.md my-model/figures/controls_by_layer.png",
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment like that of `make demo`, with the packages of the tests."""
    folder = tmp_path_factory.mktemp("environment") / ".venv"
    make_environment(folder)
    for name in ("pip", "snakemake"):
        program = folder / f"bin/{name}"
        program.write_text(f'#!/bin/sh\nexec {folder}/bin/python -m {name} "$@"\n')
        program.chmod(0o755)
    (folder / "workflow").touch()  # as if just installed
    return folder


def follow(page: str, folder: Path, environment: Path) -> None:
    """Write the files and run the commands of a page."""
    blocks = BLOCK.findall((REPOSITORY / f"docs/how_to/{page}.md").read_text(encoding="utf-8"))
    assert blocks
    variables = Checkout(folder).environment(PIP_NO_INDEX="1", PIP_NO_BUILD_ISOLATION="0")
    variables["PATH"] = f"{environment / 'bin'}{os.pathsep}{variables['PATH']}"
    for name, content in blocks:
        if name:
            assert page != "figure" or not (folder / name).exists()  # a paper changes no other file
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        else:
            command = ["bash", "-euc", f"exec 2>&1\n{content}"]
            process = subprocess.run(
                command, cwd=folder, env=variables, stdout=subprocess.PIPE, text=True
            )
            assert process.returncode == 0, f"{content}\n{process.stdout[-5000:]}"


@pytest.fixture(scope="module")
def measured_clone(tmp_path_factory: pytest.TempPathFactory, environment: Path) -> Path:
    """A clone with tiny defaults, in which the first recipe has measured a user's model."""
    clone = check_out(tmp_path_factory.mktemp("recipes") / "clone")
    for name in ("Snakefile", "Makefile", "profiles", "pyproject.toml"):
        shutil.copy2(REPOSITORY / name, clone.folder / name, follow_symlinks=False)
    (clone.folder / ".venv").symlink_to(environment)
    defaults = yaml.safe_load((clone.folder / "config/config.yaml").read_text())
    # The pages need one paper; the tests of the demo draw the figures of four papers.
    defaults["papers"] = ["shape_of_learning"]
    defaults["corpus"]["source"] = "python_topics"
    defaults["sampling"] |= {"windows": 32, "window_characters": 100}
    defaults["measurement"] |= {"batch_vectors": 1000, "estimators": ["anisotropy", "two_nn"]}
    clone.write("config/config.yaml", defaults)
    save_tiny_model(clone.folder / "my-model", "gpt_neox", head=True)
    (clone.folder / "my-text.txt").write_text("\n\n".join(topics.values()))
    follow("own_model", clone.folder, environment)
    return clone.folder


@pytest.mark.parametrize("page", RECIPE_OUTPUTS)
def test_a_recipe_makes_its_files(page, measured_clone, environment, tmp_path):
    clone = shutil.copytree(measured_clone, tmp_path / "clone", symlinks=True)
    if page == "own_run":
        train(clone)
        shutil.move(clone / RUN, clone / "run")
    if page != "own_model":
        follow(page, clone, environment)
    files = [clone / "results" / name for name in RECIPE_OUTPUTS[page].split()]
    assert [file for file in files if not file.exists()] == []
    if page == "figure":
        (verdict,) = csv.DictReader((clone / "results/claims/mine.csv").open())
        # The model of the tests has random weights.
        assert (verdict["claim"], verdict["verdict"]) == ("mle_is_low", "outside the claim")
        assert "`my-model` (loss" in verdict["because"]
    assert page != "measure" or "spectral_entropy" in files[0].read_text()


def test_another_workflow_can_use_the_rules(environment, tmp_path):
    check_out(tmp_path / "shape-of-learning")
    save_tiny_model(tmp_path / "my-model", "gpt_neox", head=True)
    follow("module", tmp_path, environment)
