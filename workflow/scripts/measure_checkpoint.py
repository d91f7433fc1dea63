"""Measure all layers of one checkpoint on sampled windows; hidden states stay in memory.

Where there is a GPU, it measures, too: one layer after another, from the memory of the host into its own.
"""

import argparse
import gc
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_of_learning.command_line import run
from shape_of_learning.embeddings.hidden_states_in_memory import HiddenStatesInMemory
from shape_of_learning.embeddings.losses import write_loss
from shape_of_learning.embeddings.sample_arguments import add_sample_arguments, load_sample
from shape_of_learning.files import written_beside
from shape_of_learning.metrics.batches import require_one_batch
from shape_of_learning.metrics.dimension import dimension_values
from shape_of_learning.metrics.isotropy import MatrixRows, isotropy_values
from shape_of_learning.metrics.measurements import BatchValue, write_batch_values
from shape_of_learning.metrics.neighbour_search import search_batches
from shape_of_learning.random_streams import random_stream
from shape_of_learning.registry import ESTIMATORS, NEIGHBOURS

if TYPE_CHECKING:
    import torch

logger = logging.getLogger("shape_of_learning")


def main(revision: str, batch_vectors: int, output: Path, loss: Path, **sampled: Any) -> None:
    """Write one table per layer and estimator into the folder `output`, and the loss."""
    sample = load_sample(**sampled)
    tokens, widths = sample.batches.tokens, sample.batches.widths
    require_one_batch(tokens, batch_vectors)
    states = HiddenStatesInMemory(tokens, widths, sample.protocol.dtype)
    cross_entropy = sample.into(states)
    device = sample.batches.forward.device
    model, seed = sampled["model"], sampled["seed"]
    # Each layer by one thread, so that the numbers do not depend on how many there are, or by the GPU.
    threads = sampled["threads"] if device.type == "cpu" else 1
    # The weights are needed no longer, and the memory may be; models refer to themselves.
    del sample
    gc.collect()

    def measure(layer: int) -> dict[str, list[BatchValue]]:
        stream = random_stream(seed, "batches", model=model, revision=revision, layer=layer)
        return measured(states.take(layer, device), batch_vectors, stream)

    with written_beside(output) as folder, ThreadPoolExecutor(threads) as pool:
        try:
            for layer, values in enumerate(pool.map(measure, range(len(widths)))):
                for name, column in values.items():
                    write_batch_values(folder / f"layer_{layer}" / f"{name}.csv", column)
                logger.info("%s at %s: layer %d is measured", model, revision, layer)
        finally:
            # Who is told to end does not begin another layer.
            pool.shutdown(wait=False, cancel_futures=True)
    write_loss(loss, cross_entropy)


def measured(
    vectors: "np.ndarray | torch.Tensor", batch_vectors: int, stream: np.random.Generator
) -> dict[str, list[BatchValue]]:
    """Estimate all that the registry has, on one layer."""
    isotropy = {name: entry for name, entry in ESTIMATORS.items() if not entry.needs_neighbours}
    values = isotropy_values(MatrixRows(vectors), batch_vectors, isotropy)
    searched, _ = search_batches(vectors, NEIGHBOURS, batch_vectors, stream)
    for name in ESTIMATORS.keys() - isotropy.keys():
        values[name] = dimension_values(searched, ESTIMATORS[name])
    return values


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_sample_arguments(parser)
    parser.add_argument("--batch-vectors", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--loss", type=Path, required=True)
    run(main, parser)
