"""Curves and the verdicts on them: by hashes, by tensors, by losses."""

import csv
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from shape_of_learning.checkpoints import verdict as verdicts
from shape_of_learning.checkpoints.lock import Checkpoint, Listing, WeightFile
from shape_of_learning.checkpoints.verdict import (
    NOT_YET_MOVED,
    JudgedCheckpoint,
    Kind,
    Mistake,
    Verdict,
    format_atlas_verdict,
    format_verdict,
    have_same_weights,
    judge_measurements,
    parse_atlas_verdict,
)
from shape_of_learning.checkpoints.weight_evidence import (
    UNDEFINED,
    CrossEntropy,
    TensorDigests,
    WeightEvidence,
    write_loss,
    write_tensor_digests,
)

sys.path.append(str(Path(__file__).parents[2]))
from benchmarks.simulated_curves import (
    GOOD,
    SHOWN_BY,
    is_doubted,
    judge_curve,
    list_alarms,
    simulate_curve,
)

MAIN = "org/model"
MISSING, EMPTY = Listing(problem="missing"), Listing(commit="c" * 40, problem="no weights")
COPY = "same weights as step 9"
MIXED = "mixed shards"
STILL = "not yet moved"


def doubt(*steps: int) -> dict[int, str]:
    """Return the verdicts on steps with equal weights and no known owner."""
    words = f"steps {', '.join(map(str, steps[:-1]))} and {steps[-1]}"
    return dict.fromkeys(steps, f"same weights in {words}; nothing tells whose they are")


def file(content: str) -> WeightFile:
    return WeightFile.model_construct(bytes=8, hash=f"sha256:{content}")


def make_listing(content: str | Listing) -> Listing:
    """List one file for `a`, two shards for `a b`; the letters stand for hashes."""
    if isinstance(content, Listing):
        return content
    hashes = content.split()
    files = {f"{i}-of-{len(hashes)}.bin": file(shard_hash) for i, shard_hash in enumerate(hashes)}
    return Listing.model_construct(files=files, commit="c" * 40)


def point(step: int) -> Checkpoint:
    return Checkpoint(f"step{step}", f"step{step}", MAIN, step=step)


def make_listings(curve) -> dict[str, Listing]:
    return {f"step{step}": make_listing(content) for step, content in curve.items()}


def judge_files(curve, main=None, reports=(), last=None) -> dict[int, str]:
    """Judge files; return verdicts by step, which must not depend on the order of the checkpoints."""
    points, files = [point(step) for step in curve], make_listings(curve)
    mains = {} if main is None else {MAIN: make_listing(main)}
    judgements = verdicts.judge_listing(points, files, mains, reports, last)
    assert verdicts.judge_listing(points[::-1], files, mains, reports, last) == judgements[::-1]
    return {judgement.step: format_verdict(judgement.verdict) for judgement in judgements}


def report(step: int, same_as: int | None = None, because: str = "") -> Mistake:
    return Mistake(steps=[step], source="there", because=because or None, same_as=same_as)


def tell(*reports: Mistake, **settings: int) -> dict:
    return {"reports": reports, **settings}


