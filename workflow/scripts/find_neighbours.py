"""Search the nearest neighbours of one layer's vectors, once for all measures of them."""

import argparse
from pathlib import Path

from shape_of_learning.embeddings.selected_rows import read_selected
from shape_of_learning.metrics.batch_files import write_batches
from shape_of_learning.metrics.batches import shuffle_of
from shape_of_learning.metrics.neighbour_search import neighbour_batches
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.script_arguments.protocol import SamplingProtocol
from shape_of_learning.script_arguments.running import run


def main(
    embeddings: Path,
    model: str,
    selection: Selection,
    neighbours: int,
    batch_vectors: int,
    protocol: SamplingProtocol,
    output: Path,
) -> None:
    """Search within shuffled batches of exactly `batch_vectors`."""
    vectors, windows = read_selected(embeddings, selection)
    stream = shuffle_of(protocol.seed, model)
    write_batches(output, neighbour_batches(vectors, windows, batch_vectors, neighbours, stream))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embeddings", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--selection", type=Selection.from_json, required=True)
    parser.add_argument("--neighbours", type=int, required=True)
    parser.add_argument("--batch-vectors", type=int, required=True)
    parser.add_argument("--protocol", type=SamplingProtocol.from_json, required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
