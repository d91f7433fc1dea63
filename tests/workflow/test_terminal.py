"""What Snakemake prints with the logger of this package: a line per job, and last why a run has failed."""

import json
import os
import subprocess
import sys

import pytest

from checkouts import REPOSITORY

SNAKEFILE = """
rule all:
    input: "figures/b.png"

rule draw_figure:
    input: "a.txt"
    output: "figures/{figure}.png"
    log: "draw_{figure}.log"
    shell: "FAILS cp {input} {output}"

rule gather_model:
    output: "a.txt"
    shell: "echo INFO of the job >&2; echo a > {output}"
"""
ERROR = "echo '2026-01-01 ERROR the disk is full; free some space' > {log}; exit 1;"


@pytest.fixture
def run(tmp_path):
    def of(*arguments, fails=False):
        (tmp_path / "Snakefile").write_text(SNAKEFILE.replace("FAILS", ERROR if fails else ""))
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "workflow")}
        command = [
            sys.executable,
            "-m",
            "snakemake",
            "--cores",
            "1",
            "--logger",
            "shape",
            *arguments,
        ]
        found = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert (found.returncode != 0) == fails, found.stderr
        assert "\x1b" not in found.stdout + found.stderr
        return found

    return of


def test_each_job_has_a_line_that_says_what_was_made_and_how_much_is_left(run):
    lines = run().stderr.splitlines()
    finished = [line for line in lines if line.startswith("[")]
    assert [line.split("]")[0] for line in finished] == ["[1 of 3", "[2 of 3", "[3 of 3"]
    assert "INFO of the job" in lines
    assert len(lines) < 12
    assert not [line for line in run().stderr.splitlines() if line.startswith("[")]  # nothing to do


def test_one_object_a_line_for_programs(run):
    events = [json.loads(line) for line in run("--logger-shape-json").stdout.splitlines()]
    finished = [each for each in events if each["event"] == "finished"]
    assert [each["rule"] for each in finished] == ["gather_model", "draw_figure", "all"]
    assert finished[-1]["done"] == finished[-1]["total"] == 3


def test_quiet_is_quiet_but_not_about_failures(run):
    assert run("--quiet", "all").stderr == "INFO of the job\n"  # which the job itself says
    failed = run("--quiet", "all", "--forceall", fails=True)
    assert "the disk is full; free some space" in failed.stderr


def test_the_last_words_of_a_failed_run_are_its_cause(run):
    *_, cause, remedy = run(fails=True).stderr.strip().splitlines()
    assert "b: the disk is full; free some space" in cause
    assert "again" in remedy


def test_a_dry_run_prints_what_snakemake_prints(run):
    found = run("--dry-run")
    assert "rule draw_figure:" in found.stdout + found.stderr
