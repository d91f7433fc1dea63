"""Train a checkpoint further on a task and save it at log-spaced steps, like Hub revisions."""

import argparse
import json
import logging
import shutil
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.checkpoint_files import tokenizer_paths
from shape_of_learning.checkpoints.checkpoint_record import RECORD, file_entry, refuse_changed
from shape_of_learning.finetuning.finetuning_recipe import FinetuningRecipe
from shape_of_learning.pretraining.steps import revision_of_step
from shape_of_learning.script_arguments.running import run
from shape_of_learning.script_arguments.sample import checkpoint_folder
from shape_of_learning.storage.files import atomic_write
from shape_of_learning.tasks.examples import read_task


def main(
    checkpoint: Path,
    receipt: Path | None,
    role: str,
    task: Path,
    steps: list[int],
    outputs: tuple[Path, Path],
    names: dict[str, Any],
    **recipe: int | float,
) -> None:
    """Train the model in `checkpoint`; write one folder per step, and a receipt of what is in them."""
    checked = FinetuningRecipe(**recipe)
    examples = read_task(task)
    if receipt is not None:
        refuse_changed(checkpoint, receipt)

    import torch
    import transformers

    from shape_of_learning.embeddings.loading import load_model
    from shape_of_learning.embeddings.tokenisation import load_tokenizer
    from shape_of_learning.finetuning.finetune import Start, finetune

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    base, head, _ = load_model(
        checkpoint, role=role, precision="float32", device=torch.device("cpu")
    )

    def copy_tokenizer(folder: Path) -> None:
        for name in tokenizer_paths({file.name for file in checkpoint.iterdir()}, ""):
            shutil.copyfile(checkpoint / name, folder / name)

    network = base if head is None else head.model
    output, digests = outputs
    described = json.loads(task.with_suffix(".json").read_text(encoding="utf-8"))
    finetune(
        Start(network, load_tokenizer(checkpoint), role, copy_tokenizer),
        examples,
        checked,
        {step: revision_of_step(step) for step in steps},
        destination=output,
        provenance={**names, "task": {"name": task.stem, **described}},
    )
    records = sorted(output.glob(f"*/{RECORD}"))
    found = {record.parent.name: file_entry(record)["sha256"] for record in records}
    with atomic_write(digests) as unfinished:
        unfinished.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=checkpoint_folder, required=True)
    parser.add_argument("--receipt", type=Path, help="what its files were as they came")
    parser.add_argument("--role", choices=("encoder", "decoder"), required=True)
    parser.add_argument("--task", type=Path, required=True, metavar="CSV")
    parser.add_argument("--steps", type=int, nargs="+", required=True, help="16 make an epoch")
    parser.add_argument(
        "--names", type=json.loads, required=True, metavar="JSON", help="model and its origin"
    )
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--outputs",
        type=Path,
        nargs=2,
        required=True,
        help="written: a folder of the steps, and digests of them",
    )
    run(main, parser, console=logging.INFO)
