"""Compare seconds, memory and values on a GPU and on the CPU beside it.

    python -m benchmarks.gpu

The model has the shape of Pythia-160M and random weights; it reads 128 windows of 512 characters, as in the papers.
One row per task and device goes to benchmarks/results/gpu.csv; `difference` is the largest relative difference from the
values of the CPU.
"""

import csv
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers

import shape_of_learning as sol
from benchmarks.peers import draw_cloud
from shape_of_learning.corpus.fetch import read_demo_text

RESULTS = Path(__file__).parent / "results"
CLOUDS = ((4096, 768), (4096, 4096), (16384, 2048))


def make_tokenizer(text: str) -> transformers.PreTrainedTokenizerFast:
    """Make a tokenizer of 8,000 tokens for the built-in text."""
    bpe = tokenizers.ByteLevelBPETokenizer()
    bpe.train_from_iterator([text], vocab_size=8000, show_progress=False)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer)


def make_model() -> transformers.PreTrainedModel:
    """Make a model of Pythia-160M's shape with random weights."""
    torch.manual_seed(0)
    config = transformers.GPTNeoXConfig(
        vocab_size=50304,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
    )
    return transformers.GPTNeoXForCausalLM(config).eval()


def time_task(task: Callable[[], np.ndarray], device: str) -> tuple[np.ndarray, float, float]:
    """Return a task's values, its seconds and the GPU memory at its peak in GB.

    The first of two runs on a GPU loads its kernels and is not counted.
    """
    for _ in range(2 if device == "cuda" else 1):
        if device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        values = task()
        seconds = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else float("nan")
    return values, seconds, peak


def main() -> None:
    """Time each task on both devices and write the table."""
    text = read_demo_text()
    tokenizer = make_tokenizer(text)
    windows = [text[start : start + 512] for start in range(0, 512 * 128, 512)]
    tasks: dict[str, Callable[[str], np.ndarray]] = {}
    for n, d in CLOUDS:
        X = torch.from_numpy(draw_cloud(n, d))
        size = f"{n} x {d}"
        tasks[f"nearest_distances {size}"] = lambda device, X=X: sol.nearest_distances(
            X.to(device), 100
        )
        tasks[f"anisotropy {size}"] = lambda device, X=X: np.array([sol.anisotropy(X.to(device))])
    model = make_model()
    tasks["measure pythia-160m"] = lambda device: sol.measure(
        model, tokenizer, windows, device=device
    )["value"].to_numpy(float)
    rows = []
    for name, task in tasks.items():
        cpu_values = None
        for device in ("cpu", "cuda"):
            values, seconds, peak = time_task(lambda task=task, device=device: task(device), device)
            cpu_values = values if cpu_values is None else cpu_values
            difference = np.nanmax(np.abs(values - cpu_values) / np.abs(cpu_values))
            machine = (
                torch.cuda.get_device_name() if device == "cuda" else f"{os.cpu_count()} cores"
            )
            rows.append([name, machine, f"{seconds:.3f}", f"{peak:.2f}", f"{difference:.1e}"])
            print(*rows[-1], sep=", ", flush=True)
            RESULTS.mkdir(exist_ok=True)
            with (RESULTS / "gpu.csv").open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(
                    [["task", "device", "seconds", "peak_gb", "difference"], *rows]
                )


if __name__ == "__main__":
    main()