BOTH = "same weights as main"
AS_1, AS_2, AS_5, AS_99 = (f"same weights as step {step}" for step in (1, 2, 5, 99))
BAD = "known bad: broken (there)"
DOUBTED_2 = f"known bad: {AS_2} (there), not yet confirmed"
FROZEN = {s: f"frozen {s}" for s in range(8)}
SHARDS = {1: "a 1", 2: "b 2", 3: "c 3", 4: "z 4", 5: "z 5"}
# fmt: off
# Name -> curve by step, further arguments, and the verdicts that are not ok.
CURVES = {
    "different weights": ({0: "a", 1: "b", 2: "c"}, {}, {}),
    "equal weights later on": ({0: "a", 1: "b", 2: "c", 3: "b"}, {}, doubt(1, 3)),
    # A first update at learning rate 0: EleutherAI/gpt-neox#1373, pythia#83 and #198.
    "not yet moved": ({0: "a", 1: "a", 2: "a", 4: "b"}, {}, {1: STILL, 2: STILL}),
    "equal, but not from step 0 on": ({1: "a", 2: "a", 3: "b"}, {}, doubt(1, 2)),
    "equal to step 0, but not in a row": ({0: "a", 1: "b", 2: "a"}, {}, doubt(0, 2)),
    # EleutherAI/pythia#205: the first steps of Pythia-2.8B are copies of main.
    "copies of main from step 0 on": ({0: "z", 1: "z", 2: "b"}, {"main": "z", "last": 9}, {0: BOTH, 1: BOTH}),
    "the last step is main": ({0: "z", 1: "z", 2: "b", 9: "z"}, {"main": "z"}, {0: COPY, 1: COPY}),
    "main written anew": ({0: "y", 1: "z", 2: "b", 9: "y"}, {"main": "z", "last": 9}, {0: COPY, 1: BOTH}),
    "a report on the last step": ({1: "a", 2: "b", 4: "b"}, {"main": "b", **tell(report(4, 2))}, {4: AS_2}),
    "not yet moved, whatever is reported": ({0: "a", 1: "a", 2: "b"}, tell(report(1, 0)), {1: STILL}),
    "a report names the owner": ({1: "a", 2: "a", 3: "c"}, tell(report(1, 2)), {1: AS_2}),
    "reports contradict each other": ({1: "a", 2: "a", 3: "a"}, tell(report(1, 2), report(2, 1)), doubt(1, 2, 3)),
    "other files do not acquit": ({1: "a", 2: "b"}, tell(report(1, 2)), {1: DOUBTED_2}),
    "what cannot be compared is believed": ({1: "a", 2: "b"}, tell(report(1, 99)), {1: f"known bad: {AS_99} (there)"}),
    "a copy of what is bad": ({1: "a", 2: "a", 3: "c"}, tell(report(2, because="broken")), {1: AS_2, 2: BAD}),
    "a report with its reason": ({1: "a", 2: "b"}, tell(report(2, because="broken")), {2: BAD}),
    "a copy of what is bad, at first": ({0: "a", 1: "a", 2: "c"}, tell(report(1, because="broken")), {0: AS_1, 1: BAD}),
    "bad, but the last step's": ({1: "a", 2: "b", 3: "a"}, tell(report(1, because="broken"), last=3), {1: BAD}),
    "problems": ({0: MISSING, 1: EMPTY, 2: "b"}, {}, {0: "missing", 1: "no weights"}),
    # EleutherAI/pythia#206: the first shard of main in earlier steps of Pythia-12B.
    "a shard of the last step": ({1: "z b", 2: "a c", 9: "z y"}, {"main": "z y"}, {1: MIXED}),
    "a shard of main": ({1: "a b", 2: "z c", 3: "e f"}, {"main": "z y", "last": 9}, {2: MIXED}),
    "a strange shard among frozen ones": (FROZEN | {3: "strange 3"}, {}, {3: MIXED}),
    "a frozen shard": (FROZEN, {"main": "frozen m"}, {}),
    "two steps may be frozen": ({1: "a b", 2: "a c"}, {}, {}),
    "a shard that has not moved at first": ({0: "a 0", 1: "a 1", 2: "b 2", 4: "c 4"}, {}, {}),
    "a shard cannot return": ({1: "a 1", 2: "b 2", 3: "a 3"}, {}, {1: MIXED, 3: MIXED}),
    "unless it is the end's": ({1: "a 1", 2: "b 2", 3: "a 3"}, {"last": 3}, {1: MIXED}),
    "three that move no more, and main written anew": (SHARDS | {3: "z 3"}, {"main": "y m", "last": 9}, {}),
    "two and a copy are no three": (SHARDS | {3: "z 3", 4: "z 5"}, {"last": 5}, {3: MIXED, 4: AS_5}),
    "two may be a mistake": (SHARDS, {}, {4: MIXED, 5: MIXED}),
    "of which one is the end": (SHARDS, {"last": 5}, {4: MIXED}),
    "one that takes it before": (SHARDS | {1: "z 1", 3: "z 3"}, {"last": 5}, {1: MIXED}),
    "three that move again": (SHARDS | {3: "z 3", 6: "y 6"}, {"last": 6}, {3: MIXED, 4: MIXED, 5: MIXED}),
}
# fmt: on


@pytest.mark.parametrize("name", CURVES)
def test_files_give_the_verdicts_on_a_curve(name):
    curve, arguments, bad = CURVES[name]
    assert judge_files(curve, **arguments) == dict.fromkeys(curve, "ok") | bad


