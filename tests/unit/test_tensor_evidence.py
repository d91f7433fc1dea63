"""What tensors and equal losses say of checkpoints whose files differ."""

import math
from dataclasses import replace

import pytest

from shape_of_learning.checkpoints.judged_checkpoint import JudgedCheckpoint
from shape_of_learning.checkpoints.tensor_evidence import Evidence, judged_by_weights, same_weights

EMBEDDING, BLOCK, NORM = "wte.weight", "h.0.weight", "ln_f.weight"
SHAPES = {EMBEDDING: "100x8", BLOCK: "8x8", NORM: "8"}
UNTOLD = "same weights in steps {}; nothing tells whose they are"
REPORTED = "known bad: same weights as step 9 (there), not yet confirmed"


def tensors(step, dtype="F32", **others):
    """Digests of the tensors of a step; `others` by the first letters of their names."""
    return {
        name: (dtype, shape, str(others.get(name[:3].strip("."), step)))
        for name, shape in SHAPES.items()
    }


def measured(step, loss=None, **others) -> Evidence:
    return Evidence(tensors(step, **others), 10.0 - step if loss is None else loss, 1000)


def judged(curve, **known) -> dict[int, str]:
    """Verdicts by step; `known` is what is known of ``step3`` before, by that name."""
    checkpoints = [
        replace(JudgedCheckpoint(f"step{step}", step, None), **known.get(f"step{step}", {}))
        for step in curve
    ]
    evidence = {f"step{step}": each for step, each in curve.items() if each is not None}
    found = judged_by_weights(checkpoints, evidence)
    assert [each.step for each in found] == list(curve)
    return {each.step: each.verdict for each in found}


def test_different_tensors_are_all_ok():
    assert set(judged({step: measured(step) for step in range(5)}).values()) == {"ok"}


def test_equal_tensors_are_the_same_weights_and_none_of_them_is_ok():
    curve = {1: measured(1), 2: measured(2), 3: measured(1, loss=3.3)}
    assert judged(curve) == {1: UNTOLD.format("1 and 3"), 2: "ok", 3: UNTOLD.format("1 and 3")}


def test_the_last_step_of_training_keeps_its_name():
    curve = {1: measured(1), 2: measured(9), 9: measured(9)}
    assert judged(curve, step9={"is_last": True}) == {1: "ok", 2: "same weights as step 9", 9: "ok"}


def test_a_copy_of_what_is_known_bad_is_bad():
    curve = {1: measured(1), 2: measured(1), 3: measured(3)}
    found = judged(curve, step1={"verdict": "known bad: broken (there)"})
    assert found == {1: "known bad: broken (there)", 2: "same weights as step 1", 3: "ok"}


def test_what_was_not_measured_keeps_its_verdict():
    assert judged({1: None, 2: measured(2)}, step1={"verdict": "missing"}) == {
        1: "missing",
        2: "ok",
    }


def test_tensors_that_one_format_leaves_out_change_nothing():
    tied = {**tensors(1), "lm_head.weight": tensors(1)[EMBEDDING]}
    mask = {**tensors(1), "h.0.attn.bias": ("U8", "1x1x64x64", "mask")}
    for other in (tied, mask):
        assert same_weights(Evidence(other), Evidence(tensors(1))) is True
        assert same_weights(Evidence(other), Evidence(tensors(2))) is False


@pytest.mark.parametrize("dtype", ["F16", "F64"])
def test_a_copy_in_another_type_is_found_by_its_loss(dtype):
    curve = {1: measured(1), 2: measured("wide", loss=9.0, dtype=dtype), 3: measured(3)}
    assert judged(curve)[2] == UNTOLD.format("1 and 2")


def test_equal_losses_of_different_tensors_are_chance():
    assert same_weights(measured(1, loss=3.0), measured(2, loss=3.0)) is False


def test_without_tensors_equal_losses_tell_and_distant_ones_too():
    a = Evidence({}, 3.25, 1000)
    assert same_weights(a, replace(a)) is True
    assert same_weights(a, replace(a, predicted_tokens=999)) is None
    assert same_weights(a, replace(a, loss=3.2501)) is None
    assert same_weights(a, replace(a, loss=3.3)) is False
    for undefined in (math.nan, math.inf):
        assert same_weights(replace(a, loss=undefined), replace(a, loss=undefined)) is None


def test_a_report_is_confirmed_by_tensors():
    reported = {"verdict": REPORTED, "same_as": 9}
    curve = {1: measured(9), 2: measured(2), 9: measured(9)}
    assert judged(curve, step1=reported) == {1: "same weights as step 9", 2: "ok", 9: "ok"}


def test_a_report_is_refuted_by_tensors():
    reported = {"verdict": REPORTED, "same_as": 9}
    assert judged({1: measured(1), 9: measured(9)}, step1=reported) == {1: "ok", 9: "ok"}


def test_without_tensors_a_report_is_judged_by_losses_or_stands():
    reported, other = {"verdict": REPORTED, "same_as": 9}, Evidence({}, 3.0, 1000)
    for loss, verdict in ((3.0, "same weights as step 9"), (3.5, "ok"), (3.001, REPORTED)):
        curve = {1: replace(other, loss=loss), 9: other}
        assert judged(curve, step1=reported)[1] == verdict
    assert judged({1: other, 9: None}, step1=reported)[1] == REPORTED


def test_some_tensors_of_another_step_make_mixed_tensors():
    curve = {step: measured(step) for step in range(6)}
    curve[2] = measured(2, wte=5)
    assert judged(curve, step5={"is_last": True}) == dict.fromkeys(range(6), "ok") | {
        2: "mixed tensors"
    }


def test_frozen_tensors_condemn_nobody_and_one_that_is_not_frozen_is_strange():
    curve = {step: measured(step, wte="frozen") for step in range(6)}
    assert set(judged(curve).values()) == {"ok"}
    curve[3] = measured(3, wte="strange")
    assert judged(curve) == dict.fromkeys(range(6), "ok") | {3: "mixed tensors"}


def test_norms_that_return_are_no_evidence():
    curve = {step: measured(step, ln_=step % 2) for step in range(6)}
    assert set(judged(curve).values()) == {"ok"}


def test_a_matrix_of_another_type_is_not_compared():
    curve = {step: measured(step, wte="not moved") for step in range(3)}
    curve |= {step: measured(step) for step in range(3, 8)}
    curve[1] = measured(1, dtype="F16", wte="not moved, rounded")
    assert set(judged(curve).values()) == {"ok"}
