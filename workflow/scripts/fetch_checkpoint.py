"""Download one revision of a model from the Hugging Face Hub, as its lock pins it, and check it."""

import argparse
import shutil
from functools import partial
from pathlib import Path

from shape_of_learning.checkpoints.checkpoint_download import PinnedCheckpoint, fetch
from shape_of_learning.checkpoints.checkpoint_record import RECORD
from shape_of_learning.checkpoints.model_entry import check_against_entry
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.files import atomic_write


def main(
    model: str,
    name: str,
    lock: Path,
    output: Path,
    receipt: Path | None,
    **typed: int | str | None,
) -> None:
    """Fetch configuration, weights and tokenizer into the folder `output`.

    A `receipt`, where one is wanted, is a copy of the record in that folder. What the entry has `typed`,
    :func:`~shape_of_learning.checkpoints.model_entry.check_against_entry` compares.
    """
    pinned = PinnedCheckpoint.read(model, name, lock)
    fetch(pinned, output, partial(check_against_entry, where=pinned.where, **typed))
    if receipt is not None:
        with atomic_write(receipt) as partly:
            shutil.copyfile(output / RECORD, partly)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="name of the model's entry")
    parser.add_argument("--name", required=True, help="name of the revision in the lock")
    parser.add_argument("--lock", type=Path, required=True, help="config/locks/MODEL.yaml")
    parser.add_argument("--layers", type=int, help="what the entry says, where it does")
    parser.add_argument("--hidden-size", type=int)
    parser.add_argument("--last-hidden-size", type=int)
    parser.add_argument("--role", choices=["encoder", "decoder"])
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    parser.add_argument("--receipt", type=Path, help="written last: what was fetched")
    run(main, parser)
