"""Our logger prints the jobs of a small workflow that Snakemake runs."""

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


def test_every_finished_job_is_a_plain_line_without_rule_names(snakemake):
    output = snakemake(*LOGGER).stderr
    for layer in range(4):
        assert f"TwoNN and MADA of mine at step 40, layer {layer}" in output
    counts = re.findall(r"^\[(\d) of 6\]", output, re.MULTILINE)
    assert counts == ["1", "2", "3", "4", "5", "6"]
    assert "beware" in output
    assert "\033" not in output


def test_finished_jobs_are_printed_as_json(snakemake):
    output = snakemake(*LOGGER, "--logger-shape-json").stdout
    events = [
        event for event in map(json.loads, output.splitlines()) if event["event"] == "finished"
    ]
    assert [event["done"] for event in events] == [1, 2, 3, 4, 5, 6]
    assert {event["total"] for event in events} == {6}
    assert all(event["seconds"] >= 0 for event in events)


def test_a_failure_and_its_cause_are_printed_last_with_all_options_of_quiet(snakemake, tmp_path):
    (tmp_path / "network").unlink()
    for options in ((), ("--quiet",), ("--quiet", "all")):
        run = snakemake(*LOGGER, "--keep-going", *options)
        assert run.returncode == 1
        assert "figure_4: no network" in run.stderr.splitlines()[-2]
    assert "layer" not in run.stderr
    (tmp_path / "network").touch()
    assert "beware" in snakemake(*LOGGER, "--quiet").stderr


def test_a_dry_run_prints_the_output_of_snakemake(snakemake):
    times = re.compile(r"^\[.*\]$|Date:.*|Workflow ID:.*|Command:.*", re.MULTILINE)
    output_of_logger, output_of_snakemake = (
        times.sub("", snakemake("-n", *more).stdout) for more in (LOGGER, ())
    )
    assert output_of_logger == output_of_snakemake


def test_the_words_of_rules_belong_to_rules_of_the_workflow():
    process = subprocess.run(
        [sys.executable, "-c", "from snakemake_logger_plugin_shape.words import *; print(*WORDS)"],
        env={"PYTHONPATH": str(WORKFLOW)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    text = "".join(file.read_text() for file in WORKFLOW.rglob("*.smk"))
    rules = set(re.findall(r"^ *rule (\w+):", text, re.MULTILINE))
    missing = set(process.stdout.split()) ^ rules
    assert missing == {"all", "everything", "resolve", "explorer", "claims", "choices"} & missing
