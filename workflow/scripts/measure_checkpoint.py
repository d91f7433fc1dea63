"""Measure all layers of one checkpoint on sampled windows; no hidden states are written.

Where there is a GPU, it measures, too.
"""

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from shape_of_learning.checkpoints.measured import write_loss, write_tensor_digests
from shape_of_learning.checkpoints.tensors import checked_tensors
from shape_of_learning.embeddings.forward_pass import model_matrices
from shape_of_learning.embeddings.run import SampleRun, SamplingProtocol, draw_windows
from shape_of_learning.embeddings.states import StatesInMemory
from shape_of_learning.files import atomic_write
from shape_of_learning.job import job
from shape_of_learning.metrics.matrices import write_matrix_tables
from shape_of_learning.metrics.measure import MeasuringProtocol, measure_layer
from shape_of_learning.metrics.measure_entry import FAMILIES, Measure
from shape_of_learning.metrics.tidy import TidyRow, layer_table, write_tidy

logger = logging.getLogger("shape_of_learning")


def main(
    names: Mapping[str, str],
    checkpoint: Path,
    is_download: bool,
    text: Path,
    protocol: Mapping[str, Any],
    measuring: Mapping[str, Any],
    matrices: Mapping[str, Any],
    output: Mapping[str, str],
    **loaded: Any,
) -> None:
    """Run the windows through a checkpoint and measure every layer.

    Parameters
    ----------
    names, checkpoint, is_download, text, protocol, matrices, **loaded
        As dump_embeddings.py takes them.
    measuring : mapping
        ``measures``, fields of :class:`.Measure` of each, and ``protocol``, those of
        :class:`.MeasuringProtocol`.
    output : mapping of str to str
        Paths: ``measurements``, a folder of tables as measure.py writes them; others as dump_embeddings.py.
    """
    sampling = SamplingProtocol(**protocol)
    how = MeasuringProtocol.of(names["model"], measuring["protocol"])
    chosen = [Measure(**each) for each in measuring["measures"]]
    families = [family for family in FAMILIES if any(one.family == family for one in chosen)]
    digests = checked_tensors(checkpoint, is_download, loaded["threads"])
    windows = draw_windows(text, sampling)
    sample = SampleRun.load(checkpoint, windows, sampling, in_memory=True, **loaded)
    how.require_batches(sample.rows, chosen)
    states = StatesInMemory(sample.rows, sample.widths, sample.layers, sample.forward.device)
    cross_entropy = sample.into(states)

    def measured(layer: int) -> dict[str, list[TidyRow]]:
        found = {each: measure_layer(states, layer, each, chosen, how) for each in families}
        logger.info("%s: layer %d is measured", " at ".join(names.values()), layer)
        return found

    # Each layer is measured by one thread, which must not start others.
    with threadpool_limits(1):
        write_matrix_tables(model_matrices(sample.forward), output, **matrices)
        on_gpu = sample.forward.device.type != "cpu"
        del sample  # which leaves the memory of its weights to the measuring
        with ThreadPoolExecutor(1 if on_gpu else loaded["threads"]) as pool:
            layers = list(pool.map(measured, range(states.layers + 1)))
    with atomic_write(Path(output["measurements"])) as folder:
        for layer, found in enumerate(layers):
            for family, rows in found.items():
                if rows:
                    write_tidy(layer_table(folder, family, layer), rows)
    write_tensor_digests(Path(output["tensors"]), digests)
    write_loss(Path(output["loss"]), cross_entropy)


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(
            dict(snakemake.wildcards.items()),
            checkpoint=Path(snakemake.resources.checkpoint),
            text=Path(snakemake.input.text),
            output=dict(snakemake.output.items()),
            threads=snakemake.threads,
            window_batch_size=snakemake.resources.windows_at_once or None,
            **snakemake.params.sample,
            measuring=snakemake.params.measuring,
            matrices=snakemake.params.matrices,
        )
