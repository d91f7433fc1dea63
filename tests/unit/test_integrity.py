"""What hashes say of a training curve."""

import itertools
from dataclasses import replace

from shape_of_learning.checkpoints.integrity import CurvePoint, KnownBad, judged_curve
from shape_of_learning.checkpoints.integrity_table import combined_hash
from shape_of_learning.checkpoints.weight_listing import WeightFile, WeightListing

SOURCE = "https://example.org/1"
MAIN = "org/model"
UNTOLD = "same weights in steps {}; nothing tells whose they are"


def whole(content: str, name: str = "pytorch_model.bin") -> WeightListing:
    return WeightListing(f"commit of {content}", {name: WeightFile(8, f"sha256:{content}")})


def shards(*contents: str) -> WeightListing:
    files = {
        f"model-{i:05}-of-{len(contents):05}.safetensors": WeightFile(8, f"sha256:{content}")
        for i, content in enumerate(contents, 1)
    }
    return WeightListing("commit", files)


def curve(repository: str = MAIN, **steps: WeightListing) -> list[CurvePoint]:
    """``step7=...`` is step 7."""
    return [CurvePoint(name, int(name[4:]), repository, listed) for name, listed in steps.items()]


def judged(points, mains=None, known_bad=(), last_step=None) -> dict[int, str]:
    """Verdicts by step, which must not depend on the order of the points."""
    found = judged_curve(points, mains or {}, known_bad, last_step)
    assert [each.name for each in found] == [point.name for point in points]
    backwards = judged_curve(points[::-1], mains or {}, known_bad, last_step)
    assert backwards == found[::-1]
    return {each.step: each.verdict for each in found}


def test_different_weights_are_all_ok():
    points = curve(step0=whole("a"), step1=whole("b"), step2=whole("c"))
    assert set(judged(points).values()) == {"ok"}


def test_of_equal_steps_whose_owner_nothing_tells_none_is_ok():
    points = curve(step0=whole("a"), step1=whole("a"), step2=whole("c"), step3=whole("a"))
    untold = UNTOLD.format("0, 1 and 3")
    assert judged(points) == {0: untold, 1: untold, 2: "ok", 3: untold}


def test_many_equal_steps_are_counted():
    points = curve(**{f"step{step}": whole("a") for step in range(7)}, step9=whole("z"))
    assert judged(points)[3] == UNTOLD.format("7 from 0 to 6").replace("in steps 7", "in 7 steps")


def test_the_published_weights_belong_to_the_last_step():
    points = curve(step0=whole("z"), step1=whole("z"), step2=whole("b"), step9=whole("z"))
    same = "same weights as step 9"
    found = judged(points, mains={MAIN: whole("z")})
    assert found == {0: same, 1: same, 2: "ok", 9: "ok"}


def test_the_last_step_keeps_its_name_if_main_has_been_written_anew():
    points = curve(step0=whole("y"), step1=whole("z"), step2=whole("b"), step9=whole("y"))
    found = judged(points, mains={MAIN: whole("z")}, last_step=9)
    same = {0: "same weights as step 9", 1: "same weights as main"}
    assert found == {**same, 2: "ok", 9: "ok"}


def test_the_last_step_of_a_shortened_curve_has_no_such_right():
    points = curve(step0=whole("a"), step1=whole("a"))
    untold = UNTOLD.format("0 and 1")
    assert judged(points, mains={MAIN: whole("z")}) == {0: untold, 1: untold}
    assert judged(points, mains={MAIN: whole("z")}, last_step=9) == {0: untold, 1: untold}


def test_the_model_list_knows_better_even_of_the_last_step():
    points = curve(step1=whole("a"), step2=whole("b"), step4=whole("b"))
    known = KnownBad((4,), SOURCE, same_as=2)
    found = judged(points, mains={MAIN: whole("b")}, known_bad=[known])
    assert found == {1: "ok", 2: "ok", 4: "same weights as step 2"}


def test_a_report_names_the_owner():
    points = curve(step1=whole("a"), step2=whole("a"), step3=whole("c"))
    known = KnownBad((1,), SOURCE, same_as=2)
    assert judged(points, known_bad=[known]) == {1: "same weights as step 2", 2: "ok", 3: "ok"}


def test_reports_that_contradict_each_other_name_nobody():
    points = curve(step1=whole("a"), step2=whole("a"), step3=whole("a"))
    known = [KnownBad((1,), SOURCE, same_as=2), KnownBad((2,), SOURCE, same_as=1)]
    assert set(judged(points, known_bad=known).values()) == {UNTOLD.format("1, 2 and 3")}