def test_only_main_of_the_last_steps_repository_ends_a_training():
    points, files = [point(0), point(1)], make_listings({0: "a", 1: "z"})
    mains = {MAIN: make_listing("z"), "org/final": make_listing("z")}
    final = Checkpoint("main", "main", "org/final", step=9)
    all_files = files | {"main": make_listing("c")}
    judgements = verdicts.judge_listing([*points, final], all_files, {MAIN: make_listing("z")})
    assert {format_verdict(judgement.verdict) for judgement in judgements} == {"ok"}
    # Without the last step either main may be the end, and both may have the same weights.
    judgements = verdicts.judge_listing(points, files, mains, last_step=9)
    assert [format_verdict(judgement.verdict) for judgement in judgements] == ["ok", BOTH]
    judgements = verdicts.judge_listing(points[:1], files, mains, last_step=9)
    assert [format_verdict(judgement.verdict) for judgement in judgements] == ["ok"]


def test_main_ends_a_curve_that_contains_it():
    final = Checkpoint("main", "main", MAIN, step=9)
    files = make_listings({0: "z", 1: "a"}) | {"main": make_listing("a")}
    judgements = verdicts.judge_listing([point(0), point(1), final], files, {})
    assert [format_verdict(judgement.verdict) for judgement in judgements] == ["ok", COPY, "ok"]


def test_unusable_weights_make_no_other_step_bad():
    broken = make_listing("a 1").model_copy(update={"problem": "mixed shards"})
    assert judge_files({1: broken, 2: "a 1", 3: "b 2"}) == {1: "mixed shards", 2: "ok", 3: "ok"}


def test_equal_weights_are_found_in_both_formats():
    both = make_listing("s").model_copy(update={"other_format": {"pytorch_model.bin": file("b")}})
    curve = judge_files({1: "b", 5: "s", 9: both}, main=both)
    assert curve == {1: COPY, 5: COPY, 9: "ok"}


def test_without_a_listing_only_reports_make_a_step_bad():
    judgements = verdicts.judge_listing([point(0), point(1)], {}, {}, [report(1, because="broken")])
    assert [format_verdict(judgement.verdict) for judgement in judgements] == ["ok", BAD]


# By tensors and losses ------------------------------------------------------------------------

SHAPES = {"wte.weight": "100x8", "h.0.weight": "8x8", "ln_f.weight": "8"}
REPORTED = "known bad: same weights as step 9 (there), not yet confirmed"
UNCONFIRMED = Verdict(Kind.UNCONFIRMED, "same weights as step 9", (9,), "there")


def make_evidence(
    tensors, loss=math.nan, tokens=1000, vocabulary=50_000, sample=()
) -> WeightEvidence:
    return WeightEvidence(
        CrossEntropy(loss, tokens, vocabulary), TensorDigests(tensors, "", sample)
    )


def measure_step(step, loss=None, dtype="F32", sample=(), **tensor_steps) -> WeightEvidence:
    """Make the evidence of a step; `tensor_steps` names other steps of tensors by the first letters of their names."""
    tensors = {
        name: (dtype, shape, str(tensor_steps.get(name[:3].strip("."), step)))
        for name, shape in SHAPES.items()
    }
    return make_evidence(tensors, 10.0 - step if loss is None else loss, sample=sample)


def judge_tensors(curve, **fields) -> dict[int, str]:
    """Judge tensors; return verdicts by step. `fields` has fields of a checkpoint by a name such as ``step3``."""
    checkpoints = [
        JudgedCheckpoint(f"step{step}", step, None, **fields.get(f"step{step}", {}))
        for step in curve
    ]
    evidence = {f"step{step}": value for step, value in curve.items() if value is not None}
    judgements = judge_measurements(checkpoints, evidence)
    return {judgement.step: format_verdict(judgement.verdict) for judgement in judgements}


