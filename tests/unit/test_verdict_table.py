"""Verdicts on the files and on the losses in one table."""

import csv
import math
from dataclasses import replace

import pytest

from shape_of_learning.checkpoints.judged_checkpoint import JudgedCheckpoint
from shape_of_learning.checkpoints.losses import COLUMNS
from shape_of_learning.checkpoints.tensor_digests import write_tensor_digests
from shape_of_learning.checkpoints.verdict_table import write_verdicts
from shape_of_learning.errors import InputError
from shape_of_learning.storage.csv_table import write_table

CURVE = [
    JudgedCheckpoint("step0", 0, None, "ok"),
    JudgedCheckpoint("step1", 1, 100, "same weights as step 0", same_as=0),
    JudgedCheckpoint("step2", 2, 200, "missing"),
    JudgedCheckpoint("step3", 3, 300, "ok"),
    JudgedCheckpoint("step4", 4, 400, "ok"),
]


def verdicts(folder, losses, policy="skip", curve=CURVE):
    """(verdict, shown) of each step, where `losses` are those of the measured ones."""
    for revision, loss in losses.items():
        write_table(folder / f"{revision}.csv", COLUMNS, [[loss, 100, 1000]])
        if not (folder / f"{revision}.tensors.csv").exists():
            # Tensors of other names tell nothing.
            digests = {f"w{revision}": ("F32", "4x4", 64 * "a")}
            write_tensor_digests(folder / f"{revision}.tensors.csv", digests)
    write_verdicts(folder / "out.csv", "tiny", curve, list(losses), folder, folder, policy=policy)
    with (folder / "out.csv").open(newline="") as file:
        return [(row["verdict"], row["shown"]) for row in csv.DictReader(file)]


SOUND = {"step0": 6.9, "step3": 0.694, "step4": math.log(2)}
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
    assert verdict == "broken: perplexity 300 times that of the other steps"
    assert shown == "no"


def test_checkpoints_with_the_same_tensors_are_found_and_the_last_keeps_its_name(tmp_path):
    for revision, content in (("step0", "a"), ("step3", "b"), ("step4", "b")):
        digests = {"w": ("F32", "4x4", 64 * content), "b": ("F32", "4", 64 * content)}
        write_tensor_digests(tmp_path / f"{revision}.tensors.csv", digests)
    last = [*CURVE[:-1], replace(CURVE[-1], is_last=True)]
    found = verdicts(tmp_path, SOUND, "flag", last)
    assert found[3:] == [("same weights as step 4", "hollow"), ("ok", "yes")]
    with pytest.raises(InputError, match=r"`step3` \(same weights as step 4\)"):
        verdicts(tmp_path, SOUND, "fail", last)


def test_a_report_that_nothing_confirms_is_not_shown_and_fails_if_that_is_asked_for(tmp_path):
    report = "known bad: same weights as step 4 (there), not yet confirmed"
    curve = [*CURVE[:3], replace(CURVE[3], verdict=report, same_as=4), CURVE[4]]
    assert verdicts(tmp_path, SOUND | {"step3": 0.695}, curve=curve)[3] == (report, "no")
    with pytest.raises(InputError, match="not yet confirmed"):
        verdicts(tmp_path, SOUND | {"step3": 0.695}, "fail", curve)
    # Another loss on the same windows shows that they are other weights.
    assert verdicts(tmp_path, SOUND | {"step3": 0.75}, curve=curve)[3] == ("ok", "yes")


def test_a_checkpoint_without_a_head_is_shown_unjudged(tmp_path):
    assert verdicts(tmp_path, SOUND | {"step4": math.nan})[-1] == ("ok", "yes")


def test_a_broken_checkpoint_fails_the_run_if_that_is_asked_for(tmp_path):
    with pytest.raises(InputError, match=r"`step4` \(broken.*`bad_checkpoints`"):
        verdicts(tmp_path, BROKEN, policy="fail")
    assert not (tmp_path / "out.csv").exists()


def test_what_an_earlier_run_has_measured_does_not_count(tmp_path):
    for revision in ("step1", "step3"):  # the same weights, and a loss that would be broken
        write_table(tmp_path / f"{revision}.csv", COLUMNS, [[40.0, 100, 1000]])
        write_tensor_digests(tmp_path / f"{revision}.tensors.csv", {"w": ("F32", "4x4", 64 * "b")})
    write_tensor_digests(tmp_path / "step4.tensors.csv", {"w": ("F32", "4x4", 64 * "b")})
    sound = {"step0": SOUND["step0"], "step4": SOUND["step4"]}
    found = verdicts(tmp_path, sound, "flag")
    assert found[1] == ("same weights as step 0", "no")
    assert found[3:] == [("ok", "yes"), ("ok", "yes")]
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["loss"] for row in csv.DictReader(file)][1:4] == ["", "", ""]


def test_an_infinite_loss_counts_first_and_its_tensors_convict_nobody(tmp_path):
    shared, own = ("F32", "4x4", 64 * "a"), ("F32", "4x4", 64 * "b")
    for revision, matrix in (("step0", own), ("step3", shared), ("step4", shared)):
        write_tensor_digests(tmp_path / f"{revision}.tensors.csv", {"w": matrix})
    found = verdicts(tmp_path, SOUND | {"step3": math.inf})
    assert found[3:] == [("broken: perplexity is infinite", "no"), ("ok", "yes")]
    assert found[0] == ("ok", "yes")
