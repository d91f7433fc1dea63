"""A text, a recipe and helpers for tests of trainings."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np

from shape_of_learning.training.recipe import PretrainingRecipe
from shape_of_learning.validation import validate_yaml

WORKFLOW = Path(__file__).parents[2] / "workflow"
# The text is so regular that a small model learns from it in two dozen steps.
TEXT = "".join(
    f"The {animal} saw the {place}. It was {mood}.\n"
    for animal in ("cat", "dog", "horse", "bird", "fish", "mouse")
    for place in ("river", "forest", "house", "mountain", "city")
    for mood in ("glad", "tired", "hungry", "afraid")
)
RECIPE = {
    "layers": 2,
    "hidden_size": 32,
    "attention_heads": 2,
    "vocabulary": 300,
    "context": 16,
    "batch_size": 8,
    "learning_rate": 0.01,
    "warmup_steps": 2,
    "last_step": 24,
    "seed": 7,
    "threads": 1,
}


def make_recipe(architecture: str, **changes: object) -> PretrainingRecipe:
    values = {"architecture": architecture, **RECIPE, **changes}
    return validate_yaml(PretrainingRecipe, values, "recipe")


def read_record(folder: Path) -> dict:
    return json.loads((folder / "checkpoint.json").read_text())


def run_in_another_process(script: str, job: object, **paths: Path) -> None:
    """Call `main` of a script in a process with other hashes and threads; the job is pickled, as by Snakemake."""
    folders = f"{WORKFLOW}{os.pathsep}{WORKFLOW / 'scripts'}"
    variables = {"PYTHONPATH": folders, "OMP_NUM_THREADS": "2", "PYTHONHASHSEED": "1"}
    arguments = f"pickle.loads({pickle.dumps(job)!r}), **{paths!r}"
    program = (
        f"import pickle; from pathlib import PosixPath; import {script}; {script}.main({arguments})"
    )
    subprocess.run(
        [sys.executable, "-c", program], env=os.environ | variables, capture_output=True, check=True
    )


def adam(start, gradients, rates, betas, decay=0.0) -> np.ndarray:
    """Return the parameters after updates of Adam and AdamW.

    Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2.
    """
    parameters, mean, square = np.array(start, float), 0.0, 0.0
    for update, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        mean = betas[0] * mean + (1 - betas[0]) * gradient
        square = betas[1] * square + (1 - betas[1]) * gradient**2
        deviation = np.sqrt(square / (1 - betas[1] ** update)) + 1e-8
        parameters -= rate * (decay * parameters + mean / (1 - betas[0] ** update) / deviation)
    return parameters
