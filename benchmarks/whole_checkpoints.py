"""Ways to measure all layers of a checkpoint, as contenders."""

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dumping import batch_run
from benchmarks.ours import Work
from shape_of_learning.embeddings.dump import dump_embeddings
from shape_of_learning.embeddings.hidden_state_files import file_bytes, read_hidden_states
from shape_of_learning.embeddings.layer_by_layer import measure_layer_by_layer
from shape_of_learning.embeddings.sample_run import SampleProtocol, SampleRun
from shape_of_learning.metrics.layer import layer_values
from shape_of_learning.metrics.measurements import BatchValue, write_batch_values
from shape_of_learning.random_streams import random_stream

SHOWN = ("anisotropy", "two_nn")


def within_the_pass(folder: str, **options: Any) -> Work:
    """Each layer while the next one is computed, and nothing but tables written."""
    return _work(folder, _layer_by_layer, **options)


def dumped_and_measured(folder: str, **options: Any) -> Work:
    """All hidden states onto the disk, and then each layer from there."""
    return _work(folder, _from_a_dump, **options)


Values = dict[str, list[BatchValue]]
Measure = Callable[[int, np.ndarray], Values]
Write = Callable[[int, Values], None]


def _work(
    folder: str,
    run: Callable[[SampleRun, Path, Measure, Write, int], None],
    shape: str,
    windows: int,
    threads: int,
    batch_vectors: int,
) -> Work:
    batches = batch_run(shape, windows, threads)
    sample = SampleRun(batches, SampleProtocol())
    sizes = (file_bytes(batches.tokens, width, np.dtype("float32")) for width in batches.widths)

    def work() -> dict[str, float]:
        means: dict[str, list[float]] = {name: [] for name in SHOWN}
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            tables = Path(scratch) / "tables"

            def measure(layer: int, vectors: np.ndarray) -> Values:
                return layer_values(
                    vectors, batch_vectors, random_stream(0, "batches", layer=layer)
                )

            def write(layer: int, values: Values) -> None:
                for name, column in values.items():
                    write_batch_values(tables / str(layer) / f"{name}.csv", column)
                for name, mean in means.items():
                    mean.append(float(np.mean([value.value for value in values[name]])))

            run(sample, Path(scratch) / "dump", measure, write, threads)
            written = sum(file.stat().st_size for file in Path(scratch).rglob("*"))
        return {
            **{name: float(np.mean(values)) for name, values in means.items()},
            "tokens": batches.tokens,
            "kB on the disk": written / 1e3,
            "kB of a dump": sum(sizes) / 1e3,
        }

    return work


def _layer_by_layer(
    sample: SampleRun, folder: Path, measure: Measure, write: Write, threads: int
) -> None:
    measure_layer_by_layer(sample, measure, write)


def _from_a_dump(
    sample: SampleRun, folder: Path, measure: Measure, write: Write, threads: int
) -> None:
    dump_embeddings(sample, folder, {})
    layers = range(len(sample.batches.widths))
    with ThreadPoolExecutor(threads) as pool:
        measured = pool.map(lambda layer: measure(layer, read_hidden_states(folder, layer)), layers)
        for layer, values in enumerate(measured):
            write(layer, values)
