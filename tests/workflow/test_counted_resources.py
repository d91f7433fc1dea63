"""What measurements ask of a scheduler is looked up only where somebody counts it."""

import re

import pytest


def asked_by_measurements(checkout, *arguments):
    """Resources of the first job of each rule that measures, as a dry-run shows them."""
    demo = ("--configfile", "config/demo.yaml", "--dry-run")
    said = checkout.snakemake("all", *demo, *arguments)
    rules = ("find_neighbours", "measure")
    blocks = [
        re.search(rf"^ *(?:local)?rule {rule}:\n(.*?)\n *\n", said, re.M | re.S) for rule in rules
    ]
    return ["mem_mb=" in block[1] and "runtime=" in block[1] for block in blocks]


def test_nobody_counts_on_one_machine(checkout):
    assert asked_by_measurements(checkout, "--cores", "2") == [False] * 2


@pytest.mark.parametrize("limit", ["mem_mb=8000", "mem=8GB", "runtime=600"])
def test_a_limit_of_the_command_line_is_kept(checkout, limit):
    assert asked_by_measurements(checkout, "--cores", "2", "--resources", limit) == [True] * 2


def test_jobs_that_are_submitted_ask(checkout):
    assert asked_by_measurements(checkout, "--jobs", "4") == [True] * 2
