"""Ways to run windows of text through a model, as contenders: for the hidden states, or for nothing."""

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.ours import Work
from benchmarks.random_models import random_model, random_windows
from shape_of_learning.embeddings.batch_run import BatchRun
from shape_of_learning.embeddings.cross_entropy import next_tokens
from shape_of_learning.embeddings.hidden_state_files import HiddenStateWriter
from shape_of_learning.embeddings.placement import default_device
from shape_of_learning.embeddings.window_batches import Batch
from shape_of_learning.storage.files import require_space

if TYPE_CHECKING:
    from transformers.utils import ModelOutput


# Of square matrices whose product runs as fast as the machine multiplies at all.
PRODUCT_SIDE = 2048


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


def batch_run(
    shape: str, windows: int, threads: int, *, loss: bool = True, precision: str = "float32"
) -> BatchRun:
    """Make a model and its windows."""
    forward = random_model(shape, precision, default_device())
    drawn = random_windows(windows, forward.head.vocabulary)
    predicted = [next_tokens(window) for window in drawn] if loss else None
    widths = [forward.config.hidden_size] * (forward.config.num_hidden_layers + 1)
    return BatchRun(forward, shape, drawn, predicted, 0, widths, threads)


def dump(folder: str, shape: str, windows: int, threads: int, loss: bool, **options: str) -> Work:
    """The workflow's way: hidden states of all layers to HDF5 files, and the loss if asked for."""
    run = batch_run(shape, windows, threads, loss=loss, **options)
    ids = np.concatenate([window.ids for window in run.windows])
    row_bytes = len(run.widths) * (4 * run.widths[0] + 16)

    def work() -> dict[str, float]:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            require_space(Path(scratch), run.tokens * row_bytes)
            start = time.perf_counter()
            writer = TimedWriter(Path(scratch), run.widths, ids, ids, {})
            run.write(writer, None)
            writer.close()
            seconds = time.perf_counter() - start
        rate = writer.written / writer.seconds / 1e6
        return {"seconds": seconds, "tokens": run.tokens, "MB/s to HDF5": rate, **gpu_peak()}

    once(run)
    return warmed_up(run, work)


def bare(shape: str, windows: int, threads: int, style: str, **options: str) -> Work:
    """A forward pass over the same batches that keeps nothing.

    `style` is ``"side by side"``, as many batches at a time as there are threads; ``"one by one"``, with
    all threads at each; or ``"logits"``, side by side and with the logits that a language model gives.
    """
    run = batch_run(shape, windows, threads, **options)
    batches = run.batches(_batch_size(run))
    compute = _with_logits if style == "logits" else _states_only
    once(run)

    def work() -> dict[str, float]:
        if style == "one by one":
            import torch

            torch.set_num_threads(threads)
            for batch in batches:
                compute(run, batch)
        else:
            workers = threads if run.forward.device.type == "cpu" else 1
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(lambda batch: compute(run, batch), batches))
        synchronise(run)
        return {"tokens": run.tokens, **gpu_peak()}

    return warmed_up(run, work)


def products_at_their_fastest(shape: str, windows: int, threads: int, **options: str) -> Work:
    """As many operations as the weights of the blocks take on the windows, in large square products."""
    import torch

    run = batch_run(shape, windows, threads, **options)
    weights = sum(
        module.weight.numel()
        for module in run.forward.model.modules()
        if isinstance(module, torch.nn.Linear)
    )
    square = torch.rand(PRODUCT_SIDE, PRODUCT_SIDE)
    # The rest of a product is left out: less than a hundredth of a pass.
    products = 2 * weights * run.tokens // (2 * PRODUCT_SIDE**3)
    torch.set_num_threads(threads)
    torch.mm(square, square)

    def work() -> dict[str, float]:
        for _ in range(products):
            torch.mm(square, square)
        return {"GFlop": products * 2 * PRODUCT_SIDE**3 / 1e9}

    return work


def authors_loop(shape: str, windows: int, threads: int, **options: str) -> Work:
    """One window at a time, hidden states of all layers to the host and kept in memory."""
    import torch

    run = batch_run(shape, windows, threads, **options)
    once(run)

    def work() -> dict[str, float]:
        torch.set_num_threads(threads)
        kept: list[list[torch.Tensor]] = []
        with torch.inference_mode():
            for window in run.windows:
                output = run.forward.run([window.ids], 0, output_hidden_states=True)
                kept.append([state[0].cpu() for state in output.hidden_states])
            layers = [torch.cat(states) for states in zip(*kept, strict=True)]
        return {"tokens": len(layers[0])}

    return warmed_up(run, work)


def once(run: BatchRun) -> None:
    """Load kernels and buffers, with one window."""
    _states_only(run, run.batches(1)[0])
    synchronise(run)


def warmed_up(run: BatchRun, work: Work) -> Work:
    """On a GPU do all of it before the time begins: libraries are loaded, and memory is pinned, once."""
    if run.forward.device.type == "cuda":
        work()
    return work


def synchronise(run: BatchRun) -> None:
    """Wait for a GPU."""
    import torch

    if run.forward.device.type == "cuda":
        torch.cuda.synchronize(run.forward.device)


def gpu_peak() -> dict[str, float]:
    """Memory that tensors took on the GPU, if there is one."""
    import torch

    peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    return {"GPU, GB": peak / 1e9} if peak else {}


def _batch_size(run: BatchRun) -> int:
    from shape_of_learning.embeddings.batch_size import automatic_batch_size

    return automatic_batch_size(run.forward, max(len(window.ids) for window in run.windows))


def _states_only(run: BatchRun, batch: Batch) -> None:
    import torch

    with torch.inference_mode():
        _forward(run, batch)


def _with_logits(run: BatchRun, batch: Batch) -> None:
    import torch

    with torch.inference_mode():
        output = _forward(run, batch)
        for state in output.last_hidden_state:
            run.forward.head.logits(state, type(output))


def _forward(run: BatchRun, batch: Batch) -> "ModelOutput":
    texts = [run.windows[number].ids for number in batch.windows]
    return run.forward.run(texts, run.padding, batch.shape)
