import csv
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_benchmark_of_the_stream_runs_and_its_values_agree(tmp_path):
    """What it measures is no matter of a test; that it compares what it says it does is."""
    output = tmp_path / "stream.csv"
    sizes = ["--tokens", "300", "--subset", "300", "--width", "20", "--repeats", "1"]
    files = ["--folder", tmp_path, "--output", output]
    subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "streamed_anisotropy.py", *sizes, *files],
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow")}, check=True, capture_output=True,
    )  # fmt: skip
    with output.open() as file:
        lines = {line["what"]: line for line in csv.DictReader(file)}
    assert list(lines) == ["start", "read", "products", "streamed", "job", "in_memory", "svd"]
    shares = {what: float(line["centred"]) for what, line in lines.items() if line["centred"]}
    assert set(shares) == {"streamed", "job", "in_memory", "svd"}
    assert max(shares.values()) - min(shares.values()) < 1e-9
    assert list(tmp_path.iterdir()) == [output]
