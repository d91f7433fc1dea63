"""Log files of scripts."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "workflow"


def script(log: Path, statement: str) -> subprocess.CompletedProcess:
    program = (
        "import argparse, logging\n"
        "from shape_of_learning.script_arguments.running import run\n"
        f"def main():\n    {statement}\n"
        "run(main, argparse.ArgumentParser())\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program, "--log", log],
        env={"PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
    )


def test_a_log_that_would_be_empty_is_not_written_and_an_earlier_one_is_gone(tmp_path):
    log = tmp_path / "logs/x.log"
    log.parent.mkdir()
    log.write_text("of the run before\n")
    assert script(log, "pass").returncode == 0
    assert not log.exists()


@pytest.mark.parametrize("level", [logging.DEBUG, logging.WARNING])
def test_what_is_said_is_logged(tmp_path, level):
    log = tmp_path / "logs/x.log"
    said = f"logging.getLogger('shape_of_learning').log({level}, 'so it is')"
    assert script(log, said).returncode == 0
    assert log.read_text().endswith(f"{logging.getLevelName(level)} so it is\n")


def test_an_error_is_logged(tmp_path):
    log = tmp_path / "x.log"
    assert script(log, "1 / 0").returncode == 1
    assert "ZeroDivisionError" in log.read_text()
