"""Train a small model on the cleaned text and save it at log-spaced steps, like Hub revisions."""

import logging
from pathlib import Path

import transformers

from shape_of_learning.corpus.windows import read_text
from shape_of_learning.job import run_job
from shape_of_learning.training.job import PretrainingJob
from shape_of_learning.training.pretrain import pretrain
from shape_of_learning.training.train import write_training_table


def main(job: PretrainingJob, text: Path, steps: Path, table: Path) -> None:
    """Train the model; write a folder per saved step into `steps`, and the losses into `table`."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    pretrain(read_text(text), job.recipe, model=job.model, destination=steps)
    write_training_table(steps, table)


if __name__ == "__main__":
    with run_job(snakemake.log[0], console=logging.INFO):
        main(
            snakemake.params.job,
            text=Path(snakemake.input.text),
            steps=Path(snakemake.output.steps),
            table=Path(snakemake.output.table),
        )
