"""Gather what one estimator says of all layers and checkpoints of one model."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from shape_of_learning.metrics.measurements import BATCH_COLUMNS, COLUMNS
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.csv_table import read_rows, write_table


def main(
    folder: Path,
    model: str,
    role: str,
    layers: int,
    estimator: str,
    checkpoint: list[list[str]],
    output: Path,
) -> None:
    """Concatenate ``{folder}/{revision}/layer_{layer}/{estimator}.csv`` in that order.

    `checkpoint` holds (revision, step, tokens) of each checkpoint, the last two empty where the model
    has no training steps.
    """

    def rows() -> Iterator[list[object]]:
        for revision, step, tokens in checkpoint:
            for layer in range(layers + 1):
                values = folder / revision / f"layer_{layer}" / f"{estimator}.csv"
                for row in read_rows(values, BATCH_COLUMNS):
                    identity = [model, role, revision, step, tokens, layer, layer / layers]
                    yield [*identity, estimator, *row]

    write_table(output, COLUMNS, rows())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--role", required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--estimator", required=True)
    parser.add_argument("--checkpoint", nargs=3, action="append", required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
