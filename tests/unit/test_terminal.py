"""What our logger makes of a small workflow that Snakemake runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

WORKFLOW = Path(__file__).parents[2] / "workflow"
RULES = """
rule all:
    input: expand("mine/step40/dimension/layer_{layer}.csv", layer=range(4)), "figure_4.pdf"
rule measure:
    priority: 1
    output: "{model}/{revision}/{family}/layer_{layer}.csv"
    shell: "sleep 1; printf 'estimator,value\\\\ntwo_nn,1\\\\nmada,2\\\\n' > {output}"
rule draw_figure:
    output: "{figure}.pdf"
    log: "{figure}.log"
    shell: "echo 'x ERROR no network' > {log}; echo beware >&2; [ -e network ] && touch {output}"
"""
LOGGER = ("--logger", "shape")


@pytest.fixture
def snakemake(tmp_path):
    (tmp_path / "Snakefile").write_text(RULES)
    (tmp_path / "network").touch()

    def run(*options):
        return subprocess.run(
            [sys.executable, "-m", "snakemake", "--cores", "1", *options],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(WORKFLOW), "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
        )

    return run


def test_each_finished_job_is_a_plain_line_in_words_of_the_field(snakemake):
    said = snakemake(*LOGGER).stderr
    for layer in range(4):
        assert f"TwoNN and MADA of mine at step 40, layer {layer}" in said
    counts = re.findall(r"^\[(\d) of 6\]", said, re.MULTILINE)
    assert counts == ["1", "2", "3", "4", "5", "6"]
    assert "beware" in said
    assert "\033" not in said


def test_programs_read_the_state_of_a_run_as_json(snakemake):
    said = snakemake(*LOGGER, "--logger-shape-json").stdout
    finished = [each for each in map(json.loads, said.splitlines()) if each["event"] == "finished"]
    assert [each["done"] for each in finished] == [1, 2, 3, 4, 5, 6]
    assert {each["total"] for each in finished} == {6}
    assert all(each["seconds"] >= 0 for each in finished)


def test_a_failure_is_the_last_that_is_said_with_its_cause_however_quiet(snakemake, tmp_path):
    (tmp_path / "network").unlink()
    for options in ((), ("--quiet",), ("--quiet", "all")):
        run = snakemake(*LOGGER, "--keep-going", *options)
        assert run.returncode == 1
        assert "figure_4: no network" in run.stderr.splitlines()[-2]
    assert "layer" not in run.stderr
    (tmp_path / "network").touch()
    assert "beware" in snakemake(*LOGGER, "--quiet").stderr


def test_a_dry_run_says_what_snakemake_says(snakemake):
    times = re.compile(r"^\[.*\]$|Date:.*|Workflow ID:.*|Command:.*", re.MULTILINE)
    ours, theirs = (times.sub("", snakemake("-n", *more).stdout) for more in (LOGGER, ()))
    assert ours == theirs


def test_rules_that_have_words_are_rules_of_the_workflow():
    words = subprocess.run(
        [sys.executable, "-c", "from snakemake_logger_plugin_shape.words import *; print(*WORDS)"],
        env={"PYTHONPATH": str(WORKFLOW)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    text = "".join(file.read_text() for file in WORKFLOW.rglob("*.smk"))
    rules = set(re.findall(r"^ *rule (\w+):", text, re.MULTILINE))
    missing = set(words.stdout.split()) ^ rules
    assert missing == {"all", "everything", "resolve", "explorer", "claims", "choices"} & missing
