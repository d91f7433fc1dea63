"""Measure anisotropy and average cosine of one layer on contiguous batches of its vectors.

Of a batch that is too large for memory, all measures that are asked for come from one pass over the file;
centred cosines take a second one.
"""

import argparse
import math
from pathlib import Path

from shape_of_learning.arrays import DistinctRowCount, NotFiniteError
from shape_of_learning.command_line import run
from shape_of_learning.embeddings.hidden_state_rows import HiddenStateRows
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.batches import contiguous_batches
from shape_of_learning.metrics.measurements import BatchValue, write_batch_values
from shape_of_learning.moments import Moments, rows_per_block
from shape_of_learning.registry import ESTIMATORS

# Up to this size as float64, 8192 rows of 4096 numbers, a batch is held in memory: its spectrum then takes a
# fraction of the operations of the moments that a pass over the file collects.
MATRIX_BYTES = 1 << 28


def main(
    embeddings: Path, layer: int, estimator: list[str], batch_vectors: int, output: list[Path]
) -> None:
    """Write one value per batch for each estimator, into the output of the same place."""
    if len(estimator) != len(output):
        raise InputError(
            f"--estimator names {len(estimator)} but --output {len(output)}; give one file for each"
        )
    values: list[list[BatchValue]] = [[] for _ in estimator]
    with HiddenStateRows(embeddings, layer) as layer_rows:
        for number, rows in enumerate(contiguous_batches(len(layer_rows), batch_vectors)):
            distinct, measured = measure(layer_rows, rows, estimator)
            for column, value in zip(values, measured, strict=True):
                column.append(BatchValue(number, rows.stop - rows.start, distinct, value))
    for path, column in zip(output, values, strict=True):
        write_batch_values(path, column)


def measure(
    layer_rows: HiddenStateRows, rows: slice, estimators: list[str]
) -> tuple[int, list[float]]:
    """Count the distinct vectors of one batch and estimate."""
    entries = [ESTIMATORS[name] for name in estimators]
    fits = 8 * layer_rows.width * (rows.stop - rows.start) <= MATRIX_BYTES
    streamed = [entry for entry in entries if entry.parts and not fits]
    try:
        moments, distinct = collect(layer_rows, rows, {p for e in streamed for p in e.parts})
    except NotFiniteError:
        # A broken checkpoint's hidden states may be NaN or infinite; its measures are then undefined.
        return 1, [math.nan] * len(entries)
    # Estimators that moments do not serve get the batch itself, whatever its size.
    matrix = layer_rows.read(rows) if len(streamed) < len(entries) else None
    clouds = [moments if entry in streamed else matrix for entry in entries]
    values = [e.load()(X, **e.arguments) for e, X in zip(entries, clouds, strict=True)]
    return distinct, values


def collect(layer_rows: HiddenStateRows, rows: slice, parts: set[str]) -> tuple[Moments, int]:
    """Collect moments and count distinct vectors, in one pass, or two for centred directions."""
    moments, distinct = Moments(layer_rows.width, parts), DistinctRowCount()
    size = rows_per_block(layer_rows.width)
    for block in layer_rows.blocks(rows, size):
        moments.add(block)
        distinct.add(block)
    if "centred_directions" in parts:
        for block in layer_rows.blocks(rows, size):
            moments.add_directions(block)
    return moments, len(distinct)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embeddings", type=Path, required=True)
    parser.add_argument("--layer", type=int, required=True)
    known = [name for name, entry in ESTIMATORS.items() if not entry.needs_neighbours]
    parser.add_argument("--estimator", nargs="+", choices=known, required=True)
    parser.add_argument("--batch-vectors", type=int, required=True)
    parser.add_argument("--output", type=Path, nargs="+", required=True)
    run(main, parser)
