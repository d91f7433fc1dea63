"""Time a step, a measurement and a manifest of a ShapeCallback in a training of Pythia-160M's shape.

    python -m benchmarks.callback

prints the seconds, and the share of time at one measurement in 1,000 steps, on a GPU if there is one.
"""

import statistics
import tempfile
import time

import torch

from benchmarks.gpu import make_model, make_tokenizer
from shape_of_learning.corpus.fetch import read_demo_text
from shape_of_learning.machine import count_cores
from shape_of_learning.training import ShapeProbe, write_manifest

BATCH, LENGTH, STEPS, EVERY = 8, 512, 3, 1000


def main() -> None:
    """Train a few steps, measure between them."""
    text = read_demo_text()
    tokenizer = make_tokenizer(text)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = make_model().to(device).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    windows = [text[start : start + 512] for start in range(0, 512 * 64, 512)]
    with tempfile.TemporaryDirectory() as folder:
        probe = ShapeProbe(tokenizer, windows, table=f"{folder}/shape.csv")
        steps, probes = [], []
        for step in range(STEPS):
            ids = torch.randint(0, 8000, (BATCH, LENGTH), device=device)
            start = time.perf_counter()
            model(input_ids=ids, labels=ids).loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            if device == "cuda":
                torch.cuda.synchronize()
            middle = time.perf_counter()
            probe(model, step)
            steps.append(middle - start)
            probes.append(time.perf_counter() - middle)
        model.save_pretrained(f"{folder}/checkpoint")
        start = time.perf_counter()
        write_manifest(f"{folder}/checkpoint", STEPS, count_cores())
        manifest = time.perf_counter() - start
    step, measurement = statistics.median(steps), statistics.median(probes)
    print(
        f"{device}: a step of {BATCH} x {LENGTH} tokens takes {step:.2f} s, a measurement {measurement:.2f} s"
    )
    print(
        f"at every {EVERY} steps it takes {measurement / (EVERY * step + measurement):.2%} of the time"
    )
    print(
        f"a manifest takes {manifest:.2f} s, at every {EVERY} steps {manifest / (EVERY * step + manifest):.2%}"
    )


if __name__ == "__main__":
    main()
