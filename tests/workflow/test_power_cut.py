"""After a power cut a file is whole, or it is not there."""

from pathlib import Path

import pytest

import tiny_runs
from power import disk_with_a_plug
from shape_of_learning.storage.csv_table import read_rows, write_table
from shape_of_learning.storage.files import atomic_write

CONTENT = b"all of it" * 5000
OWN_OF_SNAKEMAKE = ("logs", "benchmarks")


@pytest.fixture
def disk(tmp_path):
    with disk_with_a_plug(tmp_path / "power") as (live, cut):
        yield live, cut


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not set(path.parts).intersection(OWN_OF_SNAKEMAKE)
    }


def test_this_disk_loses_what_was_not_synced(disk):
    """So that the other tests here can fail."""
    live, cut = disk
    for number in range(10):
        partial = live / f".{number}"
        partial.write_bytes(CONTENT)
        partial.rename(live / str(number))
    left = files_in(cut())
    assert not any(content == CONTENT for content in left.values())


def test_what_has_its_final_name_is_whole(disk):
    live, cut = disk
    with atomic_write(live / "deep" / "deeper" / "file") as partial:
        partial.write_bytes(CONTENT)
    for content in (b"old", CONTENT):
        with atomic_write(live / "replaced") as partial:
            partial.write_bytes(content)
        with atomic_write(live / "folder") as partial:
            (partial / "inside").mkdir(parents=True)
            (partial / "first").write_bytes(content)
            (partial / "inside" / "second").write_bytes(content)
    write_table(live / "table.csv", ("a",), [[1.5], [2.5]])
    found = cut()
    assert files_in(found) == files_in(live)
    assert files_in(found)["folder/inside/second"] == CONTENT
    assert files_in(found)["deep/deeper/file"] == CONTENT
    assert read_rows(live / "table.csv", ("a",)) == [["1.5"], ["2.5"]]


def test_nothing_that_a_run_has_made_is_lost(disk, checkout):
    """Of any rule: corpus, pretrained steps, hidden states, distances, tables and figures."""
    live, cut = disk
    settings = tiny_runs.set_up(checkout)
    checkout.write("tiny.yaml", {**settings, "embeddings": {"keep": True}})
    for name in ("results", "resources"):
        (live / name).mkdir()
        folder = checkout.folder / name
        if folder.exists():
            folder.rmdir()
        folder.symlink_to(live / name)
    checkout.snakemake("--configfile", "tiny.yaml", "--cores", "2", "--quiet", "rules")
    made, found = files_in(live), files_in(cut())
    assert {Path(name).suffix for name in made} >= {".h5", ".csv", ".safetensors", ".pdf", ".raw"}
    assert {name for name in made if found.get(name) != made[name]} == set()
