"""Ways to run windows of text through a model, as contenders: for the hidden states, or for nothing."""

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.ours import Work
from benchmarks.random_models import random_model, random_windows
from shape_of_learning.embeddings.cross_entropy import next_tokens
from shape_of_learning.embeddings.hidden_state_files import HiddenStateWriter, file_bytes
from shape_of_learning.embeddings.placement import default_device
from shape_of_learning.embeddings.sample_run import SampleRun
from shape_of_learning.embeddings.window_batch_size import automatic_window_batch_size
from shape_of_learning.embeddings.window_batches import (
    WindowBatch,
    window_batches_by_length,
    window_batches_of_equal_work,
)
from shape_of_learning.random_streams import random_stream
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


def sample_run(
    shape: str, windows: int, threads: int, *, loss: bool = True, precision: str = "float32"
) -> SampleRun:
    """Make a model and its windows."""
    forward = random_model(shape, precision, default_device())
    drawn = random_windows(windows, forward.head.vocabulary)
    predicted = [next_tokens(window) for window in drawn] if loss else None
    widths = [forward.config.hidden_size] * (forward.config.num_hidden_layers + 1)
    return SampleRun(forward, shape, drawn, predicted, 0, widths, threads)


def writing(folder: str, tokens: int, width: int) -> Work:
    """Write one layer of noise."""
    states = random_stream(0, "benchmark of a layer").standard_normal((tokens, width), np.float32)
    numbers = np.arange(tokens)
    rows = {name: numbers for name in ("token_ids", "positions", "windows")}

    def work() -> dict[str, float]:
        writer = HiddenStateWriter(
            Path(folder), [width], {**rows, "special": np.zeros(tokens, bool)}, {}
        )
        writer.write(0, slice(0, tokens), states)
        writer.close()
        return {}

    return work


def dump(folder: str, shape: str, windows: int, threads: int, loss: bool, **options: str) -> Work:
    """The workflow's way: hidden states of all layers to HDF5 files, and the loss if asked for."""
    run = sample_run(shape, windows, threads, loss=loss, **options)

    def work() -> dict[str, float]:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            require_space(Path(scratch), sum(file_bytes(run.tokens, width) for width in run.widths))
            start = time.perf_counter()
            writer = TimedWriter(Path(scratch), run.widths, run.rows, {})
            run.into(writer)
            writer.close()
            seconds = time.perf_counter() - start
        rate = writer.written / writer.seconds / 1e6
        return {"seconds": seconds, "tokens": run.tokens, "MB/s to HDF5": rate, **gpu_peak()}

    once(run)
    return warmed_up(run, work)


def bare(shape: str, windows: int, threads: int, style: str, **options: str) -> Work:
    """A forward pass over the same window batches that keeps nothing.

    `style` is ``"side by side"``, as many of them at a time as there are threads; ``"one by one"``, with
    all threads at each; or ``"logits"``, side by side and with the logits that a language model gives.
    """
    run = sample_run(shape, windows, threads, **options)
    batches = _window_batches(run)
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

    run = sample_run(shape, windows, threads, **options)
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

    run = sample_run(shape, windows, threads, **options)
    once(run)

    def work() -> dict[str, float]:
        torch.set_num_threads(threads)
        kept: list[list[torch.Tensor]] = []
        with torch.inference_mode():
            for window in run.windows:
                alone = [window.ids], (1, len(window.ids))
                output = _forward(run, *alone, output_hidden_states=True)
                kept.append([state[0].cpu() for state in output.hidden_states])
            layers = [torch.cat(states) for states in zip(*kept, strict=True)]
        return {"tokens": len(layers[0])}

    return warmed_up(run, work)


def once(run: SampleRun) -> None:
    """Load kernels and buffers, with one window."""
    _states_only(run, WindowBatch(np.array([0]), (1, len(run.windows[0].ids))))
    synchronise(run)


def warmed_up(run: SampleRun, work: Work) -> Work:
    """On a GPU do all of it before the time begins: libraries are loaded, and memory is pinned, once."""
    if run.forward.device.type == "cuda":
        work()
    return work


def synchronise(run: SampleRun) -> None:
    """Wait for a GPU."""
    import torch

    if run.forward.device.type == "cuda":
        torch.cuda.synchronize(run.forward.device)


def gpu_peak() -> dict[str, float]:
    """Memory that tensors took on the GPU, if there is one."""
    import torch

    peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    return {"GPU, GB": peak / 1e9} if peak else {}


def _window_batches(run: SampleRun) -> list[WindowBatch]:
    size = automatic_window_batch_size(run.forward, max(len(window.ids) for window in run.windows))
    on_cpu = run.forward.device.type == "cpu"
    join = window_batches_by_length if on_cpu else window_batches_of_equal_work
    return join(run.windows, size, run.forward.context())


def _states_only(run: SampleRun, batch: WindowBatch) -> None:
    import torch

    with torch.inference_mode():
        _forward(run, *_texts(run, batch))


def _with_logits(run: SampleRun, batch: WindowBatch) -> None:
    import torch

    with torch.inference_mode():
        output = _forward(run, *_texts(run, batch))
        for state in output.last_hidden_state:
            run.forward.head.logits(state, type(output))


def _texts(run: SampleRun, batch: WindowBatch) -> tuple[list[np.ndarray], tuple[int, int]]:
    return [run.windows[number].ids for number in batch.windows], batch.shape


def _forward(
    run: SampleRun, texts: list[np.ndarray], shape: tuple[int, int], **options: Any
) -> "ModelOutput":
    """Run the base model on texts padded to `shape`, and nothing else."""
    import torch

    ids, mask = np.zeros((2, *shape), np.int64)
    for row in range(shape[0]):
        text = texts[min(row, len(texts) - 1)]
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    on_device = [torch.from_numpy(each).to(run.forward.device) for each in (ids, mask)]
    return run.forward.model(input_ids=on_device[0], attention_mask=on_device[1], **options)
