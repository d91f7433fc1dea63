"""Train a checkpoint further on a task and save it at log-spaced steps, like Hub revisions."""

import json
import logging
import shutil
from pathlib import Path

import torch
import transformers

from shape_of_learning.checkpoints.record import refuse_changed
from shape_of_learning.checkpoints.shapes import list_tokenizer_paths
from shape_of_learning.embeddings.model import load_model
from shape_of_learning.embeddings.tokenizers import load_tokenizer
from shape_of_learning.errors import InputError
from shape_of_learning.job import run_job
from shape_of_learning.tasks.examples import read_task
from shape_of_learning.training.finetune import Start, finetune
from shape_of_learning.training.job import FinetuningJob
from shape_of_learning.training.train import write_training_table


def main(
    job: FinetuningJob, checkpoint: Path, tokenizer: Path, task: Path, steps: Path, table: Path
) -> None:
    """Train the model in `checkpoint`; write a folder per saved step into `steps`, and the scores into `table`."""
    examples = read_task(task)
    role = job.origin.shape.role
    if job.origin.is_download:
        refuse_changed(checkpoint)
    cpu = torch.device("cpu")
    base, head = load_model(checkpoint, role=role, precision="float32", device=cpu)
    network = base if head is None else head.model
    if not hasattr(transformers, type(network).__name__):
        raise InputError(
            f"model `{job.model}` begins with the encoder of an encoder-decoder, which cannot be saved alone; in "
            "`finetuning.of`, name a model that is an encoder or a decoder"
        )

    def copy_tokenizer(folder: Path) -> None:
        for name in list_tokenizer_paths({file.name for file in tokenizer.iterdir()}, ""):
            shutil.copyfile(tokenizer / name, folder / name)

    description = json.loads(task.with_suffix(".json").read_text(encoding="utf-8"))
    finetune(
        Start(network, load_tokenizer(tokenizer), role, copy_tokenizer),
        examples,
        job.recipe,
        model=job.model,
        destination=steps,
        provenance={
            "origin": {"model": job.origin.model, "revision": job.origin.revision},
            "task": {"name": task.stem, **description},
        },
    )
    write_training_table(steps, table)


if __name__ == "__main__":
    with run_job(snakemake.log[0], console=logging.INFO):
        main(
            snakemake.params.job,
            checkpoint=Path(snakemake.resources.checkpoint),
            tokenizer=Path(snakemake.resources.tokenizer),
            task=Path(snakemake.input.task),
            steps=Path(snakemake.output.steps),
            table=Path(snakemake.output.table),
        )
