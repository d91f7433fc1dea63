"""Write down what a lock lists of each revision of a model, and the verdict on it, before any download."""

import argparse
import json
from pathlib import Path

from shape_of_learning.checkpoints.integrity_table import write_integrity_table
from shape_of_learning.checkpoints.judged_checkpoint import JudgedCheckpoint
from shape_of_learning.checkpoints.lock import read_lock
from shape_of_learning.errors import InputError
from shape_of_learning.script_arguments.running import run


def main(model: str, lock: Path, checkpoints: str, output: Path) -> None:
    """Write one row per checkpoint; `checkpoints` is a JSON list of what JudgedCheckpoint holds."""
    locked = read_lock(lock)
    judged = [JudgedCheckpoint(*each) for each in json.loads(checkpoints)]
    if locked is None or not {each.name for each in judged} <= set(locked.revisions):
        raise InputError(
            f"model `{model}`: {lock} does not pin all its revisions, because the Hub could not be reached "
            "when the run was planned; run again where it can, or restore the lock"
        )
    write_integrity_table(output, judged, locked)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--lock", type=Path, required=True)
    parser.add_argument("--checkpoints", required=True, metavar="JSON")
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
