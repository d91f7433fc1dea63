"""Train a small model on the cleaned text and save it at log-spaced steps, like Hub revisions."""

import logging
from pathlib import Path
from typing import Any

import transformers

from shape_of_learning.corpus.windows import read_text
from shape_of_learning.job import run_job
from shape_of_learning.training.pretrain import pretrain
from shape_of_learning.training.recipe import PretrainingRecipe
from shape_of_learning.training.train import write_training_table
from shape_of_learning.validation import validate_yaml


def main(model: str, text: Path, recipe: dict[str, Any], steps: Path, table: Path) -> None:
    """Train `model`; write a folder per saved step into `steps`, and what is known of them into `table`."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    checked = validate_yaml(PretrainingRecipe, recipe, f"model `{model}`")
    pretrain(read_text(text), checked, model=model, destination=steps)
    write_training_table(steps, table)


if __name__ == "__main__":
    with run_job(snakemake.log[0], console=logging.INFO):
        main(
            snakemake.wildcards.model,
            Path(snakemake.input.text),
            snakemake.params.recipe,
            Path(snakemake.output.steps),
            Path(snakemake.output.table),
        )
