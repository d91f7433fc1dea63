"""Measure anisotropy streamed from a file of hidden states, against a decomposition in memory.

A layer of random hidden states is written as the workflow writes it: strong directions with a slowly
falling spectrum, noise and an offset. Each of the measurements below is a process of its own, of which
wall time, processor time and peak memory are taken; all but the decompositions are repeated.

    read        all rows, a block at a time, as the stream reads them
    products    the same, and X^T X of the blocks in float64, which is the least that one pass can do
    streamed    the same rows to both anisotropies
    job         the script of the workflow: four measures, distinct rows, start-up
    start       the same script up to its arguments
    in_memory   `anisotropy` of one matrix in memory, the first rows of the layer
    svd         full singular value decomposition of the same matrix, as a reference

    PYTHONPATH=workflow python benchmarks/streamed_anisotropy.py --tokens 121000 --width 4096

One line per measurement is added to a table. Values that should agree are compared.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from shape_of_learning import anisotropy
from shape_of_learning.command_line import run
from shape_of_learning.csv_table import read_rows, write_table
from shape_of_learning.embeddings.hidden_state_files import HiddenStateWriter
from shape_of_learning.embeddings.hidden_state_rows import HiddenStateRows
from shape_of_learning.files import require_space
from shape_of_learning.metrics.measurements import BATCH_COLUMNS
from shape_of_learning.moments import Moments, rows_per_block
from shape_of_learning.random_streams import random_stream

INSIDE = [sys.executable, __file__, "--inside"]
SCRIPT = Path(__file__).parents[1] / "workflow" / "scripts" / "measure_isotropy.py"
ESTIMATORS = ("anisotropy", "anisotropy_uncentered", "average_cosine", "average_cosine_centered")
# Relative, of the stream and of one matrix in memory against the decomposition.
AGREEMENT = 1e-9


@dataclass(frozen=True)
class Measured:
    """One line of the table: medians over `repeats`; memory in GB of 10^9 bytes."""

    what: str
    tokens: int
    width: int
    threads: int
    repeats: int
    seconds: float
    least_seconds: float
    cpu_seconds: float
    peak_gb: float
    load: float
    centred: float | None
    uncentred: float | None


def main(
    tokens: int,
    width: int,
    subset: int,
    threads: int,
    repeats: int,
    only: list[str],
    folder: Path | None,
    output: Path,
) -> None:
    """Measure and add to `output`."""
    columns = tuple(field.name for field in fields(Measured))
    before = read_rows(output, columns) if output.exists() else []
    lines: list[Measured] = []
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        # In a process of its own, since a child's peak of memory counts from that of its parent.
        subprocess.run([*INSIDE, "write", scratch, str(tokens), str(width)], check=True)
        for what in only:
            rows = subset if what in ("in_memory", "svd") else tokens
            times = 1 if what == "svd" else repeats
            results = [timed(what, Path(scratch), rows, threads) for _ in range(times)]
            lines.append(summary(what, rows, width, threads, results))
            write_table(output, columns, [*before, *map(astuple, lines)])
            print(
                f"{what:12}{lines[-1].seconds:10.3f} s{lines[-1].cpu_seconds:10.3f} s of CPU"
                f"{lines[-1].peak_gb:8.3f} GB   load {lines[-1].load:.1f}"
            )
    compare(lines)


def write_layer(folder: Path, tokens: int, width: int) -> None:
    """Write hidden states of a falling spectrum, about half of it one direction."""
    require_space(folder, tokens * (4 * width + 16))
    random = random_stream(0, "benchmark of the stream")
    scales = np.float32(3) * np.arange(1, width + 1, dtype=np.float32) ** -0.75
    offset = random.standard_normal(width, dtype=np.float32)
    numbers = np.arange(tokens)
    writer = HiddenStateWriter(folder, [width], numbers, numbers, {})
    for start in range(0, tokens, 1024):
        rows = slice(start, min(start + 1024, tokens))
        values = random.standard_normal((rows.stop - rows.start, width), dtype=np.float32)
        writer.write(0, rows, values * scales + offset)
    writer.close()


def timed(what: str, folder: Path, rows: int, threads: int) -> dict[str, float]:
    """Run one measurement in a process of its own, and return what it says and took."""
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1])}
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[variable] = str(threads)
    if what in ("job", "start"):
        command = [sys.executable, str(SCRIPT), "--help"]
        if what == "job":
            command[2:] = [
                *("--embeddings", str(folder), "--layer", "0", "--batch-vectors", str(rows)),
                *("--estimator", *ESTIMATORS, "--output"),
                *(str(folder / f"{name}.csv") for name in ESTIMATORS),
            ]
    else:
        command = [*INSIDE, what, str(folder), str(rows)]
    load = os.getloadavg()[0]
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise RuntimeError(f"{' '.join(command)} failed")
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    result = {
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_gb": usage.ru_maxrss * unit / 1e9,
        "load": load,
    }
    if what == "job":
        for key, name in (("centred", "anisotropy"), ("uncentred", "anisotropy_uncentered")):
            result[key] = float(read_rows(folder / f"{name}.csv", BATCH_COLUMNS)[0][-1])
    elif what != "start":
        result |= json.loads(said.splitlines()[-1])
    return result


def inside(what: str, folder: Path, count: int) -> dict[str, float]:
    """Do one measurement; its seconds leave out the start of the interpreter."""
    with HiddenStateRows(folder, 0) as layer:
        size, rows = rows_per_block(layer.width), slice(0, count)
        if what in ("in_memory", "svd"):
            X = np.concatenate(list(layer.blocks(rows, size)))
            work: Callable[[], dict[str, float]] = {
                "in_memory": lambda: {"centred": anisotropy(X)},
                "svd": lambda: {"centred": share(X - X.mean(axis=0, dtype=float))},
            }[what]
        else:
            work = {
                "read": lambda: [len(block) for block in layer.blocks(rows, size)] and {},
                "products": lambda: products(layer, rows, size),
                "streamed": lambda: streamed(layer, rows, size),
            }[what]
        import scipy.linalg  # noqa: F401

        start = time.perf_counter()
        values = work()
        return {**values, "seconds": time.perf_counter() - start}


def products(layer: HiddenStateRows, rows: slice, size: int) -> dict[str, float]:
    """X^T X, without shift, in place."""
    from scipy.linalg.blas import dsyrk

    total = np.zeros((layer.width, layer.width), order="F")
    for block in layer.blocks(rows, size):
        dsyrk(1.0, block.astype(float).T, beta=1.0, c=total, overwrite_c=True)
    return {}


def streamed(layer: HiddenStateRows, rows: slice, size: int) -> dict[str, float]:
    """Both anisotropies from one pass."""
    moments = Moments(layer.width, {"scatter"})
    for block in layer.blocks(rows, size):
        moments.add(block)
    return {"centred": anisotropy(moments), "uncentred": anisotropy(moments, center=False)}


def share(X: np.ndarray) -> float:
    """Anisotropy by its definition."""
    squares = np.linalg.svd(X, compute_uv=False) ** 2
    return float(squares[0] / squares.sum())


def summary(what: str, rows: int, width: int, threads: int, results: list[dict]) -> Measured:
    """Medians of repeated measurements, whose values must be the same."""
    values = {(result.get("centred"), result.get("uncentred")) for result in results}
    if len(values) != 1:
        raise RuntimeError(f"{what} gave {values} for the same rows")
    centred, uncentred = values.pop()

    def median(key: str) -> float:
        return statistics.median(result[key] for result in results)

    return Measured(
        what=what,
        tokens=rows,
        width=width,
        threads=threads,
        repeats=len(results),
        seconds=median("seconds"),
        least_seconds=min(result["seconds"] for result in results),
        cpu_seconds=median("cpu_seconds"),
        peak_gb=max(result["peak_gb"] for result in results),
        load=max(result["load"] for result in results),
        centred=centred,
        uncentred=uncentred,
    )


def compare(lines: list[Measured]) -> None:
    """Raise if two ways to one number disagree."""
    for one in lines:
        for other in lines:
            for key in ("centred", "uncentred"):
                a, b = getattr(one, key), getattr(other, key)
                if one.tokens == other.tokens and None not in (a, b) and abs(a / b - 1) > AGREEMENT:
                    raise RuntimeError(f"{key}: {a} ({one.what}) but {b} ({other.what})")


if __name__ == "__main__":
    if sys.argv[1:3] == ["--inside", "write"]:
        write_layer(Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
        sys.exit()
    if sys.argv[1:2] == ["--inside"]:
        print(json.dumps(inside(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))))
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=121_000)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--subset", type=int, default=4096, help="rows that are decomposed")
    parser.add_argument("--threads", type=int, default=1, help="as of a job")
    parser.add_argument("--repeats", type=int, default=5)
    kinds = ["start", "read", "products", "streamed", "job", "in_memory", "svd"]
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--folder", type=Path, help="where the layer is written to")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "streamed_anisotropy.csv"
    )
    run(main, parser)
