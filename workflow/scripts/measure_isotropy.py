"""Measure anisotropy and average cosine of one layer on contiguous batches of its vectors."""

import argparse
from pathlib import Path

from shape_of_learning.embeddings.hidden_state_rows import HiddenStateRows
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.isotropy import isotropy_values
from shape_of_learning.metrics.measurements import write_batch_values
from shape_of_learning.metrics.registry import ESTIMATORS
from shape_of_learning.script_arguments.running import run


def main(
    embeddings: Path, layer: int, estimator: list[str], batch_vectors: int, output: list[Path]
) -> None:
    """Write one value per batch for each estimator, into the output of the same place."""
    if len(estimator) != len(output):
        raise InputError(
            f"--estimator names {len(estimator)} but --output {len(output)}; give one file for each"
        )
    entries = {name: ESTIMATORS[name] for name in estimator}
    with HiddenStateRows(embeddings, layer) as rows:
        values = isotropy_values(rows, batch_vectors, entries)
    for name, path in zip(estimator, output, strict=True):
        write_batch_values(path, values[name])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embeddings", type=Path, required=True)
    parser.add_argument("--layer", type=int, required=True)
    known = [name for name, entry in ESTIMATORS.items() if not entry.needs_neighbours]
    parser.add_argument("--estimator", nargs="+", choices=known, required=True)
    parser.add_argument("--batch-vectors", type=int, required=True)
    parser.add_argument("--output", type=Path, nargs="+", required=True)
    run(main, parser)