def test_other_files_alone_do_not_acquit():
    points = curve(step1=whole("a"), step2=whole("b"), step3=whole("c"))
    known = KnownBad((1,), SOURCE, same_as=2)
    doubted = f"known bad: same weights as step 2 ({SOURCE}), not yet confirmed"
    assert judged(points, known_bad=[known]) == {1: doubted, 2: "ok", 3: "ok"}


def test_a_mistake_that_cannot_be_looked_at_is_believed():
    points = curve(step1=whole("a"), step2=whole("b"))
    known = KnownBad(range(2), SOURCE, same_as=143000)
    found = judged(points, known_bad=[known])
    assert found == {1: f"known bad: same weights as step 143000 ({SOURCE})", 2: "ok"}


def test_a_known_bad_step_is_named_with_its_reason_and_source():
    points = curve(step1=whole("a"), step2=whole("b"))
    known = KnownBad((2,), SOURCE, because="perplexity of 320322")
    assert judged(points, known_bad=[known])[2] == f"known bad: perplexity of 320322 ({SOURCE})"


def test_whoever_shares_the_weights_of_a_known_bad_step_is_bad():
    points = curve(step1=whole("a"), step2=whole("a"), step3=whole("c"))
    known = KnownBad((2,), SOURCE, because="broken")
    assert judged(points, known_bad=[known])[1] == "same weights as step 2"


def test_but_not_the_last_step_of_training():
    points = curve(step1=whole("a"), step2=whole("b"), step3=whole("a"))
    known = KnownBad((1,), SOURCE, because="final weights")
    assert judged(points, known_bad=[known], last_step=3)[3] == "ok"


def test_the_same_weights_are_found_whatever_format_is_preferred():
    both = WeightListing("c", whole("s", "model.safetensors").files, other_format=whole("b").files)
    points = curve(step1=whole("b"), step5=whole("s", "model.safetensors"), step9=both)
    found = judged(points, mains={MAIN: both})
    assert found == {1: "same weights as step 9", 5: "same weights as step 9", 9: "ok"}


def test_a_copy_of_main_is_found_whichever_steps_are_asked_for():
    steps = {0: "z", 1: "a", 2: "z", 3: "b", 9: "z"}
    for size in range(1, 6):
        for chosen in itertools.combinations(steps, size):
            points = curve(**{f"step{step}": whole(steps[step]) for step in chosen})
            found = judged(points, mains={MAIN: whole("z")}, last_step=9)
            copies = "same weights as step 9" if 9 in chosen else "same weights as main"
            assert found == {step: copies if step in (0, 2) else "ok" for step in chosen}


def test_main_of_another_repository_than_the_last_steps_is_no_end_of_training():
    points = curve(step0=whole("a"), step1=whole("z"))
    points += [CurvePoint("main", 9, "org/final", whole("c"), is_main=True)]
    assert set(judged(points, mains={MAIN: whole("z")}).values()) == {"ok"}


def test_an_unknown_hash_equals_nothing():
    for nothing in ("", "git:", "sha256:"):
        unknown = WeightListing("c", {"model.safetensors": WeightFile(8, nothing)})
        parts = WeightListing("c", {f"{i}-of-2": WeightFile(8, nothing) for i in "12"})
        points = curve(step1=unknown, step2=unknown, step3=whole("b"), step4=parts, step5=parts)
        assert set(judged(points, mains={MAIN: unknown}).values()) == {"ok"}


def test_a_shard_of_the_last_step_makes_mixed_shards():
    early = {"step1": shards("z", "b"), "step2": shards("a", "c")}
    points = curve(**early, step9=shards("z", "y"))
    found = judged(points, mains={MAIN: shards("z", "y")})
    assert found == {1: "mixed shards", 2: "ok", 9: "ok"}


def test_a_shard_of_main_does_where_the_last_step_is_not_asked_for():
    points = curve(step1=shards("a", "b"), step2=shards("z", "c"), step3=shards("e", "f"))
    found = judged(points, mains={MAIN: shards("z", "y")}, last_step=9)
    assert found == {1: "ok", 2: "mixed shards", 3: "ok"}


def test_shards_are_compared_in_any_format():
    binary = shards("y", "z")
    main = WeightListing("c", shards("s", "t").files, other_format=_binary(binary))
    points = curve(step1=shards("a", "b"), step2=shards("y", "c"), step3=shards("e", "f"))
    points = [replace(each, listed=WeightListing("c", _binary(each.listed))) for each in points]
    assert judged(points, {MAIN: main}, last_step=9) == {1: "ok", 2: "mixed shards", 3: "ok"}


def _binary(listed: WeightListing) -> dict[str, WeightFile]:
    """The same files under the names of the older format."""
    return {
        f"pytorch_{name.replace('safetensors', 'bin')}": file for name, file in listed.files.items()
    }