ONE, TWO, NINE = measure_step(1), measure_step(2), measure_step(9)
AGAIN = {1: ONE, 2: TWO, 3: measure_step(1, loss=3.3)}
DOUBTED = {"verdict": UNCONFIRMED, "same_as": 9}
GONE = Verdict(Kind.MISSING)
# fmt: off
EQUALS = {
    "nothing tells": (AGAIN, {}, doubt(1, 3)),
    "the last step": (AGAIN, {"step3": {"is_last": True}}, {1: "same weights as step 3"}),
    "at first": ({s: measure_step(s // 3) for s in range(4)}, {}, {1: STILL, 2: STILL}),
    "another type, found by its loss": ({1: ONE, 2: measure_step(8, loss=9.0, dtype="F64")}, {}, doubt(1, 2)),
    "an infinite loss comes first, and its tensors convict nobody": (
        {1: ONE, 3: measure_step(4, loss=math.inf), 4: measure_step(4)}, {}, {3: "broken: perplexity is infinite"},
    ),
    "a report is confirmed": ({1: NINE, 2: TWO, 9: NINE}, {"step1": DOUBTED}, {1: COPY}),
    "a report is refuted": ({1: ONE, 2: TWO, 9: NINE}, {"step1": DOUBTED}, {}),
    "what is not measured": (
        {1: None, 2: TWO, 3: None}, {"step1": {"verdict": GONE}, "step3": DOUBTED}, {1: "missing", 3: REPORTED},
    ),
}
# fmt: on


@pytest.mark.parametrize("name", EQUALS)
def test_tensors_give_the_verdicts_on_equal_weights(name):
    curve, fields, bad = EQUALS[name]
    assert judge_tensors(curve, **fields) == dict.fromkeys(curve, "ok") | bad


def test_equal_losses_are_evidence_only_without_tensors():
    assert have_same_weights(measure_step(1, loss=3.0), measure_step(2, loss=3.0)) is False
    losses = ((3.25, True), (3.2501, None), (3.3, False), (math.nan, None), (math.inf, None))
    for other, same in losses:
        assert have_same_weights(make_evidence({}, 3.25), make_evidence({}, other)) is same
    assert have_same_weights(make_evidence({}, 3.25), make_evidence({}, 3.25, tokens=999)) is None


def test_tensors_that_one_format_lacks_change_no_comparison():
    digests = measure_step(1).tensors.digests
    tied, mask = digests["wte.weight"], ("U8", "1x1x64x64", "mask")
    for more in ({"lm_head.weight": tied}, {"h.0.attn.bias": mask}):
        assert have_same_weights(make_evidence({**digests, **more}), measure_step(1)) is True
        assert have_same_weights(make_evidence({**digests, **more}), measure_step(2)) is False


@pytest.mark.parametrize(
    ("tensor_steps", "wrong"),
    [
        ({2: {"wte": 5}}, [2]),  # the embeddings of the last step
        ({s: {"wte": "frozen"} for s in range(6)}, []),
        ({s: {"wte": "strange" if s == 3 else "frozen"} for s in range(6)}, [3]),
        ({s: {"ln_": s % 2} for s in range(6)}, []),  # norms that return are no evidence
        ({0: {"wte": "still"}, 1: {"wte": "rounded", "dtype": "F16"}, 2: {"wte": "still"}}, []),
    ],
)
def test_tensors_of_another_step_make_mixed_tensors(tensor_steps, wrong):
    curve = {step: measure_step(step, **tensor_steps.get(step, {})) for step in range(6)}
    step_verdicts = judge_tensors(curve, step5={"is_last": True})
    assert [step for step, verdict in step_verdicts.items() if verdict == "mixed tensors"] == wrong


def test_a_step_0_from_which_the_training_does_not_descend_is_found():
    """EleutherAI/pythia#203: the relative distance of steps 1 to 256 from step 0 is 1.000."""
    first, other, update = np.random.default_rng(0).normal(size=(3, 256))
    assert verdicts.distance(first, other) == pytest.approx(1, abs=0.1)
    assert verdicts.distance(first, first + 0.01 * update) < 0.02
    first, samples = tuple(first), {s: tuple(other + 0.001 * s * update) for s in (0, 1, 2, 4, 256)}
    steps = {s: measure_step(s, sample=samples[s]) for s in (1, 2, 4, 256)}
    strange = {0: measure_step(0, sample=first), **steps}
    assert judge_tensors(strange) == dict.fromkeys(strange, "ok") | {0: "not of this training"}
    honest = {0: measure_step(0, sample=samples[0]), **steps}
    assert set(judge_tensors(honest).values()) == {"ok"}
    # In any training late steps are far from the first steps.
    late = {0: measure_step(0, sample=first), 1000: steps[1], 2000: steps[2], 3000: steps[4]}
    assert set(judge_tensors(late).values()) == {"ok"}


GUESSING = math.log(50_000)


@pytest.mark.parametrize(
    ("curve", "wrong"),
    [
        ([GUESSING + 0.2, GUESSING + 0.1, 9, 6, 4, 3, 2.6, 2.5], []),
        ([14.0, 13.9, 12.0, 9.0, 5.0, 4.0], []),  # large logits at the start
        ([10.8] * 12 + [10.7, 9.0, 6.0, 4.0, 3.5], []),  # a slow start
        ([10.8, 6, 4, 3, 8.0, 7.5, 3, 2.9], []),  # a spike
        ([10.8, 5, 3, 3, 9, 9, 9, 9], []),  # diverged for good
        ([10.8, math.nan, 3.0], []),
        ([10.8, 4.0, 10.83, 3.0], [2]),
        ([10.8, 3.2, 3.0, 12.0, 12.0, 2.9, 2.8], [3, 4]),
        ([10.8, 9.0, 7.0, 1e308, 4.0, 3.5], [3]),
        ([1e20, 10.8, 9.0, 7.0, 4.0, 3.5], [0]),
    ],
)
def test_impossible_losses_are_broken_checkpoints(curve, wrong):
    step_verdicts = judge_tensors(
        {step: measure_step(step, loss=loss) for step, loss in enumerate(curve)}
    )
    bad = {step: verdict for step, verdict in step_verdicts.items() if verdict != "ok"}
    assert list(bad) == wrong
    assert all(verdict.startswith("broken: perplexity ") for verdict in bad.values())


@pytest.mark.parametrize(
    ("curve", "unlikely"),
    [
        ([10.8, 3.3, 8.4, 3.1, 3.0], {2: "loss 5.1 above those of the steps beside it"}),
        ([10.8, 3.3, 4.2, 3.1, 3.0], {}),
        ([10.8, 10.8, 8.4, 8.4, 3.0], {}),  # a slow start, or a spike of two checkpoints
        ([10.8, 4.0, 3.0, 8.4], {}),  # diverges
        ([2.94, 9.0, 5.0, 3.0], {0: "loss 2.9, where a guess has 10.8"}),
        ([2.5, 2.4, 2.3], {0: "loss 2.5, where a guess has 10.8"}),
        ([GUESSING - 0.9, 9.0, 5.0], {}),
        ([math.nan, 2.5, 2.4], {}),  # step 1 may have learned
        ([10.8, 3.0, 10.8, 2.9, 5.0, 2.8], {4: "loss 2.1 above those of the steps beside it"}),
    ],
)
def test_unlikely_losses_are_suspicious_checkpoints(curve, unlikely):
    step_verdicts = judge_tensors(
        {step: measure_step(step, loss=loss) for step, loss in enumerate(curve)}
    )
    suspicious = {
        step: verdict for step, verdict in step_verdicts.items() if verdict.startswith("suspicious")
    }
    assert suspicious == {step: f"suspicious: {words}" for step, words in unlikely.items()}


def test_a_low_first_loss_is_not_suspicious_in_a_fine_tuning():
    curve = {f"step{step}": measure_step(step, loss=2.5 - step / 10) for step in range(3)}
    checkpoints = [JudgedCheckpoint(name, step, None) for step, name in enumerate(curve)]
    for is_from_scratch, kind in ((True, Kind.SUSPICIOUS), (False, Kind.OK)):
        first = judge_measurements(checkpoints, curve, is_from_scratch=is_from_scratch)[0]
        assert first.verdict.kind is kind


# The table ------------------------------------------------------------------------------------

CURVE = [
    JudgedCheckpoint("step0", 0, None),
    JudgedCheckpoint("step1", 1, 100, NOT_YET_MOVED),
    JudgedCheckpoint("step2", 2, 200, GONE),
    JudgedCheckpoint("step3", 3, 300, Verdict(Kind.SAME_AS_STEP, steps=(9,))),
    JudgedCheckpoint("step4", 4, 400),
]
GOOD_LOSSES = {"step0": 6.9, "step1": math.nan, "step3": 0.694, "step4": math.log(2)}


def read_verdicts(folder, losses, policy):
    """Write the table of verdicts and return (verdict, shown) of each step; `losses` are those measured."""
    tables = {}
    for name, loss in losses.items():
        tables[name] = folder / f"{name}.csv", folder / f"{name}.tensors.csv"
        write_loss(
            tables[name][0], UNDEFINED if math.isnan(loss) else CrossEntropy(loss, 100, 1000)
        )
        digest = "F32", "4x4", f"{int(name[4:]):064}"
        write_tensor_digests(tables[name][1], TensorDigests({"w": digest}))
    verdicts.write_verdicts(folder / "out.csv", "tiny", CURVE, tables, policy=policy)
    with (folder / "out.csv").open(newline="") as file:
        return [(row["verdict"], row["shown"]) for row in csv.DictReader(file)]


def test_the_short_verdict_leaves_out_the_place_of_a_report(tmp_path):
    report = Verdict(Kind.REPORTED, "odd", source="https://example.org")
    verdicts.write_verdicts(
        tmp_path / "out.csv",
        "tiny",
        [JudgedCheckpoint("step1", 1, None, report)],
        {},
        policy="skip",
    )
    with (tmp_path / "out.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["verdict"] == "known bad: odd (https://example.org)"
    assert row["short_verdict"] == "known bad: odd"


def test_bad_checkpoints_are_hidden_or_hollow(tmp_path):
    rows = [("ok", "yes"), (STILL, "yes"), ("missing", "no"), (COPY, "no"), ("ok", "yes")]
    assert read_verdicts(tmp_path, GOOD_LOSSES, "skip") == rows
    rows[3] = (COPY, "hollow")
    assert read_verdicts(tmp_path, GOOD_LOSSES, "flag") == rows
    bad = GOOD_LOSSES | {"step4": math.inf}
    assert read_verdicts(tmp_path, bad, "skip")[-1] == ("broken: perplexity is infinite", "no")
    for policy in ("skip", "flag"):  # a suspicious checkpoint may be right
        verdict, display = read_verdicts(tmp_path, GOOD_LOSSES | {"step0": 0.7}, policy)[0]
        assert (verdict, display) == ("suspicious: loss 0.7, where a guess has 6.9", "hollow")


def test_the_words_of_the_atlas_for_every_verdict_can_be_read_back():
    shared_verdict = Verdict(Kind.SAME_AS_OTHERS, steps=(1, 3, 5))
    assert [format_atlas_verdict(shared_verdict, step) for step in (1, 3, 5)] == [
        "same as step 3",
        *["same as step 1"] * 2,
    ]
    reported_verdict = Verdict(Kind.REPORTED, "odd", source="there")
    assert format_atlas_verdict(reported_verdict, 1) == "suspicious"
    assert format_atlas_verdict(UNCONFIRMED, 1) == "unknown"
    for kind in Kind:
        words = format_atlas_verdict(Verdict(kind, steps=(2, 9)), 2)
        assert format_atlas_verdict(parse_atlas_verdict(words), 2) == words


# Simulated trainings --------------------------------------------------------------------------


def test_simulated_mistakes_are_found_and_good_trainings_raise_no_alarm():
    faults, false_alarms, steps = [], 0, 0
    for seed in range(10_000, 10_100):
        clean = simulate_curve(seed, is_clean=True)
        step_verdicts = judge_curve(clean)
        losses = [step.loss for step in clean.steps.values()]
        for place, (verdict, loss) in enumerate(zip(step_verdicts.values(), losses, strict=True)):
            neighbours = losses[max(0, place - 1)], losses[min(len(losses) - 1, place + 1)]
            # Only a spike or an overshoot that is gone at the next checkpoint may be doubted.
            assert verdict in GOOD or (is_doubted(verdict) and loss - max(neighbours) >= 1), seed
        curve = simulate_curve(seed, is_clean=False)
        step_verdicts = judge_curve(curve)
        faults += [
            (kind, step_verdicts[step] not in GOOD)
            for step, kind in curve.faults.items()
            if step in step_verdicts
        ]
        false_alarms += len(list_alarms(curve, step_verdicts))
        steps += len(curve.steps)
    visible_kinds = {kind for kind, shown_by in SHOWN_BY.items() if shown_by}
    assert visible_kinds <= {kind for kind, _ in faults}, "some were not planted"
    assert not [kind for kind, is_found in faults if kind in visible_kinds and not is_found]
    assert false_alarms <= 0.005 * steps
