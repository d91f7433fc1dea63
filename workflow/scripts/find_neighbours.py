"""Search the nearest neighbours of one layer's vectors, once for all estimators of dimension."""

import argparse
import logging
from pathlib import Path

from shape_of_learning.embeddings.hidden_state_files import read_hidden_states
from shape_of_learning.metrics.neighbour_files import write_neighbours
from shape_of_learning.metrics.neighbour_search import search_batches
from shape_of_learning.random_streams import random_stream
from shape_of_learning.script_arguments.running import run


def main(
    embeddings: Path,
    model: str,
    revision: str,
    layer: int,
    neighbours: int,
    batch_vectors: int,
    seed: int,
    output: Path,
) -> None:
    """Shuffle, divide into batches of exactly `batch_vectors` and search within each."""
    vectors = read_hidden_states(embeddings, layer)
    stream = random_stream(seed, "batches", model=model, revision=revision, layer=layer)
    searched, left_over = search_batches(vectors, neighbours, batch_vectors, stream)
    write_neighbours(output, searched, left_over)
    logging.getLogger("shape_of_learning").info(
        "%d vectors: %d batches of %d, %d left over; distinct: %s",
        len(vectors),
        len(searched),
        batch_vectors,
        left_over,
        [len(distances) for _, distances in searched],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embeddings", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--layer", type=int, required=True)
    parser.add_argument("--neighbours", type=int, required=True)
    parser.add_argument("--batch-vectors", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
