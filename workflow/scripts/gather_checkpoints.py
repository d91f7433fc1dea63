"""Gather what one estimator says of the checkpoints of one model."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from shape_of_learning.metrics.measurements import COLUMNS, LAYER_COLUMNS, relative_depth
from shape_of_learning.metrics.undefined_values import require_some_value
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.csv_table import read_rows, write_table


def main(
    folder: Path,
    model: str,
    role: str,
    layers: int,
    estimator: str,
    checkpoints: str,
    output: Path,
) -> None:
    """Concatenate ``{folder}/{revision}/{estimator}.csv`` of the `checkpoints`.

    They are JSON: (revision, step, tokens) of each, the last two null where the model has no training steps.
    """

    def rows() -> Iterator[list[object]]:
        for revision, step, tokens in json.loads(checkpoints):
            path = folder / revision / f"{estimator}.csv"
            measured = read_rows(path, LAYER_COLUMNS)
            require_some_value(
                path, (dict(zip(LAYER_COLUMNS, row, strict=True)) for row in measured)
            )
            for layer, *value in measured:
                identity = [model, role, revision, step, tokens, layer]
                identity.append(relative_depth(int(layer), layers))
                yield [*identity, estimator, *value]

    write_table(output, COLUMNS, rows())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--role", required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--estimator", required=True)
    parser.add_argument("--checkpoints", required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
