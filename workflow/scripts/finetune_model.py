"""Train a checkpoint further on a task and save it at log-spaced steps, like Hub revisions."""

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import torch
import transformers

from shape_of_learning.checkpoints.record import refuse_changed
from shape_of_learning.checkpoints.shapes import list_tokenizer_paths
from shape_of_learning.embeddings.model import load_model
from shape_of_learning.embeddings.tokenizers import load_tokenizer
from shape_of_learning.errors import InputError
from shape_of_learning.job import read_parameters, run_job
from shape_of_learning.tasks.examples import read_task
from shape_of_learning.training.finetune import Start, finetune
from shape_of_learning.training.recipe import FinetuningRecipe
from shape_of_learning.training.train import write_training_table


def main(  # noqa: PLR0913 (what its rule knows)
    model: str,
    origin: dict[str, str],
    checkpoint: Path,
    is_download: bool,
    tokenizer: str,
    role: str,
    task: Path,
    recipe: dict[str, Any],
    output: tuple[Path, Path],
) -> None:
    """Train the model in `checkpoint`; write a folder per saved step, and a table of all."""
    examples, words = read_task(task), Path(tokenizer) if tokenizer else checkpoint
    if is_download:
        refuse_changed(checkpoint)
    cpu = torch.device("cpu")
    base, head = load_model(checkpoint, role=role, precision="float32", device=cpu)
    network = base if head is None else head.model
    if not hasattr(transformers, type(network).__name__):
        raise InputError(
            f"model `{model}` begins with the encoder of an encoder-decoder, which cannot be saved alone; name in "
            "`finetuning.of` a model that is an encoder or a decoder"
        )

    def copy_tokenizer(folder: Path) -> None:
        for name in list_tokenizer_paths({file.name for file in words.iterdir()}, ""):
            shutil.copyfile(words / name, folder / name)

    described = json.loads(task.with_suffix(".json").read_text(encoding="utf-8"))
    steps, table = output
    finetune(
        Start(network, load_tokenizer(words), role, copy_tokenizer),
        examples,
        FinetuningRecipe(**recipe),
        model=model,
        destination=steps,
        provenance={"origin": origin, "task": {"name": task.stem, **described}},
    )
    write_training_table(steps, table)


if __name__ == "__main__":
    with run_job(snakemake.log[0], console=logging.INFO):
        main(
            snakemake.wildcards.model,
            checkpoint=Path(snakemake.resources.checkpoint),
            task=Path(snakemake.input.task),
            output=(Path(snakemake.output.steps), Path(snakemake.output.table)),
            **read_parameters(snakemake),
        )
