"""Ways to measure all layers of a checkpoint, as contenders."""

import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dumping import sample_run
from benchmarks.ours import NEIGHBOURS, Work
from shape_of_learning.embeddings.hidden_state_files import dump_embeddings, file_bytes, layer_file
from shape_of_learning.embeddings.in_memory import HiddenStatesInMemory
from shape_of_learning.embeddings.model_weights import model_matrices
from shape_of_learning.embeddings.sample_run import SampleRun
from shape_of_learning.embeddings.selected_rows import read_selected
from shape_of_learning.metrics.batches import shuffle_of
from shape_of_learning.metrics.layer import measure_layer
from shape_of_learning.metrics.measurements import Measured, write_left_out, write_measurements
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.resampling import window_groups
from shape_of_learning.metrics.selections import Selection

SHOWN = ("anisotropy", "two_nn")
Values = dict[str, Measured]
Measure = Callable[[int, np.ndarray], Values]


def in_memory(folder: str, **options: Any) -> Work:
    """Hidden states of all layers are kept in memory, and nothing but tables written."""
    return _work(folder, _from_memory, **options)


def dumped_and_measured(folder: str, **options: Any) -> Work:
    """All hidden states onto the disk, and then each layer from there."""
    return _work(folder, _from_a_dump, **options)


def _work(
    folder: str,
    layers_of: Callable[[SampleRun, Path, Measure], Iterable[Values]],
    shape: str,
    windows: int,
    threads: int,
    batch_vectors: int,
) -> Work:
    sample = sample_run(shape, windows, threads)
    # Of a layer alone, of all its rows.
    measures = {
        name: measure.chosen(name, {})
        for name, measure in MEASURES.items()
        if measure.of in ("vectors", "spectrum", "neighbours") and not measure.rows
    }
    window_of, groups = sample.rows["windows"], window_groups(windows, 0)
    dump = sum(file_bytes(sample.tokens, width) for width in sample.widths)

    def measure(layer: int, vectors: np.ndarray) -> Values:
        stream = shuffle_of(0, shape)
        return measure_layer(
            vectors, window_of, measures, batch_vectors, NEIGHBOURS, stream, groups
        )

    def work() -> dict[str, float]:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            layers = list(layers_of(sample, Path(scratch) / "dump", measure))
            for name in measures:
                columns = {layer: values[name] for layer, values in enumerate(layers)}
                write_measurements(Path(scratch) / f"{name}.csv", columns)
                write_left_out(Path(scratch) / f"left_out_{name}.csv", columns)
            written = sum(file.stat().st_size for file in Path(scratch).rglob("*"))
        return {
            **{name: _mean(values[name] for values in layers) for name in SHOWN},
            "tokens": sample.tokens,
            "kB on the disk": written / 1e3,
            "kB of a dump": dump / 1e3,
        }

    return work


def _mean(layers: Iterable[Measured]) -> float:
    """Mean over layers of the mean over batches."""
    return float(np.mean([measured.estimate.value for measured in layers]))


def _from_memory(sample: SampleRun, folder: Path, measure: Measure) -> Iterable[Values]:
    states = HiddenStatesInMemory(sample)
    sample.into(states)
    return states.measured(measure, sample.threads)


def _from_a_dump(sample: SampleRun, folder: Path, measure: Measure) -> Iterable[Values]:
    dump_embeddings(sample, model_matrices(sample.forward), folder, {})

    def measure_one(layer: int) -> Values:
        return measure(layer, read_selected(layer_file(folder, layer), Selection()).vectors)

    with ThreadPoolExecutor(sample.threads) as pool:
        return list(pool.map(measure_one, range(len(sample.widths))))
