"""Train a small model on the cleaned text and save it at log-spaced steps, like Hub revisions."""

import argparse
import logging
from pathlib import Path

from shape_of_learning.corpus.windows import read_text
from shape_of_learning.pretraining.recipe import ARCHITECTURES, Recipe
from shape_of_learning.script_arguments.running import run


def main(text: Path, model: str, output: Path, **recipe: str | int | float) -> None:
    """Train `model` by the recipe and write one folder per saved step into the folder `output`."""
    checked = Recipe(**recipe)
    corpus = read_text(text)

    import transformers

    from shape_of_learning.pretraining.training import pretrain

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    pretrain(corpus, checked, model=model, destination=output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--output", type=Path, required=True)
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
    run(main, parser, console=logging.INFO)
