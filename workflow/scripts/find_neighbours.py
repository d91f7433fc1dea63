"""Search the nearest neighbours of one layer's vectors, once for all estimators of dimension."""

import argparse
import logging
from pathlib import Path

import numpy as np

from shape_of_learning.command_line import run
from shape_of_learning.embeddings.hidden_state_files import read_hidden_states
from shape_of_learning.metrics.batches import shuffled_batches
from shape_of_learning.metrics.neighbour_files import write_neighbours
from shape_of_learning.neighbours import nearest_distances
from shape_of_learning.random_streams import random_stream


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
    batches = shuffled_batches(len(vectors), batch_vectors, stream)
    searched = [(len(rows), _searched(vectors[rows], neighbours)) for rows in batches]
    left_over = len(vectors) - len(batches) * batch_vectors
    write_neighbours(output, searched, left_over)
    logging.getLogger("shape_of_learning").info(
        "%d vectors: %d batches of %d, %d left over; distinct: %s",
        len(vectors),
        len(batches),
        batch_vectors,
        left_over,
        [len(distances) for _, distances in searched],
    )


def _searched(batch: np.ndarray, neighbours: int) -> np.ndarray:
    if np.isfinite(batch).all():
        return nearest_distances(batch, neighbours)
    # Of a broken checkpoint: as if all vectors were the same one, so that every estimate is undefined.
    return np.full((1, neighbours), np.nan)


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
