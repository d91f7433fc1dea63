"""Download one revision of a model from the Hugging Face Hub, pinned to a commit and checked."""

import argparse
from pathlib import Path

from shape_of_learning.checkpoints.fetching import fetch
from shape_of_learning.command_line import run


def main(
    model: str,
    repository: str,
    revision: str,
    subfolder: str,
    tokenizer_repository: str | None,
    tokenizer_revision: str,
    layers: int,
    hidden_size: int,
    last_hidden_size: int | None,
    role: str,
    output: Path,
) -> None:
    """Fetch configuration, weights and tokenizer into the folder `output`."""
    fetch(
        model,
        repository,
        revision,
        output,
        layers=layers,
        hidden_size=hidden_size,
        last_hidden_size=last_hidden_size,
        role=role,
        subfolder=subfolder,
        tokenizer_repository=tokenizer_repository,
        tokenizer_revision=tokenizer_revision,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--repository", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--subfolder", default="")
    parser.add_argument("--tokenizer-repository")
    parser.add_argument("--tokenizer-revision", default="main")
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--hidden-size", type=int, required=True)
    parser.add_argument("--last-hidden-size", type=int)
    parser.add_argument("--role", choices=["encoder", "decoder"], required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
