"""What hashes say of a training curve."""

from shape_of_learning.checkpoints.integrity import CurvePoint, KnownBad, verdicts
from shape_of_learning.checkpoints.integrity_table import combined_hash
from shape_of_learning.checkpoints.weight_listing import WeightFile, WeightListing

SOURCE = "https://example.org/1"


def whole(content: str, name: str = "pytorch_model.bin") -> WeightListing:
    return WeightListing(f"commit of {content}", {name: WeightFile(8, f"sha256:{content}")})


def shards(*contents: str) -> WeightListing:
    files = {f"shard-{i}": WeightFile(8, f"sha256:{c}") for i, c in enumerate(contents)}
    return WeightListing("commit", files)


def curve(repository: str = "org/model", **steps: WeightListing) -> list[CurvePoint]:
    """``step7=...`` is step 7."""
    return [CurvePoint(name, int(name[4:]), repository, listed) for name, listed in steps.items()]


def judged(points, mains=None, known_bad=()) -> dict[int, str]:
    found = verdicts(points, mains or {}, known_bad)
    return {point.step: found[point.name] for point in points}


def test_different_weights_are_all_ok():
    points = curve(step0=whole("a"), step1=whole("b"), step2=whole("c"))
    assert set(judged(points).values()) == {"ok"}


def test_of_two_equal_steps_the_earlier_keeps_its_name():
    points = curve(step0=whole("a"), step1=whole("a"), step2=whole("c"))
    assert judged(points) == {0: "ok", 1: "same weights as step 0", 2: "ok"}


def test_the_published_weights_belong_to_the_last_step():
    points = curve(step0=whole("z"), step1=whole("z"), step2=whole("b"), step9=whole("z"))
    same = "same weights as step 9"
    found = judged(points, mains={"org/model": whole("z")})
    assert found == {0: same, 1: same, 2: "ok", 9: "ok"}


def test_the_last_step_of_a_shortened_curve_has_no_such_right():
    points = curve(step0=whole("a"), step1=whole("a"))
    found = judged(points, mains={"org/model": whole("z")})
    assert found == {0: "ok", 1: "same weights as step 0"}


def test_the_model_list_knows_better_even_of_the_last_step():
    points = curve(step1=whole("a"), step2=whole("b"), step4=whole("b"))
    known = KnownBad((4,), SOURCE, same_as=2)
    found = judged(points, mains={"org/model": whole("b")}, known_bad=[known])
    assert found == {1: "ok", 2: "ok", 4: "same weights as step 2"}


def test_the_model_list_knows_better_which_of_two_is_right():
    points = curve(step1=whole("a"), step2=whole("a"), step3=whole("c"))
    known = KnownBad((1,), SOURCE, same_as=2)
    assert judged(points, known_bad=[known]) == {1: "same weights as step 2", 2: "ok", 3: "ok"}


def test_a_mistake_that_was_mended_is_no_mistake():
    points = curve(step1=whole("a"), step2=whole("b"), step3=whole("c"))
    known = KnownBad((1,), SOURCE, same_as=2)
    assert judged(points, known_bad=[known])[1] == "ok"


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


def test_the_same_weights_are_found_whatever_format_is_preferred():
    both = WeightListing("c", whole("s", "model.safetensors").files, other_format=whole("b").files)
    points = curve(step1=whole("b"), step9=both)
    assert judged(points, mains={"org/model": both})[1] == "same weights as step 9"


def test_copies_of_main_are_found_where_the_last_step_is_not_in_the_curve():
    points = curve(step0=whole("z"), step1=whole("z"), step2=whole("b"))
    found = judged(points, mains={"org/model": whole("z")})
    assert found == {0: "same weights as main", 1: "same weights as main", 2: "ok"}


def test_one_step_may_be_what_main_was_made_from():
    points = curve(step0=whole("a"), step1=whole("z"), step2=whole("b"))
    assert set(judged(points, mains={"org/model": whole("z")}).values()) == {"ok"}


def test_a_shard_of_another_step_makes_mixed_shards():
    points = curve(step1=shards("a", "b"), step2=shards("z", "c"), step9=shards("z", "y"))
    found = judged(points, mains={"org/model": shards("z", "y")})
    assert found == {1: "ok", 2: "mixed shards", 9: "ok"}


def test_problems_of_the_listing_are_verdicts():
    points = curve(
        step0=WeightListing(problem="missing"),
        step1=WeightListing("c", problem="no weights"),
        step2=whole("b"),
    )
    assert judged(points) == {0: "missing", 1: "no weights", 2: "ok"}


def test_a_missing_last_step_does_not_take_the_last_ones_right():
    points = curve(step0=whole("z"), step5=whole("z"), step9=WeightListing(problem="missing"))
    assert judged(points) == {0: "ok", 5: "same weights as step 0", 9: "missing"}


def test_a_model_without_training_steps_is_judged_too():
    point = CurvePoint("main", None, "org/model", whole("a"))
    assert verdicts([point], {}) == {"main": "ok"}


def test_the_hash_of_shards_depends_on_each_of_them():
    assert combined_hash(whole("a").files) == "sha256:a"
    assert combined_hash({}) == ""
    assert combined_hash(shards("a", "b").files) != combined_hash(shards("b", "a").files)
    assert combined_hash(shards("a", "b").files) == combined_hash(shards("a", "b").files)
