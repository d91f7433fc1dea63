import csv
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_benchmark_of_the_dump_runs_and_adds_a_line_each_time(tmp_path):
    """What it measures is no matter of a test; that it runs without a GPU is."""
    command = [sys.executable, ROOT / "benchmarks" / "dump_on_gpu.py", "--shape", "tiny", "tiny"]
    options = ["--windows", "5", "--folder", tmp_path, "--output", tmp_path / "dump.csv"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([*command, *options], env=environment, check=True, capture_output=True)
    with (tmp_path / "dump.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [(line["shape"], line["device"], line["windows"]) for line in lines] == [
        ("tiny", "cpu", "5")
    ] * 2
    assert lines[0]["tokens"] == lines[1]["tokens"]
    assert all(float(line["tokens_per_second"]) > 0 for line in lines)
    assert list(tmp_path.iterdir()) == [tmp_path / "dump.csv"]
