"""Find the eigenvalues of the covariance of one layer's vectors, batch by batch."""

import argparse
from pathlib import Path

from shape_of_learning.embeddings.selected_rows import read_selected
from shape_of_learning.metrics.batch_files import write_batches
from shape_of_learning.metrics.resampling import window_groups
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.metrics.spectra import spectrum_batches
from shape_of_learning.script_arguments.protocol import SamplingProtocol
from shape_of_learning.script_arguments.running import run


def main(
    embeddings: Path,
    selection: Selection,
    batch_vectors: int,
    protocol: SamplingProtocol,
    output: Path,
) -> None:
    """Take contiguous batches of at least `batch_vectors`."""
    vectors, windows = read_selected(embeddings, selection)
    groups = window_groups(protocol.windows, protocol.seed)
    write_batches(output, spectrum_batches(vectors, windows, batch_vectors, groups))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embeddings", type=Path, required=True)
    parser.add_argument("--selection", type=Selection.from_json, required=True)
    parser.add_argument("--batch-vectors", type=int, required=True)
    parser.add_argument("--protocol", type=SamplingProtocol.from_json, required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
