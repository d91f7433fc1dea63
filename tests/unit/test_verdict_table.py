"""Verdicts on the files and on the losses in one table."""

import csv
import math

import pytest

from shape_of_learning.checkpoints.judged_checkpoint import JudgedCheckpoint
from shape_of_learning.checkpoints.losses import COLUMNS
from shape_of_learning.checkpoints.verdict_table import write_verdicts
from shape_of_learning.errors import InputError
from shape_of_learning.storage.csv_table import write_table

CURVE = [
    JudgedCheckpoint("step0", 0, None, "ok"),
    JudgedCheckpoint("step1", 1, 100, "same weights as step 0"),
    JudgedCheckpoint("step2", 2, 200, "missing"),
    JudgedCheckpoint("step3", 3, 300, "ok"),
    JudgedCheckpoint("step4", 4, 400, "ok"),
]


def verdicts(folder, losses, policy="skip"):
    """(verdict, shown) of each step, where `losses` are those of the measured ones."""
    for revision, loss in losses.items():
        write_table(folder / f"{revision}.csv", COLUMNS, [[loss, 100, 1000]])
    write_verdicts(folder / "out.csv", "tiny", CURVE, folder, policy=policy)
    with (folder / "out.csv").open(newline="") as file:
        return [(row["verdict"], row["shown"]) for row in csv.DictReader(file)]


SOUND = {"step0": 6.9, "step3": math.log(2), "step4": math.log(2)}
BROKEN = SOUND | {"step4": math.log(2 * 300)}


def test_what_the_files_condemn_is_not_shown(tmp_path):
    assert verdicts(tmp_path, SOUND) == [
        ("ok", "yes"),
        ("same weights as step 0", "no"),
        ("missing", "no"),
        ("ok", "yes"),
        ("ok", "yes"),
    ]


def test_what_is_flagged_is_hollow_if_it_has_been_measured(tmp_path):
    found = verdicts(tmp_path, SOUND | {"step1": 6.9}, policy="flag")
    assert [shown for _, shown in found] == ["yes", "hollow", "no", "yes", "yes"]


def test_a_broken_checkpoint_is_found_by_its_loss(tmp_path):
    verdict, shown = verdicts(tmp_path, BROKEN)[-1]
    assert verdict == "broken: perplexity 300 times that of earlier steps"
    assert shown == "no"


def test_a_checkpoint_without_a_head_is_shown_unjudged(tmp_path):
    assert verdicts(tmp_path, SOUND | {"step4": math.nan})[-1] == ("ok", "yes")


def test_a_broken_checkpoint_fails_the_run_if_that_is_asked_for(tmp_path):
    with pytest.raises(InputError, match=r"`step4` \(broken.*`bad_checkpoints`"):
        verdicts(tmp_path, BROKEN, policy="fail")
    assert not (tmp_path / "out.csv").exists()
