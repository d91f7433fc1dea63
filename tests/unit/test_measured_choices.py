"""A job that measures all specifications at once gets the values of measuring each one separately."""

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
from shape_of_learning.plan.settings import Measurement, choose_measures
from shape_of_learning.random_streams import random_stream

WINDOWS, LENGTH = 48, 10
PROTOCOL = MeasuringProtocol("m", windows=WINDOWS, seed=3, batch_vectors=100, neighbours=12)
MEASUREMENT = Measurement(batch_vectors=100, neighbours=12)
NAMES = ["anisotropy", "two_nn", "linearity", "linearity_without_first_token"]
MEASURES = list(choose_measures(MEASUREMENT, NAMES).values())
KEEP = ("keep", "drop")
SHARES = ("1", "0.5")
SWITCHES = (KEEP, KEEP, ("all", "one"), KEEP, ("keep",), ("all", "last_token"), SHARES, SHARES)
CHOICES = [SampleVariant("own", *options) for options in product(*SWITCHES)]
PLACES = ((0, AFTER), (2, AFTER), (2, BEFORE))


class PlainStates:
    """Some rows of the hidden states of three layers, and of the state before the final norm."""

    layers = 2

    def __init__(self, states, rows, kept_rows=slice(None)):
        self._states = [state[kept_rows] for state in states]
        self.rows = {name: values[kept_rows] for name, values in rows.items()}

    def __getitem__(self, state):
        return self._states[state]

    @property
    def massive(self):
        return find_massive_in_any_state(self._states)


def measure_variants(states, parts, *place):
    """Yield the rows of a layer with their variants."""
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
def rows_by_choice(sample):
    states = PlainStates(*sample)
    parts = divide_sample(states.rows, CHOICES, MEASURES, PROTOCOL)
    return {
        (place, choice, row.estimator): row._replace(selection="")
        for place in PLACES
        for choice, row in measure_variants(states, parts, *place)
    }


def measure_alone(sample, kept_rows, place, name, **changes):
    """Measure a layer of a run whose sample has these rows only."""
    (states, rows), (layer, last_layer) = sample, place
    layer_states = [*states[:2], states[3]] if last_layer == BEFORE else states[:3]
    measure = replace(MEASURES[NAMES.index(name)], rows={})
    kept_states = PlainStates(layer_states, rows, kept_rows)
    *_, row = measure_layer(
        kept_states, layer, measure.family, [measure], replace(PROTOCOL, **changes)
    )
    return row._replace(selection="")


@pytest.mark.parametrize("place", PLACES)
def test_a_specification_has_the_numbers_of_a_separate_measurement(sample, rows_by_choice, place):
    _, rows = sample
    is_in_half = np.isin(
        rows["windows"], choose_windows([SampleVariant(windows_share="0.5")], PROTOCOL)
    )
    one_per_type = choose_measured_rows(
        PROTOCOL, rows, Selection(special_tokens="drop", token_types="one")
    )
    is_first = rows["positions"] == 0
    for name in ("anisotropy", "two_nn"):
        expected = measure_alone(sample, slice(None), place, name)
        assert_equal(rows_by_choice[place, SampleVariant(), name], expected)
        half_variant = SampleVariant(first_token="drop", windows_share="0.5")
        assert_equal(
            rows_by_choice[place, half_variant, name],
            measure_alone(sample, is_in_half & ~is_first, place, name),
        )
        small_batches = SampleVariant(first_token="drop", batch_share="0.5")
        small_batch_row = measure_alone(sample, ~is_first, place, name, batch_vectors=50)
        assert_equal(rows_by_choice[place, small_batches, name], small_batch_row)
        # Fewer vectors than a batch has form a single batch.
        type_variant = SampleVariant(special_tokens="drop", token_types="one")
        assert len(one_per_type) < PROTOCOL.batch_vectors
        type_row = measure_alone(sample, one_per_type, place, name, batch_vectors=len(one_per_type))
        assert_equal(rows_by_choice[place, type_variant, name], type_row)
        last_variant = SampleVariant(sequence="last_token")
        is_last = rows["positions"] == LENGTH - 1
        assert_equal(
            rows_by_choice[place, last_variant, name],
            measure_alone(sample, is_last, place, name, batch_vectors=WINDOWS),
        )


