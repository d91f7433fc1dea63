"""What a job measures for all specifications is what each of them would measure by itself."""

from dataclasses import asdict

import numpy as np
import pytest
from shape_of_learning.metrics.layer import measure_layer
from shape_of_learning.metrics.pairs import measure_pair
from shape_of_learning.metrics.resampling import window_groups

from shape_of_learning.claims.choice_tables import AFTER, BEFORE
from shape_of_learning.claims.choices import Choice, Rows, WantedMeasures
from shape_of_learning.claims.measured_rows import MeasuredRows, share_of_windows
from shape_of_learning.metrics.batches import shuffle_of
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.plan.measures import chosen_measures

WINDOWS, LENGTH, SEED, BATCH, NEIGHBOURS = 48, 10, 3, 100, 12
MEASUREMENT = {
    "batch_vectors": BATCH,
    "neighbours": NEIGHBOURS,
    "parameters": {"mada": {"k": 10}, "mom": {"k": 10}, "mle": {"k": 10}},
}
NAMES = ["anisotropy", "two_nn", "linearity", "linearity_without_first_token"]
OPTIONS = {
    "text": ("own",),
    "first_token": ("keep", "drop"),
    "special_tokens": ("keep", "drop"),
    "token_types": ("all", "one"),
    "windows_share": ("1", "0.5"),
    "batch_share": ("1", "0.5"),
}


@pytest.fixture(scope="module")
def sample():
    """Three hidden states and that before the final norm; what each row is."""
    random = np.random.default_rng(0)
    tokens = WINDOWS * LENGTH
    states = [random.normal(size=(tokens, 8)).astype(np.float32) for _ in range(4)]
    rows = {
        "windows": np.repeat(np.arange(WINDOWS), LENGTH),
        "positions": np.tile(np.arange(LENGTH), WINDOWS),
        "token_ids": random.integers(0, 60, tokens),
        "special": np.tile(np.arange(LENGTH) == LENGTH - 1, WINDOWS),
    }
    return states, rows


@pytest.fixture(scope="module")
def found(sample):
    states, rows = sample
    wanted = WantedMeasures(
        chosen_measures(MEASUREMENT, NAMES),
        [Choice(*each) for each in OPTIONS.items()],
        BATCH,
        NEIGHBOURS,
    )
    chosen = MeasuredRows(WantedMeasures.from_json(wanted.to_json()), "own", WINDOWS, SEED)
    assert chosen.windows.tolist() == list(range(WINDOWS))
    chosen.choose(rows, last=2)
    state = dict(enumerate(states))
    measured = {}
    for place in ((0, AFTER), (2, AFTER), (2, BEFORE)):
        numbers = chosen.states(*place)
        given = {number: state[number] for number in numbers}
        for choice, name, value in chosen.measured(given, *place, lambda: shuffle_of(SEED, "m")):
            measured[place, choice, name] = value
    return measured


def assert_same(measured, expected):
    np.testing.assert_equal(asdict(measured), asdict(expected))  # which takes NaN for NaN


def alone(sample, choice, place, names):
    """What the standard measurement says of the same rows."""
    (states, rows), (layer, last_layer) = sample, place
    groups = window_groups(WINDOWS, SEED)
    kept = share_of_windows(groups, float(choice.windows_share))
    among = np.flatnonzero(np.isin(rows["windows"], kept))
    selection = Selection(choice.special_tokens, choice.first_token, choice.token_types, SEED)
    of_rows = (rows[name][among] for name in ("special", "positions", "token_ids"))
    numbers = among[selection.rows(*of_rows)]
    state = states[layer + (last_layer == BEFORE)][numbers]
    windows = rows["windows"][numbers]
    measures = chosen_measures(MEASUREMENT, names)
    if measures[names[0]].of == "pair":
        return measure_pair(states[layer - 1][numbers], state, windows, measures, groups)
    size = min(len(numbers), round(BATCH * float(choice.batch_share)))
    stream = shuffle_of(SEED, "m")
    return measure_layer(state, windows, measures, size, NEIGHBOURS, stream, groups)


@pytest.mark.parametrize(
    "choice",
    [
        Rows(),
        Rows(first_token="drop", windows_share="0.5"),
        Rows(special_tokens="drop", token_types="one"),
        Rows(batch_share="0.5", first_token="drop"),
    ],
)
def test_each_specification_has_the_numbers_of_a_measurement_of_its_own(sample, found, choice):
    names = ["anisotropy", "two_nn"]
    for place in ((0, AFTER), (2, AFTER), (2, BEFORE)):
        expected = alone(sample, choice, place, names)
        for name in names:
            assert_same(found[place, choice, name], expected[name])


def test_blocks_are_measured_once_whatever_the_batches(sample, found):
    choice, place = Rows(first_token="drop"), (2, BEFORE)
    expected = alone(sample, choice, place, ["linearity"])
    assert_same(found[place, choice, "linearity"], expected["linearity"])
    assert (place, Rows(batch_share="0.5"), "linearity") not in found
    # A measure that drops first tokens itself does so whatever the choice.
    own = found[place, Rows(), "linearity_without_first_token"]
    assert_same(own, found[place, choice, "linearity"])
    assert ((0, AFTER), Rows(), "linearity") not in found


def test_half_of_the_windows_are_of_every_group_and_fit_into_all():
    groups = window_groups(WINDOWS, SEED)
    half = share_of_windows(groups, 0.5)
    assert np.bincount(groups[half]).tolist() == [2] * 16  # of three each, one and a half
    assert set(half) <= set(share_of_windows(groups, 1.0)) == set(range(WINDOWS))
    assert len(share_of_windows(groups, 0.001)) == 16


def test_only_windows_that_are_looked_at_are_run(sample):
    _, rows = sample
    choices = [Choice(k, ("0.5",) if k == "windows_share" else v) for k, v in OPTIONS.items()]
    wanted = WantedMeasures(chosen_measures(MEASUREMENT, ["two_nn"]), choices, BATCH, NEIGHBOURS)
    chosen = MeasuredRows(wanted, "own", WINDOWS, SEED)
    assert len(chosen.windows) == 32
    run = np.isin(rows["windows"], chosen.windows)
    numbered = {k: v[run] for k, v in rows.items()}
    numbered["windows"] = np.unique(numbered["windows"], return_inverse=True)[1]
    chosen.choose(numbered, last=2)
    random = np.random.default_rng(0)
    state = {0: random.normal(size=(run.sum(), 8)).astype(np.float32)}
    of_all_types = [
        value
        for choice, _, value in chosen.measured(state, 0, AFTER, lambda: shuffle_of(SEED, "m"))
        if choice.token_types == "all"
    ]
    assert of_all_types
    for value in of_all_types:
        assert not np.isnan(value.estimate.left_out).any()


def test_fewer_vectors_than_neighbours_are_not_measured(sample):
    _, rows = sample
    few = {k: np.zeros_like(v) if k == "token_ids" else v for k, v in rows.items()}
    measures = chosen_measures(MEASUREMENT, ["two_nn"])
    wanted = WantedMeasures(measures, [Choice("token_types", ("one",))], BATCH, NEIGHBOURS)
    chosen = MeasuredRows(wanted, "own", WINDOWS, SEED)
    chosen.choose(few, last=2)
    assert chosen.measured({}, 0, AFTER, lambda: shuffle_of(SEED, "m")) == []
