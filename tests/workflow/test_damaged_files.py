"""What was damaged since it was written is refused where it is used, in one sentence that names it."""

import re
import subprocess
from pathlib import Path

import pytest

import tiny_runs
from checkouts import Checkout, check_out, replaced
from mirrors import Mirror, served

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


def test_passwords_of_an_address_are_found_nowhere(checkout):
    """Not in what a run prints, commands included, writes or remembers."""
    settings = tiny_runs.set_up(checkout)
    export = checkout.folder / "export.xml"
    with served(Mirror(export.read_bytes())) as url:
        url = url.replace("://", "://someone:s3cr%40t@") + "?token=t0k3n"
        source = {"urls": [url], "format": "mediawiki"}
        corpus = {"source": "export", "sources": {"export": source}}
        checkout.write("tiny.yaml", {**settings, "corpus": corpus})
        made = ("results/corpus/export/text.txt", "results/tables/protocol.yaml")
        options = ("--configfile", "tiny.yaml", "--cores", "1", "--printshellcmds", "--verbose")
        said = checkout.snakemake(*options, "--", *made)
        said += checkout.snakemake("--configfile", "tiny.yaml", "--detailed-summary", *made)
    assert "accepted without a check of its content" in said
    export.unlink()
    (checkout.folder / "tiny.yaml").unlink()
    written = [path for path in checkout.folder.rglob("*") if path.is_file()]
    texts = {str(path): path.read_bytes() for path in written} | {"terminal": said.encode()}
    for secret in (b"s3cr", b"t0k3n", b"someone"):
        assert [name for name, text in texts.items() if secret in text] == []
    wrong = {**settings, "corpus": {"source": "export", "sources": {"export": {"urls": url}}}}
    checkout.write("tiny.yaml", wrong)
    said = checkout.snakemake("--configfile", "tiny.yaml", "--dry-run", succeeds=False)
    assert "s3cr" not in said
    assert "t0k3n" not in said
