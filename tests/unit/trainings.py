"""What tests of trainings share: a text, a recipe, and a script that is run in another process."""

import json
import os
import subprocess
import sys
from pathlib import Path

from shape_of_learning.refusals import validated
from shape_of_learning.training.recipe import PretrainingRecipe

WORKFLOW = Path(__file__).parents[2] / "workflow"
# Regular enough that two dozen small steps learn something of it.
TEXT = "".join(
    f"The {animal} saw the {place}. It was {mood}.\n"
    for animal in ("cat", "dog", "horse", "bird", "fish", "mouse")
    for place in ("river", "forest", "house", "mountain", "city")
    for mood in ("glad", "tired", "hungry", "afraid")
)
RECIPE = {
    **{"layers": 2, "hidden_size": 32, "attention_heads": 2, "vocabulary": 300, "context": 16},
    **{"batch_size": 8, "learning_rate": 0.01, "warmup_steps": 2, "last_step": 24, "seed": 7},
    "threads": 1,
}


def recipe(architecture: str, **changes: object) -> PretrainingRecipe:
    written = {"architecture": architecture, **RECIPE, **changes}
    return validated(PretrainingRecipe, written, "recipe")


def record(folder: Path) -> dict:
    return json.loads((folder / "checkpoint.json").read_text())


def in_another_process(script: str, arguments: str) -> None:
    """Call `main` of a script where hashes and the number of threads are others."""
    folders = f"{WORKFLOW}{os.pathsep}{WORKFLOW / 'scripts'}"
    variables = {"PYTHONPATH": folders, "OMP_NUM_THREADS": "2", "PYTHONHASHSEED": "1"}
    program = f"from pathlib import Path, PosixPath; import {script}; {script}.main({arguments})"
    subprocess.run(
        [sys.executable, "-c", program], env=os.environ | variables, capture_output=True, check=True
    )
