"""Losses that cannot be right."""

import itertools
import math

import numpy as np
import pytest

from shape_of_learning.checkpoints.sanity import (
    MeasuredLoss,
    broken,
    falling_curve,
)

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


@pytest.mark.parametrize(
    ("losses", "wrong"),
    [
        ([10.9, 4.0, 10.5, 10.5], [2, 3]),  # two that guess do not outvote one that has learned
        ([10.83, 4.0, 10.83, 3.0], [2]),
        ([GUESSING, 3.2, 3.0, 12.0, 12.0], [3, 4]),
        ([10.8, 10.8, 10.8, 9.0, 2.5, 6.0, 5.0, 4.0, 3.0, 2.4, 2.3], []),  # 3.5 nats may be a spike
        ([10.8, 10.8, 10.8, 2.5, 10.7, 9.0, 5.0, 4.0, 3.0, 2.4, 2.3], [3]),
    ],
)
def test_distance_counts_and_not_the_number_of_votes(losses, wrong):
    assert suspects(*losses) == wrong


@pytest.mark.parametrize(
    "losses",
    [
        [14.0, 13.9, 12.0, 9.0, 5.0, 4.0],  # large logits at the start
        [14.0, 13.9, 12.0],
        [10.8] * 12 + [10.7, 9.0, 6.0, 4.0, 3.5],  # a slow start
        [10.8, 12.9, 11.5, 8.0, 5.0, 4.0, 3.6],  # an overshoot
        [10.8, 13.8, 4.0],
        # Spikes of 5 nats: one, several, a long one, the last.
        [10.8, 6.0, 4.0, 3.0, 8.0, 2.9, 2.8, 2.8],
        [10.8, 6.0, 4.0, 9.0, 3.0, 8.0, 5.5, 4.0, 2.9, 7.9],
        [10.8, 4.0, 3.0, 8.0, 8.0, 8.0, 8.0, 8.0, 2.9],
        [10.8, 3.0, 8.0],
    ],
)
def test_what_a_sound_training_may_do_is_not_called_broken(losses):
    assert suspects(*losses) == []


def test_spikes_of_up_to_5_nats_anywhere_in_any_training_are_sound():
    random = np.random.default_rng(0)
    for _ in range(300):
        steps = int(random.integers(3, 60))
        losses = 2 + 8.8 / (1 + np.arange(steps) / random.uniform(0.3, 10)) ** random.uniform(
            0.3, 1
        )
        losses += random.normal(0, 0.05, steps)
        spikes = random.random(steps) < 0.2
        assert suspects(*(losses + spikes * random.uniform(0, 5, steps))) == []


def test_the_verdict_says_how_much_worse_it_is():
    assert judged(GUESSING, math.log(5), math.log(5), math.log(30_000))[3] == (
        "broken: perplexity 6,000 times that of the other steps"
    )
    assert judged(2.5, GUESSING, 9.0)[0].startswith("broken: perplexity 4,100 times lower than")


def test_a_broken_step_does_not_condemn_its_neighbours():
    for place in range(2, 6):
        losses = [GUESSING, 3.8, 3.6, 3.4, 3.2, 3.0]
        losses[place] = 12.0
        assert suspects(*losses) == [place]


def test_neighbouring_broken_steps_are_found_and_do_not_condemn_sound_ones():
    assert suspects(GUESSING, 9.0, 5.0, 14.0, 14.0, 4.0) == [3, 4]
    assert suspects(GUESSING, 4.0, 3.0, 9.0, 9.0, 2.8, 2.7, 2.6) == [3, 4]


@pytest.mark.parametrize(("early", "late"), [(1, 6), (2, 8), (1, 8), (3, 8)])
def test_two_steps_that_were_exchanged_are_found(early, late):
    losses = [10.8, 9.0, 7.6, 6.5, 5.6, 4.9, 4.3, 3.8, 3.4, 3.1]
    losses[early], losses[late] = losses[late], losses[early]
    found = judged(*losses)
    assert found[early] == f"exchanged with step {late}, by its loss"
    assert found[late] == f"exchanged with step {early}, by its loss"
    assert suspects(*losses) == [early, late]


def test_exchanged_neighbours_that_look_like_a_spike_are_not_found():
    assert suspects(10.8, 9.0, 5.0, 7.0, 4.0, 3.0) == []


def test_the_curve_never_rises_and_no_other_is_nearer():
    """Compared with all curves through the values of up to six losses."""
    random = np.random.default_rng(0)
    for _ in range(100):
        losses = np.round(random.uniform(2, 14, int(random.integers(1, 7))), 1)
        above, below = random.uniform(0.1, 3, (2, len(losses)))

        def cost(curve, losses=losses, above=above, below=below):
            distance = losses - np.asarray(curve)
            return np.where(distance > 0, above * distance, -below * distance).sum()

        fitted = falling_curve(losses, above, below)
        assert (np.diff(fitted) <= 0).all()
        falling = itertools.combinations_with_replacement(sorted(losses)[::-1], len(losses))
        assert cost(fitted) == pytest.approx(min(map(cost, falling)), abs=1e-12)


def test_final_weights_under_an_early_name_are_found_and_not_those_that_follow():
    assert suspects(2.5, GUESSING, GUESSING, 9.0, 6.0, 4.0, 2.6) == [0]
    assert suspects(GUESSING, GUESSING, 2.5, GUESSING, 9.0, 6.0, 4.0, 2.6) == [2]


def test_an_untrained_model_guesses():
    assert suspects(2.5, GUESSING, 2.5) == [0]
    assert suspects(2.5, GUESSING, 9.0, 4.0, 2.6) == [0]


def test_a_training_that_starts_from_a_trained_model_is_sound():
    assert suspects(2.5, 2.4, 2.3, 2.2) == []
    assert suspects(2.5, 7.2, 2.5) == []  # a spike
    assert suspects(2.5, 2.4, 12.0, 2.3) == [2]


@pytest.mark.parametrize("place", range(1, 8))
@pytest.mark.parametrize("loss", [200.0, 1e20, 1e308])
@pytest.mark.filterwarnings("error")
def test_no_loss_is_so_high_that_it_condemns_others(place, loss):
    losses = [GUESSING, 9.0, 7.0, 5.0, 4.0, 3.5, 3.2, 3.0]
    losses[place] = loss
    assert suspects(*losses) == [place]


def test_several_early_steps_with_final_weights_are_found():
    assert suspects(2.5, 2.5, 2.5, GUESSING, 10.5, 10.0, 9.0, 6.0, 4.0, 2.6) == [0, 1, 2]


def test_an_undefined_loss_is_not_judged():
    assert suspects(GUESSING, math.nan, 3.0) == []


def test_the_order_of_rows_does_not_matter():
    losses = [GUESSING, 4.0, 4.0, 12.0, 4.0, 4.0]
    points = [MeasuredLoss(f"step{i}", i, loss, VOCABULARY) for i, loss in enumerate(losses)]
    assert broken(points) == broken(points[::-1])