def test_blocks_are_measured_once_for_all_batch_sizes(sample, rows_by_choice):
    choice, place = SampleVariant(first_token="drop"), (2, BEFORE)
    expected = measure_alone(sample, sample[1]["positions"] > 0, place, "linearity")
    assert_equal(rows_by_choice[place, choice, "linearity"], expected)
    assert (place, SampleVariant(batch_share="0.5"), "linearity") not in rows_by_choice
    # A measure that drops first tokens itself does so under every choice.
    row = rows_by_choice[place, SampleVariant(), "linearity_without_first_token"]
    assert_equal(row._replace(estimator="linearity"), expected)
    assert ((0, AFTER), SampleVariant(), "linearity") not in rows_by_choice


def test_neighbours_of_the_same_window_can_be_left_out(sample):
    (states, rows), place = sample, (1, AFTER)
    choices = [SampleVariant(), SampleVariant(same_window="drop")]
    parts = divide_sample(rows, choices, MEASURES, PROTOCOL)
    values_by_choice = {
        (choice, row.estimator): row.value
        for choice, row in measure_variants(PlainStates(*sample), parts, *place)
    }
    assert (choices[1], "anisotropy") not in values_by_choice  # anisotropy has no neighbours
    stream = random_stream(PROTOCOL.seed, "batches", model=PROTOCOL.model)
    values = []
    for batch in divide_shuffled(len(rows["windows"]), PROTOCOL.batch_vectors, stream):
        distances = cdist(states[1][batch], states[1][batch])
        same = rows["windows"][batch][:, None] == rows["windows"][batch]
        np.fill_diagonal(same, True)
        values.append(two_nn(np.sort(np.where(same, np.inf, distances), axis=1)[:, :2]))
    assert values_by_choice[choices[1], "two_nn"] == pytest.approx(np.mean(values), rel=1e-6)
    assert values_by_choice[choices[1], "two_nn"] != values_by_choice[choices[0], "two_nn"]


def test_too_few_neighbours_in_other_windows_leave_a_measure_undefined():
    """Each vector of the first window has 10 neighbours in the other window, fewer than the 12 of the measure."""
    X = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
    windows = np.repeat([0, 1], [20, 10])
    rows = {"windows": windows, "positions": np.arange(30), "token_ids": np.arange(30)}
    rows["special"] = np.zeros(30, bool)
    protocol = replace(PROTOCOL, windows=2, batch_vectors=30)
    measurement = MEASUREMENT.model_copy(update={"parameters": {"mom": {"k": 12}}})
    measures = list(choose_measures(measurement, ["mom", "two_nn"]).values())
    parts = divide_sample(rows, [SampleVariant(same_window="drop")], measures, protocol)
    values = {
        row.estimator: row.value
        for _, row in measure_variants(PlainStates([X, X], rows), parts, 1, AFTER)
    }
    assert np.isnan(values["mom"])
    assert values["two_nn"] > 0


def test_a_vector_that_is_in_several_windows_is_a_neighbour_in_each_of_them():
    vectors = np.array([[0, 0], [1, 0], [0, 0], [9, 9]], np.float32)
    lists = NeighbourLists(*nearest_neighbours(vectors, 2), np.arange(4))
    kept_lists = lists.drop_own_windows(np.array([0, 0, 1, 1]), 1)
    assert kept_lists.distances[kept_lists.distinct_of[1], 0] == 1


def test_too_few_rows_are_not_measured(sample):
    _, rows = sample
    few = rows | {"token_ids": np.zeros(len(rows["token_ids"]), dtype=int)}
    assert divide_sample(few, [SampleVariant(token_types="one")], MEASURES, PROTOCOL) == []


def test_windows_of_other_choices_are_not_needed(sample, rows_by_choice):
    states, rows = sample
    choices = [choice for choice in CHOICES if choice.windows_share == "0.5"]
    is_chosen = np.isin(rows["windows"], choose_windows(choices, PROTOCOL))
    half_states = PlainStates(states, rows, is_chosen)
    parts = divide_sample(half_states.rows, choices, MEASURES[:2], PROTOCOL)
    for variant, row in measure_variants(half_states, parts, 0, AFTER):
        if variant.token_types == "all":
            assert_equal(
                row._replace(selection=""), rows_by_choice[(0, AFTER), variant, row.estimator]
            )
