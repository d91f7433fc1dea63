"""Measure all layers of one checkpoint on sampled windows, while they go through it; nothing else is written.

Where there is a GPU, it measures, too, what it has in its memory.
"""

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shape_of_learning.checkpoints.losses import write_loss
from shape_of_learning.embeddings.layer_by_layer import measure_layer_by_layer
from shape_of_learning.embeddings.sample_arguments import add_sample_arguments, load_sample
from shape_of_learning.metrics.batches import require_one_batch
from shape_of_learning.metrics.layer import layer_values
from shape_of_learning.metrics.measurements import BatchValue, write_batch_values
from shape_of_learning.random_streams import random_stream
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.files import atomic_write

if TYPE_CHECKING:
    import numpy as np
    import torch

logger = logging.getLogger("shape_of_learning")


def main(revision: str, batch_vectors: int, output: Path, loss: Path, **sampled: Any) -> None:
    """Write one table per layer and estimator into the folder `output`, and the loss."""
    sample = load_sample(**sampled)
    require_one_batch(sample.batches.tokens, batch_vectors)
    model, seed = sampled["model"], sampled["seed"]
    with atomic_write(output) as folder:

        def measure(
            layer: int, vectors: "np.ndarray | torch.Tensor"
        ) -> dict[str, list[BatchValue]]:
            stream = random_stream(seed, "batches", model=model, revision=revision, layer=layer)
            return layer_values(vectors, batch_vectors, stream)

        def write(layer: int, values: dict[str, list[BatchValue]]) -> None:
            for name, column in values.items():
                write_batch_values(folder / f"layer_{layer}" / f"{name}.csv", column)
            logger.info("%s at %s: layer %d is measured", model, revision, layer)

        cross_entropy = measure_layer_by_layer(sample, measure, write)
    write_loss(loss, cross_entropy)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_sample_arguments(parser)
    parser.add_argument("--batch-vectors", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--loss", type=Path, required=True)
    run(main, parser)
