"""Train a small model on the cleaned text and save it at log-spaced steps, like Hub revisions."""

import argparse
import json
import logging
from pathlib import Path

from shape_of_learning.checkpoints.checkpoint_record import RECORD, file_entry
from shape_of_learning.corpus.windows import read_text
from shape_of_learning.pretraining.recipe import ARCHITECTURES, DEVICES, REGULARISERS, Recipe
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.files import atomic_write


def main(text: Path, model: str, output: Path, receipt: Path, **recipe: str | int | float) -> None:
    """Train `model`, write one folder per saved step into `output`, and what is in them into `receipt`."""
    checked = Recipe(**recipe)
    corpus = read_text(text)

    import transformers

    from shape_of_learning.pretraining.training import pretrain

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    pretrain(corpus, checked, model=model, destination=output)
    records = sorted(output.glob(f"*/{RECORD}"))
    digests = {record.parent.name: file_entry(record)["sha256"] for record in records}
    with atomic_write(receipt) as unfinished:
        unfinished.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--output", type=Path, required=True, help="folder of the steps")
    parser.add_argument("--receipt", type=Path, required=True, help="written: digests of the steps")
    parser.add_argument("--architecture", choices=ARCHITECTURES, required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--hidden-size", type=int, required=True)
    parser.add_argument("--attention-heads", type=int, required=True)
    parser.add_argument("--vocabulary", type=int, required=True)
    parser.add_argument("--context", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--warmup-steps", type=int, required=True)
    parser.add_argument("--last-step", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--regulariser", choices=REGULARISERS, default="none")
    parser.add_argument("--strength", type=float, default=0.0)
    parser.add_argument(
        "--twin-of", default="", metavar="MODEL", help="whose random numbers it has"
    )
    parser.add_argument("--device", choices=DEVICES, default="cpu")
    run(main, parser, console=logging.INFO)
