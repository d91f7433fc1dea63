"""The tables can be read and the page shows them. What is measured is no matter of a test."""

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from benchmarks.contest import Contender, Measured, contest  # noqa: E402
from benchmarks.results import RESULTS, Results, write_results  # noqa: E402
from benchmarks.table_list import PAGES, TABLES  # noqa: E402
from benchmarks.targets import Agreement, Target, require_agreement  # noqa: E402


def written(*command: object) -> str:
    """Run a program of this repository and return what it prints."""
    paths = os.pathsep.join([str(ROOT / "workflow"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return run.stdout


@pytest.mark.parametrize("name", [*TABLES, *PAGES])
def test_a_table_knows_its_contenders_and_targets(name):
    table = import_module(f"benchmarks.tables.{name}")
    assert table.TITLE
    assert table.__doc__
    assert callable(table.measure)
    # Targets and agreements are about contenders that were measured, if the table was.
    path = RESULTS / f"{name}.csv"
    results = Results.read(path) if path.exists() else Results([])
    named = {row.contender for row in results.rows}
    if results.rows:
        assert {each.one for each in table.AGREEMENTS} <= named
        assert not named.isdisjoint(table.OWN)
    for target in table.TARGETS:
        measured = target.measured(results)
        assert measured is None or measured >= 0


def test_what_a_contender_names_can_be_called():
    """Contenders are named by text, in the tables' code."""
    named = {
        match
        for file in (ROOT / "benchmarks").rglob("*.py")
        for match in re.findall(r'"(benchmarks\.\w+):(\w+)"', file.read_text())
    }
    modules = {f"benchmarks.{file.stem}" for file in (ROOT / "benchmarks").glob("[a-z]*.py")}
    lines = [f"import {module}" for module in sorted(modules)]
    lines += [f"from {module} import {function}" for module, function in sorted(named)]
    # In a process of its own: it loads libraries that no other test needs.
    written("-c", "\n".join(lines))


def test_a_contest_of_the_estimators_runs(tmp_path):
    output = tmp_path / "results"
    written("-m", "benchmarks", "anisotropy", "--tiny", "--repeats", 1, "--output", output)
    results = Results.read(output / "anisotropy.csv")
    assert all(row.repeats == 1 and row.seconds > 0 and row.peak_gb > 0 for row in results.rows)
    assert {"anisotropy.csv", "anisotropy.png", "machine.csv"} == {p.name for p in output.iterdir()}


@pytest.mark.parametrize("name", ["performance", "checkpoints", "statistics"])
def test_a_page_shows_the_tables(name):
    page = (ROOT / f"docs/{name}.md").read_text()
    assert page == written(f"docs/write_{name}.py"), f"run `make docs/{name}.md`"


def test_a_table_is_read_as_it_was_written(tmp_path):
    rows = [
        Measured("9 x 9", "one", 0.1, 0.1, 0.2, 0.03, 2, 5, 0.0, {"value": 1 / 3}, "a, note"),
        Measured("9 x 9", "other", note="not measured: it is not installed"),
    ]
    write_results(tmp_path / "table.csv", rows)
    assert Results.read(tmp_path / "table.csv").rows == rows


def test_values_that_differ_too_much_are_an_error():
    results = Results(
        [Measured("", name, repeats=1, values={"v": v}) for name, v in (("a", 1.0), ("b", 1.01))]
    )
    require_agreement([Agreement("v", "a", "b", 0.02)], results)
    with pytest.raises(RuntimeError, match="v: a and b differ by"):
        require_agreement([Agreement("v", "a", "b", 0.005)], results)


def test_what_has_not_been_measured_meets_no_target():
    results = Results([Measured("", "a", note="not measured: no reason")])
    assert Target("time", 1, lambda r: r["", "a"].seconds, " s").measured(results) is None


def test_memory_is_that_of_the_contender():
    # Asked by a small process, as `python -m benchmarks` is: a child's peak counts from its parent's memory.
    asking = """\
import sys
from benchmarks.contest import run_command
for size in (100, 300):
    print(run_command([sys.executable, "-c", f"x = bytearray({size} << 20)"]).peak_gb)
"""
    few, many = map(float, written("-c", asking).split())
    assert many - few == pytest.approx(200 * 2**20 / 1e9, rel=0.05)


def test_contenders_take_turns(tmp_path):
    log = tmp_path / "log"
    program = "import sys; open(sys.argv[1], 'a').write(sys.argv[2])"
    contenders = [
        Contender(name, command=[sys.executable, "-c", program, str(log), name], repeats=3)
        for name in "ab"
    ]
    assert [row.repeats for row in contest(contenders)] == [3, 3]
    assert log.read_text() == "ababab"
