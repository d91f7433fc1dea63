"""Write down what the Hub lists of each revision of a model, and the verdict on it, before any download.

The revisions were resolved into a lock file when the run was planned, and judged there. Here each pinned
commit is listed again, so that one which the Hub no longer has is found now and not in the middle of the run.
"""

import argparse
from pathlib import Path

from shape_of_learning.checkpoints.integrity_table import write_integrity_table
from shape_of_learning.checkpoints.lock import read_lock
from shape_of_learning.checkpoints.pins import verify_pins
from shape_of_learning.errors import InputError
from shape_of_learning.script_arguments.running import run


def main(model: str, lock: Path, output: Path) -> None:
    """Verify the pins of `lock` and write one row per revision of its curve to `output`."""
    where = f"model `{model}`"
    locked = read_lock(lock)
    if locked is None:
        raise InputError(
            f"{where} has no {lock}, because the Hub could not be reached when the run was planned; run "
            "again where it can, or restore the lock"
        )
    pinned = {
        name: locked.revisions[name]
        for name in locked.curve
        if not locked.revisions[name].listed.problem
    }
    verify_pins(pinned, where=where, lock=str(lock))
    write_integrity_table(output, locked)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--lock", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
