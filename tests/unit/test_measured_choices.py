"""What a job measures for all specifications is what each of them would measure by itself."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_equal  # which takes NaN for NaN
from scipy.spatial.distance import cdist

from shape_of_learning.estimators.dimension import two_nn
from shape_of_learning.estimators.massive import find_massive_in_any_state
from shape_of_learning.estimators.neighbours import nearest_neighbours
from shape_of_learning.metrics.batches import NeighbourLists
from shape_of_learning.metrics.measure import (
    choose_windows,
    divide_sample,
    measure_layer,
    measure_parts,
)
from shape_of_learning.metrics.measure_entry import AFTER, BEFORE, SampleVariant
from shape_of_learning.metrics.protocol import MeasuringProtocol, Selection
from shape_of_learning.metrics.selections import choose_measured_rows, divide_shuffled
from shape_of_learning.plan.settings import choose_measures
from shape_of_learning.random_streams import random_stream

WINDOWS, LENGTH = 48, 10
HOW = MeasuringProtocol("m", windows=WINDOWS, seed=3, batch_vectors=100, neighbours=12)
MEASUREMENT = {"parameters": {}, "batch_vectors": 100, "neighbours": 12}
NAMES = ["anisotropy", "two_nn", "linearity", "linearity_without_first_token"]
MEASURES = list(choose_measures(MEASUREMENT, NAMES).values())
KEEP = ("keep", "drop")
SHARES = ("1", "0.5")
SWITCHES = (KEEP, KEEP, ("all", "one"), KEEP, ("keep",), ("all", "last_token"), SHARES, SHARES)
CHOICES = [SampleVariant("own", *options) for options in product(*SWITCHES)]
PLACES = ((0, AFTER), (2, AFTER), (2, BEFORE))


class States:
    """Hidden states of three layers and that before the final norm, of some rows."""

    layers = 2

    def __init__(self, states, rows, kept=slice(None)):
        self._states = [state[kept] for state in states]
        self.rows = {name: of[kept] for name, of in rows.items()}

    def __getitem__(self, state):
        return self._states[state]

    @property
    def massive(self):
        return find_massive_in_any_state(self._states)


def chosen_rows(states, parts, *place):
    """Rows of a layer, with the choices that they are of."""
    for part, _, rows in measure_parts(states, parts, *place):
        yield from ((choice, row) for row in rows if row.batch is None for choice in part.variants)


@pytest.fixture(scope="module")
def sample():
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
    states = States(*sample)
    parts = divide_sample(states.rows, CHOICES, MEASURES, HOW)
    return {
        (place, choice, row.estimator): row._replace(selection="")
        for place in PLACES
        for choice, row in chosen_rows(states, parts, *place)
    }


def alone(sample, kept, place, name, **how):
    """What the measurement of a run says, if the sample has no other rows."""
    (states, rows), (layer, last_layer) = sample, place
    own = [*states[:2], states[3]] if last_layer == BEFORE else states[:3]
    measure = replace(MEASURES[NAMES.index(name)], rows={})
    of = States(own, rows, kept)
    *_, row = measure_layer(of, layer, measure.family, [measure], replace(HOW, **how))
    return row._replace(selection="")


@pytest.mark.parametrize("place", PLACES)
def test_each_specification_has_the_numbers_of_a_measurement_of_its_own(sample, found, place):
    _, rows = sample
    half = np.isin(rows["windows"], choose_windows([SampleVariant(windows_share="0.5")], HOW))
    one = choose_measured_rows(HOW, rows, Selection(special_tokens="drop", token_types="one"))
    first = rows["positions"] == 0
    for name in ("anisotropy", "two_nn"):
        whole = alone(sample, slice(None), place, name)
        assert_equal(found[place, SampleVariant(), name], whole)
        dropped = SampleVariant(first_token="drop", windows_share="0.5")
        assert_equal(found[place, dropped, name], alone(sample, half & ~first, place, name))
        small = SampleVariant(first_token="drop", batch_share="0.5")
        of_half = alone(sample, ~first, place, name, batch_vectors=50)
        assert_equal(found[place, small, name], of_half)
        # Of fewer vectors than a batch has, all are one.
        types = SampleVariant(special_tokens="drop", token_types="one")
        assert len(one) < HOW.batch_vectors
        of_types = alone(sample, one, place, name, batch_vectors=len(one))
        assert_equal(found[place, types, name], of_types)
        last = SampleVariant(sequence="last_token")
        is_last = rows["positions"] == LENGTH - 1
        assert_equal(
            found[place, last, name], alone(sample, is_last, place, name, batch_vectors=WINDOWS)
        )


def test_blocks_are_measured_once_whatever_the_batches(sample, found):
    choice, place = SampleVariant(first_token="drop"), (2, BEFORE)
    expected = alone(sample, sample[1]["positions"] > 0, place, "linearity")
    assert_equal(found[place, choice, "linearity"], expected)
    assert (place, SampleVariant(batch_share="0.5"), "linearity") not in found
    # A measure that drops first tokens itself does so whatever the choice.
    own = found[place, SampleVariant(), "linearity_without_first_token"]
    assert_equal(own._replace(estimator="linearity"), expected)
    assert ((0, AFTER), SampleVariant(), "linearity") not in found


def test_neighbours_of_the_same_window_can_be_left_out(sample):
    (states, rows), place = sample, (1, AFTER)
    choices = [SampleVariant(), SampleVariant(same_window="drop")]
    parts = divide_sample(rows, choices, MEASURES, HOW)
    found = {
        (choice, row.estimator): row.value
        for choice, row in chosen_rows(States(*sample), parts, *place)
    }
    assert (choices[1], "anisotropy") not in found  # which has no neighbours
    stream = random_stream(HOW.seed, "batches", model=HOW.model)
    values = []
    for batch in divide_shuffled(len(rows["windows"]), HOW.batch_vectors, stream):
        distances = cdist(states[1][batch], states[1][batch])
        same = rows["windows"][batch][:, None] == rows["windows"][batch]
        np.fill_diagonal(same, True)
        values.append(two_nn(np.sort(np.where(same, np.inf, distances), axis=1)[:, :2]))
    assert found[choices[1], "two_nn"] == pytest.approx(np.mean(values), rel=1e-6)
    assert found[choices[1], "two_nn"] != found[choices[0], "two_nn"]


def test_too_few_neighbours_in_other_windows_leave_a_measure_undefined():
    """The first window has 20 vectors, so that each of them has 10 neighbours elsewhere, and 12 are asked for."""
    X = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
    windows = np.repeat([0, 1], [20, 10])
    rows = {"windows": windows, "positions": np.arange(30), "token_ids": np.arange(30)}
    rows["special"] = np.zeros(30, bool)
    how = replace(HOW, windows=2, batch_vectors=30)
    settings = MEASUREMENT | {"parameters": {"mom": {"k": 12}}}
    measures = list(choose_measures(settings, ["mom", "two_nn"]).values())
    parts = divide_sample(rows, [SampleVariant(same_window="drop")], measures, how)
    found = {
        row.estimator: row.value for _, row in chosen_rows(States([X, X], rows), parts, 1, AFTER)
    }
    assert np.isnan(found["mom"])
    assert found["two_nn"] > 0


def test_a_vector_that_is_in_several_windows_is_a_neighbour_in_each():
    vectors = np.array([[0, 0], [1, 0], [0, 0], [9, 9]], np.float32)
    lists = NeighbourLists(*nearest_neighbours(vectors, 2), np.arange(4))
    kept = lists.drop_own_windows(np.array([0, 0, 1, 1]), 1)
    assert kept.distances[kept.distinct_of[1], 0] == 1


def test_too_few_rows_are_not_measured(sample):
    _, rows = sample
    few = rows | {"token_ids": np.zeros(len(rows["token_ids"]), dtype=int)}
    assert divide_sample(few, [SampleVariant(token_types="one")], MEASURES, HOW) == []


def test_only_windows_that_are_looked_at_are_run(sample, found):
    states, rows = sample
    choices = [each for each in CHOICES if each.windows_share == "0.5"]
    run = np.isin(rows["windows"], choose_windows(choices, HOW))
    of_half = States(states, rows, run)
    parts = divide_sample(of_half.rows, choices, MEASURES[:2], HOW)
    for choice, row in chosen_rows(of_half, parts, 0, AFTER):
        if choice.token_types == "all":
            assert_equal(row._replace(selection=""), found[(0, AFTER), choice, row.estimator])
