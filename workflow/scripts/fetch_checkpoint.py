"""Download one revision of a model from the Hugging Face Hub, as its lock pins it, and check it."""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.checkpoint_download import PinnedCheckpoint, fetch
from shape_of_learning.checkpoints.checkpoint_record import RECORD
from shape_of_learning.checkpoints.model_entry import Shape
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.files import atomic_write


def main(
    model: str,
    name: str,
    lock: Path,
    output: Path,
    shape: dict[str, Any],
    receipt: Path | None,
) -> None:
    """Fetch configuration, weights and tokenizer into the folder `output`.

    A `receipt`, where one is wanted, is a copy of the record in that folder.
    """
    fetch(PinnedCheckpoint.read(model, name, lock), output, Shape(**shape))
    if receipt is not None:
        with atomic_write(receipt) as partly:
            shutil.copyfile(output / RECORD, partly)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="name of the model's entry")
    parser.add_argument("--name", required=True, help="name of the revision in the lock")
    parser.add_argument("--lock", type=Path, required=True, help="config/locks/MODEL.yaml")
    parser.add_argument("--shape", type=json.loads, required=True, help="of the entry")
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    parser.add_argument("--receipt", type=Path, help="written last: what was fetched")
    run(main, parser)