def test_a_shard_that_never_changes_condemns_nobody():
    points = curve(**{f"step{i}": shards("frozen", f"own {i}", f"too {i}") for i in range(6)})
    assert set(judged(points, mains={MAIN: shards("frozen", "m", "n")}).values()) == {"ok"}
    # A copy is still found, and one that took a trained shard.
    points += curve(step6=shards("frozen", "own 1", "6"), step7=shards("frozen", "own 2", "too 2"))
    found = judged(points)
    assert [step for step, verdict in found.items() if verdict == "mixed shards"] == [1, 6]
    assert [step for step in found if "steps 2 and 7" in found[step]] == [2, 7]


def test_nor_does_one_that_two_known_steps_share():
    assert set(judged(curve(step1=shards("a", "b"), step2=shards("a", "c"))).values()) == {"ok"}


def test_nor_one_that_has_not_moved_at_first():
    points = curve(
        step0=shards("a", "0"),
        step1=shards("a", "1"),
        step2=shards("b", "2"),
        step4=shards("c", "4"),
    )
    assert set(judged(points).values()) == {"ok"}


def test_a_shard_cannot_return():
    points = curve(step1=shards("a", "1"), step2=shards("b", "2"), step3=shards("a", "3"))
    # One of the three is wrong, and nothing tells which, unless the last is known.
    assert set(judged(points).values()) == {"mixed shards"}
    assert judged(points, last_step=3) == {1: "mixed shards", 2: "ok", 3: "ok"}
    points = curve(step0=shards("z", "0"), **{each.name: each.listed for each in points})
    assert judged(points) == {0: "ok", 1: "mixed shards", 2: "ok", 3: "mixed shards"}


def test_a_strange_shard_among_frozen_ones_is_the_wrong_one():
    frozen = {f"step{i}": shards("strange" if i == 3 else "frozen", str(i)) for i in range(8)}
    assert judged(curve(**frozen))[3] == "mixed shards"
    assert list(judged(curve(**frozen)).values()).count("ok") == 7


def test_problems_of_the_listing_are_verdicts():
    points = curve(
        step0=WeightListing(problem="missing"),
        step1=WeightListing("c", problem="no weights"),
        step2=whole("b"),
    )
    assert judged(points) == {0: "missing", 1: "no weights", 2: "ok"}


def test_a_missing_last_step_leaves_its_right_to_nobody():
    points = curve(step0=whole("z"), step5=whole("z"), step9=WeightListing(problem="missing"))
    untold = UNTOLD.format("0 and 5")
    assert judged(points) == {0: untold, 5: untold, 9: "missing"}
    same = "same weights as main"
    assert judged(points, mains={MAIN: whole("z")}) == {0: same, 5: same, 9: "missing"}


def test_a_model_without_training_steps_is_judged_too():
    (found,) = judged_curve([CurvePoint("main", None, MAIN, whole("a"))], {})
    assert found.verdict == "ok"


def test_the_hash_of_shards_depends_on_each_of_them():
    assert combined_hash(whole("a").files) == "sha256:a"
    assert combined_hash({}) == ""
    assert combined_hash(shards("a", "b").files) != combined_hash(shards("b", "a").files)
    assert combined_hash(shards("a", "b").files) == combined_hash(shards("a", "b").files)


def test_nor_one_that_moves_no_more_at_the_end():
    frozen = {"step1": shards("a", "1"), "step2": shards("b", "2")}
    frozen |= {f"step{n}": shards("z", str(n)) for n in (3, 4, 5)}
    for mains in ({}, {MAIN: shards("z", "5")}, {MAIN: shards("all", "anew")}):
        for last_step in (None, 5):
            assert set(judged(curve(**frozen), mains=mains, last_step=last_step).values()) == {"ok"}
    # What takes it before is the wrong one, if the end is known; the last step shows whether it moved.
    mixed = frozen | {"step1": shards("z", "1")}
    assert judged(curve(**mixed), last_step=5) == {
        **dict.fromkeys(range(2, 6), "ok"),
        1: "mixed shards",
    }
    assert judged(curve(**mixed), last_step=9)[1] == "mixed shards"
    moved = curve(**frozen, step6=shards("y", "6"))
    assert judged(moved, last_step=6) == {
        **dict.fromkeys((1, 2, 6), "ok"),
        **dict.fromkeys((3, 4, 5), "mixed shards"),
    }


def test_a_strange_shard_between_those_that_move_no_more_is_condemned_with_them_if_nothing_tells():
    points = {"step1": shards("a", "1"), "step2": shards("b", "2"), "step3": shards("c", "3")}
    points |= {f"step{n}": shards("z", str(n)) for n in (4, 6, 7)} | {"step5": shards("x", "5")}
    points = curve(**dict(sorted(points.items())))
    assert {step for step, verdict in judged(points).items() if verdict != "ok"} == {4, 5, 6, 7}
