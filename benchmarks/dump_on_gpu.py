"""Measure how fast hidden states get from a GPU to the disk, for models of the paper's sizes.

The weights are random numbers made on the device, so nothing is downloaded; the windows are random
tokens, as many as the paper's. Two runs over the same batches are compared: the dump as the workflow
does it, with hidden states of all layers, loss and HDF5 files, and a bare forward pass that keeps
nothing. One line per shape is added to a table:

    PYTHONPATH=workflow python benchmarks/dump_on_gpu.py --shape pythia-2.8b bloom-3b llama-2-7b

Files are written through the cache of the operating system, as in the workflow, and removed.
"""

import argparse
import resource
import sys
import tempfile
import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np

from shape_of_learning.command_line import run
from shape_of_learning.csv_table import read_rows, write_table
from shape_of_learning.embeddings.batch_run import BatchRun
from shape_of_learning.embeddings.cross_entropy import next_tokens
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.hidden_state_files import HiddenStateWriter, layer_file
from shape_of_learning.embeddings.language_model_head import LanguageModelHead
from shape_of_learning.embeddings.placement import default_device
from shape_of_learning.embeddings.tokenisation import TokenisedWindow
from shape_of_learning.files import require_space
from shape_of_learning.random_streams import random_stream

if TYPE_CHECKING:
    import torch

# Architecture and sizes as in the published config.json; `tiny` only shows that the program runs.
SHAPES: dict[str, tuple[str, dict[str, int]]] = {
    "tiny": (
        "GPTNeoXConfig",
        {"vocab_size": 300, "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2,
         "intermediate_size": 128},
    ),
    "pythia-2.8b": (
        "GPTNeoXConfig",
        {"vocab_size": 50304, "hidden_size": 2560, "num_hidden_layers": 32,
         "num_attention_heads": 32, "intermediate_size": 10240},
    ),
    "bloom-3b": (
        "BloomConfig",
        {"vocab_size": 250880, "hidden_size": 2560, "n_layer": 30, "n_head": 32},
    ),
    "llama-2-7b": (
        "LlamaConfig",
        {"vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
         "num_attention_heads": 32, "intermediate_size": 11008, "max_position_embeddings": 4096},
    ),
}  # fmt: skip
# 512 characters of English text are about 110 tokens; markup and other scripts make more.
MEAN_LENGTH, DEVIATION, SHORTEST, LONGEST = 110, 25, 60, 400


@dataclass(frozen=True)
class Measured:
    """One line of the table; rates per second, memory in GB of 10^9 bytes."""

    shape: str
    precision: str
    dtype: str
    device: str
    torch: str
    transformers: str
    parameters: int
    windows: int
    tokens: int
    batch_size: int
    seconds: float
    tokens_per_second: float
    bare_tokens_per_second: float
    share_of_bare: float
    hdf5_mb_per_second: float
    peak_gpu_gb: float
    peak_host_gb: float


class TimedWriter(HiddenStateWriter):
    """A writer that counts the bytes it writes and the seconds that this takes."""

    written = 0
    seconds = 0.0

    def write(self, layer: int, rows: slice, values: np.ndarray) -> None:
        """Write, and count."""
        start = time.perf_counter()
        super().write(layer, rows, values)
        self.seconds += time.perf_counter() - start
        self.written += values.nbytes


def main(
    shape: list[str],
    precision: str,
    dtype: str,
    windows: int,
    batch_size: int,
    folder: Path | None,
    output: Path,
) -> None:
    """Measure each shape and add its line to `output`."""
    columns = tuple(field.name for field in fields(Measured))
    for name in shape:
        rows = read_rows(output, columns) if output.exists() else []
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            measured = measure(name, precision, dtype, windows, batch_size or None, Path(scratch))
        write_table(output, columns, [*rows, astuple(measured)])
        for column, value in zip(columns, astuple(measured), strict=True):
            print(f"{column:24}{value:,.4g}" if isinstance(value, float) else f"{column:24}{value}")


