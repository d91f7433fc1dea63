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
    assert suspects(GUESSING, *map(math.log, perplexities)) == [8]


def test_the_published_perplexities_of_bloom_1b1_have_one_broken_step_in_the_middle():
    perplexities = [299, 53.0, 34.3, 32.4, 30.9, 338_341, 28.4, 26.8]
    assert suspects(GUESSING, *map(math.log, perplexities)) == [6]


def test_the_verdict_says_how_much_worse_it_is():
    assert judged(GUESSING, math.log(5), math.log(5), math.log(30_000))[3] == (
        "broken: perplexity 6,000 times that of earlier steps"
    )
    assert judged(GUESSING, math.log(50), math.log(300_000))[2] == (
        "broken: perplexity 6.0 times that of guessing"
    )


def test_a_broken_step_does_not_condemn_its_neighbours():
    for place in range(1, 6):
        losses = [GUESSING, 3.8, 3.6, 3.4, 3.2, 3.0]
        losses[place] = 12.0
        assert suspects(*losses) == [place]


def test_final_weights_under_an_early_name_are_found_and_not_those_that_follow():
    assert suspects(2.5, GUESSING, GUESSING, 9.0, 6.0, 4.0, 2.6) == [0]
    assert suspects(GUESSING, GUESSING, 2.5, GUESSING, 9.0, 6.0, 4.0, 2.6) == [2]


def test_neighbouring_broken_steps_are_found_and_do_not_condemn_sound_ones():
    assert suspects(GUESSING, 3.2, 3.0, 12.0, 12.0) == [3, 4]
    assert suspects(GUESSING, 9.0, 5.0, 14.0, 14.0, 4.0) == [3, 4]
    assert suspects(GUESSING, 4.0, 3.0, 9.0, 9.0, 2.8, 2.7, 2.6) == [3, 4]


def test_an_untrained_model_guesses():
    assert suspects(2.5, 7.2, 2.5) == [0]
    assert suspects(2.5, GUESSING, 2.5) == [0]


def test_several_early_steps_with_final_weights_are_found():
    assert suspects(2.5, 2.5, 2.5, GUESSING, 10.5, 10.0, 9.0, 6.0, 4.0, 2.6) == [0, 1, 2]


def test_large_initial_weights_are_no_defect_but_a_later_step_must_not_do_worse_than_guessing():
    assert suspects(GUESSING + 3, 9.0, 4.0) == []
    assert suspects(GUESSING, GUESSING + 3, 4.0) == [1]


def test_an_infinite_loss_is_broken_and_an_undefined_one_is_not_judged():
    assert suspects(GUESSING, math.inf, 3.0) == [1]
    assert suspects(GUESSING, math.nan, 3.0) == []


def test_the_order_of_rows_does_not_matter():
    losses = [GUESSING, 4.0, 4.0, 12.0, 4.0, 4.0]
    points = [MeasuredLoss(f"step{i}", i, loss, VOCABULARY) for i, loss in enumerate(losses)]
    assert broken(points) == broken(points[::-1])
