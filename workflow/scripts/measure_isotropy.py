"""Measure anisotropy or average cosine of one layer on contiguous batches of its vectors."""

import argparse
import math
from pathlib import Path

import numpy as np

from shape_of_learning.arrays import distinct_rows
from shape_of_learning.command_line import run
from shape_of_learning.embeddings.hidden_state_files import read_hidden_states
from shape_of_learning.metrics.batches import contiguous_batches
from shape_of_learning.metrics.measurements import BatchValue, write_batch_values
from shape_of_learning.registry import ESTIMATORS


def main(embeddings: Path, layer: int, estimator: str, batch_vectors: int, output: Path) -> None:
    """Write one value per batch."""
    entry = ESTIMATORS[estimator]
    function = entry.load()
    vectors = read_hidden_states(embeddings, layer)
    values = []
    for number, rows in enumerate(contiguous_batches(len(vectors), batch_vectors)):
        batch = vectors[rows]
        # A broken checkpoint's hidden states may be NaN or infinite; its measures are then undefined.
        finite = bool(np.isfinite(batch).all())
        value = function(batch, **entry.arguments) if finite else math.nan
        distinct = len(distinct_rows(batch)) if finite else 1
        values.append(BatchValue(number, len(batch), distinct, value))
    write_batch_values(output, values)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embeddings", type=Path, required=True)
    parser.add_argument("--layer", type=int, required=True)
    parser.add_argument("--estimator", required=True)
    parser.add_argument("--batch-vectors", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
