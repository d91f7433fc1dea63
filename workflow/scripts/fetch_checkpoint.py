"""Download one revision of a model from the Hugging Face Hub, pinned to a commit and checked."""

import argparse
import shutil
from pathlib import Path

from shape_of_learning.checkpoints.checkpoint_download import fetch
from shape_of_learning.checkpoints.checkpoint_record import RECORD
from shape_of_learning.errors import InputError
from shape_of_learning.hub.retries import FIRST_PAUSE
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.files import atomic_write


def main(
    model: str,
    repository: str,
    revision: str,
    commit: str,
    subfolder: str,
    tokenizer_repository: str | None,
    tokenizer_revision: str,
    tokenizer_commit: str,
    layers: int,
    hidden_size: int,
    last_hidden_size: int | None,
    role: str,
    first_pause: float,
    unresolved: str,
    output: Path,
    receipt: Path | None,
) -> None:
    """Fetch configuration, weights and tokenizer into the folder `output`.

    A `receipt`, where one is wanted, is a copy of the record in that folder.

    Nothing is fetched if the plan could not find out what it is: `unresolved` says why.
    """
    if unresolved:
        raise InputError(f"{unresolved}; no revision is fetched that has not been checked")
    fetch(
        model,
        repository,
        revision,
        output,
        layers=layers,
        hidden_size=hidden_size,
        last_hidden_size=last_hidden_size,
        role=role,
        commit=commit,
        subfolder=subfolder,
        tokenizer_repository=tokenizer_repository,
        tokenizer_revision=tokenizer_revision,
        tokenizer_commit=tokenizer_commit,
        first_pause=first_pause,
    )
    if receipt is not None:
        with atomic_write(receipt) as partial:
            shutil.copyfile(output / RECORD, partial)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--repository", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--commit", default="", help="what the revision was when it was pinned")
    parser.add_argument("--subfolder", default="")
    parser.add_argument("--tokenizer-repository")
    parser.add_argument("--tokenizer-revision", default="main")
    parser.add_argument("--tokenizer-commit", default="")
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--hidden-size", type=int, required=True)
    parser.add_argument("--last-hidden-size", type=int)
    parser.add_argument("--role", choices=["encoder", "decoder"], required=True)
    parser.add_argument(
        "--first-pause",
        type=float,
        default=FIRST_PAUSE,
        help="seconds before a request that failed is made again, doubled each time (%(default)s)",
    )
    parser.add_argument("--unresolved", default="", metavar="REASON")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--receipt", type=Path)
    run(main, parser)
