"""What was damaged since it was written is refused where it is used, in one sentence that names it."""

import re
import subprocess
from pathlib import Path

import h5py
import pytest

import tiny_runs
from checkouts import Checkout, check_out, replaced
from mirrors import Mirror, served

TINY = ("--configfile", "tiny.yaml", "--cores", "1", "--quiet", "rules")
# Times of what lies between are no reason: nothing else shall be made anew.
AS_DAMAGED = ("--rerun-triggers", "params", "--")
STEP = "tiny/step1"
MEASURED = "results/measurements/tiny"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Checkout:
    checkout = check_out(tmp_path_factory.mktemp("whole") / "checkout")
    settings = tiny_runs.set_up(checkout)
    # A figure that draws losses, and so the verdicts.
    figures = {**settings["figures"], "loss_by_step": "all"}
    checkout.write("tiny.yaml", {**settings, "embeddings": {"keep": True}, "figures": figures})
    checkout.snakemake(*TINY)
    return checkout


@pytest.fixture
def copy(finished, tmp_path) -> Checkout:
    subprocess.run(["cp", "-a", finished.folder, tmp_path / "copy"], check=True)
    return Checkout(tmp_path / "copy")


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    replaced(path, bytes(content))


def cut_in_the_last_number(path: Path) -> None:
    replaced(path, path.read_bytes()[:-3])


def cut_the_last_line(path: Path) -> None:
    replaced(path, b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def empty_the_values(path: Path) -> None:
    replaced(path, re.sub(rb",[^,\n]*(?=\n[0-9]|\n$)", b",", path.read_bytes()))


def swap_layers(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs["layer"] = 1 - file.attrs["layer"]


def take_the_other_step(path: Path) -> None:
    """With its digest."""
    other = Path(str(path).replace("step1", "step0"))
    for end in ("", ".sha256"):
        replaced(Path(f"{path}{end}"), Path(f"{other}{end}").read_bytes())


def truncate(path: Path) -> None:
    replaced(path, path.read_bytes()[: path.stat().st_size // 2])


GATHERED = "results/tables/every_checkpoint/tiny"
FAULTS = [
    ("resources/corpus/export.raw", truncate, "results/corpus/export/text.txt"),
    ("results/corpus/export/text.txt", flip_a_bit, "results/losses/tiny/step1.csv"),
    ("results/corpus/export/alphabet.json", truncate, "results/losses/tiny/step1.csv"),
    (f"results/embeddings/{STEP}/layer_1.h5", flip_a_bit, f"{MEASURED}/step1/anisotropy.csv"),
    (f"results/embeddings/{STEP}/layer_0.h5", swap_layers, f"{MEASURED}/step1/anisotropy.csv"),
    (f"results/embeddings/{STEP}/layer_1.h5", truncate, f"results/neighbours/{STEP}/layer_1.h5"),
    (f"results/neighbours/{STEP}/layer_0.h5", flip_a_bit, f"{MEASURED}/step1/two_nn.csv"),
    (f"results/neighbours/{STEP}/layer_1.h5", take_the_other_step, f"{MEASURED}/step1/two_nn.csv"),
    *(
        (
            f"{MEASURED}/step1/two_nn.csv",
            fault,
            f"{GATHERED}/two_nn/measurements.csv",
        )
        for fault in (
            cut_the_last_line,
            cut_in_the_last_number,
            empty_the_values,
            take_the_other_step,
        )
    ),
    *(
        (
            f"results/left_out/{STEP}/two_nn.csv",
            fault,
            f"{GATHERED}/two_nn/measurements.csv",
        )
        for fault in (cut_in_the_last_number, take_the_other_step)
    ),
    ("results/losses/tiny/step1.csv", cut_in_the_last_number, "results/tables/verdicts/tiny.csv"),
    (
        f"{GATHERED}/two_nn/measurements.csv",
        cut_the_last_line,
        "results/tables/measurements.csv",
    ),
    ("results/tables/verdicts/tiny.csv", flip_a_bit, "results/figures/loss_by_step.pdf"),
    (
        "results/tables/last_checkpoint/tiny/anisotropy/estimates.csv",
        empty_the_values,
        "results/figures/figure_1.pdf",
    ),
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
