"""Losses that cannot be right."""

import math

from shape_of_learning.checkpoints.sanity import MeasuredLoss, broken

VOCABULARY = 50_000
GUESSING = math.log(VOCABULARY)


def judged(*losses: float) -> list[str]:
    """Verdicts of checkpoints with these losses, empty where there is none."""
    points = [MeasuredLoss(f"step{i}", i, loss, VOCABULARY) for i, loss in enumerate(losses)]
    found = broken(points)
    return [found.get(point.name, "") for point in points]


def suspects(*losses: float) -> list[int]:
    return [i for i, verdict in enumerate(judged(*losses)) if verdict]


def test_a_training_that_learns_is_sound():
    assert suspects(GUESSING + 0.2, GUESSING + 0.1, 9, 6, 4, 3, 2.6, 2.5) == []


def test_even_if_it_is_looked_at_only_at_both_ends():
    assert suspects(GUESSING + 0.2, 2.5) == []
    assert suspects(GUESSING + 0.2, 4.5, 2.5) == []


def test_the_published_perplexities_of_bloom_560m_have_one_broken_step():
    # Discussion 2 of its repository, steps 1000 to 600000; step 500000 has the weights of 10000.
    perplexities = [392, 71, 53, 51, 50, 50, 71, 320_322]
    assert suspects(*map(math.log, perplexities)) == [7]


def test_the_published_perplexities_of_bloom_1b1_have_one_broken_step_in_the_middle():
    perplexities = [299, 53.0, 34.3, 32.4, 30.9, 338_341, 28.4, 26.8]
    assert suspects(*map(math.log, perplexities)) == [5]


def test_the_verdict_says_how_much_worse_it_is():
    assert judged(math.log(50), math.log(50), math.log(300_000))[2] == (
        "broken: perplexity 6,000 times that of earlier steps"
    )


def test_a_broken_step_does_not_condemn_its_neighbours():
    for place in range(1, 6):
        losses = [4.0, 3.8, 3.6, 3.4, 3.2, 3.0]
        losses[place] = 12.0
        assert suspects(*losses) == [place]


def test_final_weights_under_an_early_name_are_found_and_not_those_that_follow():
    assert suspects(2.5, GUESSING, GUESSING, 9.0, 6.0, 4.0, 2.6) == [0]
    assert suspects(GUESSING, GUESSING, 2.5, GUESSING, 9.0, 6.0, 4.0, 2.6) == [2]


def test_a_first_step_that_is_worse_than_guessing_is_broken():
    assert suspects(GUESSING + 3, 6.0, 4.0) == [0]


def test_an_infinite_loss_is_broken_and_an_undefined_one_is_not_judged():
    assert suspects(4.0, math.inf, 3.0) == [1]
    assert suspects(4.0, math.nan, 3.0) == []


def test_the_order_of_rows_does_not_matter():
    points = [MeasuredLoss(f"step{i}", i, 12.0 if i == 3 else 4.0, VOCABULARY) for i in range(6)]
    assert broken(points) == broken(points[::-1])
