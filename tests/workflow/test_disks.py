"""Disks that are full or read-only, and files on them that cannot be read: one clear sentence."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pytest
from shape_of_learning.embeddings.hidden_state_files import HiddenStateWriter, file_bytes

from checkouts import REPOSITORY, Checkout
from exports import write_export
from hub_fetching import small_disk
from shape_of_learning.embeddings.run import SamplingProtocol
from shape_of_learning.storage.digests import add_digest
from tiny_models import TEXT, save_tiny_model

SCRIPTS = REPOSITORY / "workflow" / "scripts"


def command(script: str, **options: object) -> list[str]:
    arguments = []
    for name, value in options.items():
        values = value if isinstance(value, list) else [value]
        arguments += [f"--{name.replace('_', '-')}", *map(str, values)]
    return [sys.executable, str(SCRIPTS / f"{script}.py"), *arguments]


def refusal(checkout: Checkout, script: str, **options: object) -> str:
    """The one line that a script prints as it fails."""
    environment = checkout.environment(PYTHONPATH=str(SCRIPTS.parent))
    done = subprocess.run(
        command(script, **options), env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr[-3000:]
    lines = [line for line in done.stderr.splitlines() if not line.startswith("INFO: ")]
    assert len(lines) == 1, done.stderr[-3000:]
    assert lines[0].startswith("ERROR: ")
    return lines[0]


def fill(disk: Path, *, but_for: int = 0) -> None:
    """Fill a disk as another program would, all but so many bytes."""
    reserve = disk / "reserve"
    reserve.write_bytes(b"." * but_for)
    with (disk / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"." * 4096)
        except OSError:
            pass
    reserve.unlink()


def dump_options(folder: Path, output: Path) -> dict[str, object]:
    """A tiny checkpoint on windows enough for half a megabyte."""
    checkpoint = save_tiny_model(folder / "model", "gpt_neox")
    text = folder / "text.txt"
    text.write_text(" ".join(TEXT * 40))
    shape = {"role": "decoder", "layers": 3, "hidden_size": 32, "last_hidden_size": 32}
    return {
        "checkpoint": checkpoint, "text": text, "model": "m", "revision": "main",
        "shape": json.dumps(shape), "protocol": SamplingProtocol(40, 60, 0).to_json(), "threads": 1,
        "output": output / "dump", "loss": output / "loss.csv", "log": output / "dump.log",
        "tensors": output / "t.csv",
    }  # fmt: skip


def rows_of(tokens: int) -> dict[str, np.ndarray]:
    """What each row is, of one long window."""
    numbers = np.arange(tokens)
    columns = {name: numbers for name in ("token_ids", "positions", "windows")}
    return {**columns, "special": np.zeros(tokens, bool)}


def test_a_dump_onto_a_disk_that_is_too_small_is_one_sentence(checkout, tmp_path):
    with small_disk(tmp_path / "disk", "1m") as disk:
        fill(disk, but_for=100_000)
        said = refusal(checkout, "dump_embeddings", **dump_options(tmp_path, disk))
        assert "MB are free there" in said
        assert {path.name for path in disk.iterdir()} == {"filler", "dump.log"}


def test_a_disk_that_others_fill_while_a_dump_is_written_does_it_no_harm(tmp_path):
    """HDF5 crashes where a write fails, so all space is taken before the first."""
    tokens, widths = 3000, [64, 64]
    order = np.random.default_rng(0).permutation(tokens // 10)
    values = np.random.default_rng(1).normal(size=(tokens, 64)).astype(np.float32)
    with small_disk(tmp_path / "disk", "4m") as disk:
        (disk / "dump").mkdir()
        writer = HiddenStateWriter(disk / "dump", widths, rows_of(tokens), {"model": "m"})
        fill(disk)
        for layer in range(len(widths)):
            for start in 10 * order:
                rows = slice(start, start + 10)
                writer.write(layer, rows, values[rows])
        writer.describe({"loss": 1.0, "device": "a long name " * 100})
        writer.close()
        for layer in range(len(widths)):
            with h5py.File(disk / "dump" / f"layer_{layer}.h5") as file:
                np.testing.assert_array_equal(file["embeddings"], values)
                np.testing.assert_array_equal(file["token_ids"], np.arange(tokens))


def test_a_disk_that_is_full_at_the_last_moment_ends_before_hdf5_writes(tmp_path):
    with small_disk(tmp_path / "disk", "1m") as disk:
        (disk / "dump").mkdir()
        fill(disk)
        with pytest.raises(OSError, match=r"No space left on device: '.*layer_0\.h5'"):
            HiddenStateWriter(disk / "dump", [64], rows_of(3000), {})


@pytest.mark.parametrize(("tokens", "width"), [(1, 8), (7, 3), (999, 64), (4000, 4096)])
def test_no_file_is_larger_than_what_was_reserved_for_it(tmp_path, tokens, width, monkeypatch):
    monkeypatch.setattr("shape_of_learning.storage.chunked_rows.CHUNK_BYTES", 4 * width)
    writer = HiddenStateWriter(tmp_path, [width], rows_of(tokens), {})
    for row in np.random.default_rng(0).permutation(tokens):  # each in a chunk of its own
        writer.write(0, slice(row, row + 1), np.zeros((1, width), np.float32))
    writer.close()
    written = (tmp_path / "layer_0.h5").stat().st_size
    assert written <= file_bytes(tokens, width)


def test_a_table_on_a_full_disk_is_one_sentence(checkout, tmp_path):
    table = tmp_path / "table.csv"
    columns = "model,role,revision,step,tokens,layer,depth,estimator,batch,n,n_unique,value\n"
    table.write_text(columns + "m,decoder,main,,,1,0.5,mom,0,600,600,3.5\n" * 1000)
    add_digest(table)
    with small_disk(tmp_path / "disk", "1m") as disk:
        fill(disk)
        said = refusal(
            checkout,
            "gather_tables",
            kind="measurements",
            tables=table,
            output=disk / "out.csv",
            log=disk / "log",
        )
        assert f"the disk is full: {disk}/out.csv could not be written; free some space" in said
        assert {path.name for path in disk.iterdir()} <= {"filler", "log"}


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only for root, too; skips the test where that cannot be done."""
    folder.mkdir(parents=True, exist_ok=True)
    for options in (["--bind", folder, folder], ["-o", "remount,ro,bind", folder]):
        done = subprocess.run(["mount", *options], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"a folder cannot be made read-only here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("name", ["results", ".snakemake", "."])
def test_a_folder_that_is_read_only_is_one_sentence_before_any_job(checkout, name):
    folder = checkout.folder / name
    with read_only(folder):
        said = checkout.snakemake(
            *("--configfile", "config/demo.yaml", "--cores", "1"),
            "results/tables/protocol.yaml",
            succeeds=False,
        )
    assert f"ERROR: {folder.absolute()} cannot be written to" in said
    assert "Traceback" not in said


def test_a_result_whose_folder_became_read_only_is_one_sentence(checkout, tmp_path):
    settings = tmp_path / "out"
    with read_only(settings):
        said = refusal(checkout, "write_protocol", settings="{}", output=settings / "protocol.yaml")
        assert f"{settings}/protocol.yaml cannot be written to (Read-only file system)" in said
        said = refusal(
            checkout,
            "write_protocol",
            settings="{}",
            output=tmp_path / "protocol.yaml",
            log=settings / "log",
        )
        assert f"{settings}/log cannot be written to (Read-only file system)" in said


@pytest.mark.parametrize("kind", ["mediawiki", "text"])
def test_cleaning_onto_a_full_disk_is_one_sentence(checkout, tmp_path, kind):
    raw = tmp_path / "corpus.raw"
    if kind == "mediawiki":
        write_export(raw, {"a": "words of a page " * 20_000})
    else:
        raw.write_text("words of a page " * 20_000)
    with small_disk(tmp_path / "disk", "200k") as disk:
        said = refusal(
            checkout, "clean_corpus", input=raw, format=kind, processes=2,
            text=disk / "text.txt", alphabet=disk / "alphabet.json", log=tmp_path / "log",
        )  # fmt: skip
        assert f"the disk is full: {disk}/" in said
        assert not list(disk.iterdir())