def measure(
    name: str, precision: str, dtype: str, count: int, batch_size: int | None, folder: Path
) -> Measured:
    """Run one shape."""
    import torch
    import transformers

    device = default_device()
    gpu = device.type == "cuda"
    if gpu:
        torch.cuda.reset_peak_memory_stats(device)
    forward = random_model(name, precision, device)
    windows = random_windows(count, forward.head.vocabulary)
    predicted = [next_tokens(window) for window in windows]
    layers = forward.config.num_hidden_layers + 1
    run_ = BatchRun(forward, name, windows, predicted, 0, [forward.config.hidden_size] * layers)
    row_bytes = layers * (np.dtype(dtype).itemsize * forward.config.hidden_size + 16)
    require_space(folder, run_.tokens * row_bytes)
    bare_seconds(run_, 1, only_first=True)  # loads kernels

    ids = np.concatenate([window.ids for window in windows])
    writer = TimedWriter(folder, run_.widths, ids, ids, {}, dtype)
    start = time.perf_counter()
    run_.write(writer, batch_size)
    writer.close()
    seconds = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated(device) if gpu else 0
    with h5py.File(layer_file(folder, 0)) as file:
        used = int(file.attrs["batch_size"])
    bare = bare_seconds(run_, used)
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return Measured(
        shape=name,
        precision=precision,
        dtype=dtype,
        device=forward.device_name(),
        torch=torch.__version__,
        transformers=transformers.__version__,
        parameters=sum(weight.numel() for weight in forward.model.parameters()),
        windows=count,
        tokens=run_.tokens,
        batch_size=used,
        seconds=seconds,
        tokens_per_second=run_.tokens / seconds,
        bare_tokens_per_second=run_.tokens / bare,
        share_of_bare=bare / seconds,
        hdf5_mb_per_second=writer.written / writer.seconds / 1e6,
        peak_gpu_gb=peak / 1e9,
        peak_host_gb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9,
    )


def random_model(name: str, precision: str, device: "torch.device") -> ForwardPass:
    """Make a model of that shape on the device itself."""
    import torch
    import transformers

    kind, sizes = SHAPES[name]
    config = getattr(transformers, kind)(**sizes)
    torch.manual_seed(0)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=getattr(torch, precision)
        )
    model = model.eval().requires_grad_(False)
    return ForwardPass(
        model.base_model, LanguageModelHead(model), device=device, last_layer="after_final_norm"
    )


def random_windows(count: int, vocabulary: int) -> list[TokenisedWindow]:
    """Draw windows of random tokens, about as long as windows of 512 characters."""
    random = random_stream(0, "benchmark of the dump")
    lengths = random.normal(MEAN_LENGTH, DEVIATION, count).clip(SHORTEST, LONGEST).astype(int)
    return [
        TokenisedWindow(random.integers(vocabulary, size=n), np.ones(n, bool), np.zeros(n, bool))
        for n in lengths
    ]


def bare_seconds(run_: BatchRun, batch_size: int, *, only_first: bool = False) -> float:
    """Time a forward pass over the same batches that computes no logits and keeps no state."""
    import torch

    batches = run_.batches(batch_size)[: 1 if only_first else None]
    start = time.perf_counter()
    with torch.inference_mode():
        for batch in batches:
            texts = [run_.windows[number].ids for number in batch.windows]
            run_.forward.run(texts, run_.padding, batch.shape)
    if run_.forward.device.type == "cuda":
        torch.cuda.synchronize(run_.forward.device)
    return time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, nargs="+", required=True)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--dtype", choices=["float32", "float16"], default="float32")
    parser.add_argument("--windows", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=0, help="0 chooses by free memory")
    parser.add_argument("--folder", type=Path, help="where the hidden states are written to")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "dump_gpu.csv"
    )
    run(main, parser)
