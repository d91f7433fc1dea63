"""What was damaged since it was written is refused where it is used, in one sentence that names it."""

import re
import subprocess
from pathlib import Path

import pytest

import tiny_runs
from checkouts import Checkout, check_out, replaced

TINY = ("--configfile", "tiny.yaml", "--cores", "1", "--quiet", "rules")
# Times of what lies between are no reason: nothing else shall be made anew.
AS_DAMAGED = ("--rerun-triggers", "params", "--")
STEP = "tiny/step1"
MEASURED = "results/measurements/tiny/step1"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Checkout:
    checkout = check_out(tmp_path_factory.mktemp("whole") / "checkout")
    settings = tiny_runs.set_up(checkout)
    checkout.write("tiny.yaml", {**settings, "embeddings": {"keep": True}})
    checkout.snakemake(*TINY, "--", "results/tables/estimates.csv")
    return checkout


@pytest.fixture
def copy(finished, tmp_path) -> Checkout:
    subprocess.run(["cp", "-a", finished.folder, tmp_path / "copy"], check=True)
    return Checkout(tmp_path / "copy")


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    replaced(path, bytes(content))


def truncate(path: Path) -> None:
    replaced(path, path.read_bytes()[: path.stat().st_size // 2])


FAULTS = [
    (f"results/embeddings/{STEP}/layer_1.h5", flip_a_bit, f"{MEASURED}/isotropy/layer_1.csv"),
    (f"results/embeddings/{STEP}/layer_0.h5", truncate, f"{MEASURED}/dimension/layer_0.csv"),
]


@pytest.mark.parametrize(("file", "damage", "target"), FAULTS)
def test_a_damaged_file_is_refused_by_name(copy, file, damage, target):
    before = (copy.folder / file).read_bytes()
    (copy.folder / target).unlink()
    damage(copy.folder / file)
    assert (copy.folder / file).read_bytes() != before
    said = copy.snakemake(*TINY, *AS_DAMAGED, target, succeeds=False)
    [sentence] = {line for line in said.splitlines() if line.startswith("ERROR: ")}
    assert Path(file).name in sentence
    assert re.search(r"delete .* run again|run again .*delete", sentence)
    assert "Traceback" not in said
    assert not (copy.folder / target).exists()
