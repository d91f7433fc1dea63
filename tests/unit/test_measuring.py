"""The measures of a layer are the values of the library's functions of its vectors."""

import numpy as np
import pytest

from clouds import distances_by_brute_force, hidden_states
from made_states import MadeStates
from shape_of_learning.errors import InputError
from shape_of_learning.estimators.arrays import distinct_rows
from shape_of_learning.estimators.dimension import mean_distance_to_mean
from shape_of_learning.estimators.massive import find_massive
from shape_of_learning.estimators.neighbours import nearest_distances
from shape_of_learning.estimators.spread import spectrum
from shape_of_learning.metrics import selections
from shape_of_learning.metrics.measure import measure_layer
from shape_of_learning.metrics.measure_entry import FAMILIES, Measure
from shape_of_learning.metrics.protocol import MeasuringProtocol, Selection
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.tidy import GROUPS
from shape_of_learning.random_streams import random_stream

NEIGHBOURS, BATCH_VECTORS, TOKENS = 128, 300, 1000
PROTOCOL = {"windows": 20, "seed": 0, "batch_vectors": BATCH_VECTORS, "neighbours": NEIGHBOURS}


def window_sum_norm(X, windows):
    """Sum the norms of the windows' sums: a measure of vectors and their windows."""
    return sum(np.linalg.norm(X[windows == window].sum(axis=0)) for window in np.unique(windows))


ADDED_MEASURES = {
    "total_variance": Measure("numpy:sum", "spectrum"),
    "reach": Measure("numpy:vdot", "linearity"),
    "later": Measure("numpy:vdot", "linearity", rows={"first_token": "drop"}),
    "ordinary": Measure("numpy:vdot", "linearity", rows={"massive_tokens": "drop"}),
    "before": Measure("numpy:vdot", "linearity", rows={"last_layer": "before_final_norm"}),
    "apart": Measure(f"{__name__}:window_sum_norm", "windows"),
    "apart_later": Measure(f"{__name__}:window_sum_norm", "windows", rows={"first_token": "drop"}),
}
CONFIGURED_MEASURES = {
    name: entry.configure(name, {}) for name, entry in {**MEASURES, **ADDED_MEASURES}.items()
}
# Measures of the rows that the run chooses, in batches.
BATCH_MEASURES = {
    name: measure
    for name, measure in CONFIGURED_MEASURES.items()
    if measure.family in ("isotropy", "spectrum", "dimension") and not measure.rows
}


def measure_rows(states, names, layer=0, **selection):
    """Return the rows of each measure: a row per batch, and the row of the layer."""
    protocol = selections.MeasuringProtocol(
        "m", **PROTOCOL, selection=selections.Selection(**selection)
    )
    measures = [CONFIGURED_MEASURES[name] for name in names]
    rows = [row for f in FAMILIES for row in measure_layer(states, layer, f, measures, protocol)]
    return {name: [row for row in rows if row.estimator == name] for name in names}


def make_states():
    """Make states of two layers with duplicates."""
    X = hidden_states(TOKENS).astype(np.float32)
    X[400:420] = X[380:400]
    return MadeStates(X, X[::-1] * 2)


def copy_distances(X):
    """Compute distances with copies, as `two_nn_authors` takes them."""
    return distances_by_brute_force(X, 2) / mean_distance_to_mean(X)


def measure_by_hand(name, X):
    """Yield (n, distinct, value) of each batch, by the functions of the library."""
    measure = CONFIGURED_MEASURES[name]
    batches = [X[rows] for rows in selections.divide_contiguously(len(X), BATCH_VECTORS)]
    if measure.family == "dimension":
        stream = random_stream(0, "batches", model="m")
        batches = [X[rows] for rows in selections.divide_shuffled(len(X), BATCH_VECTORS, stream)]
    for batch in batches:
        if measure.family == "dimension":
            data = (
                nearest_distances(batch, NEIGHBOURS) if measure.collapse else copy_distances(batch)
            )
        else:
            data = batch if measure.family == "isotropy" else spectrum(batch)
        value = measure.load()(data)
        # Distances of copies are summed in another order.
        expected_value = value if measure.collapse else pytest.approx(value, rel=1e-12)
        yield len(batch), len(distinct_rows(batch)), expected_value


def list_values(rows):
    return [(row.n, row.n_unique, row.value) for row in rows if row.batch is not None]


@pytest.mark.parametrize("layer", [0, 1])
def test_each_batch_has_the_value_of_its_vectors(layer):
    states = make_states()
    for name, (*batches, layer_row) in measure_rows(states, BATCH_MEASURES, layer).items():
        values = list(measure_by_hand(name, states[layer]))
        assert list_values(batches) == values, name
        assert [row.batch for row in batches] == list(range(len(values)))
        assert (layer_row.batch, layer_row.layer, layer_row.selection) == (None, layer, "all")
        assert layer_row.value == pytest.approx(np.mean([row.value for row in batches]), rel=1e-14)


@pytest.mark.parametrize(("massive", "are_known"), [(3, False), (20, True)])
def test_second_moments_that_few_windows_decide_have_no_jackknife_values(massive, are_known):
    """Massive tokens are in 3 of 20 windows, or in all."""
    ordinary, Y = np.random.default_rng(0).standard_normal((2, TOKENS, 8)).astype("f4")
    X = ordinary.copy()
    X[: 50 * massive : 50, 2] += 1000
    names = [
        "anisotropy",
        "participation_ratio",
        "average_cosine_centered",
        "average_cosine",
        "rankme",
        "two_nn",
    ]
    blocks = {"linearity": are_known, "linearity_increment": True, "block_cosine": True}
    is_known = {name: are_known or name in ("average_cosine", "two_nn") for name in names} | blocks
    rows_by_measure = measure_rows(MadeStates(X + Y, X), names, layer=1)
    rows_by_measure |= measure_rows(MadeStates(X, X + Y), [*blocks], layer=1)
    for name, (*_, layer_row) in rows_by_measure.items():
        assert np.isfinite(layer_row.jackknife_values).all() == is_known[name], name
        assert np.isfinite(layer_row.value), name
        assert np.isnan(layer_row.effective_windows) == (not CONFIGURED_MEASURES[name].moments), (
            name
        )
    assert rows_by_measure["anisotropy"][-1].effective_windows == pytest.approx(massive, rel=0.1)


def test_a_block_is_measured_on_all_vectors_or_on_the_rows_that_an_entry_chooses():
    *layers, pre_norm_state = np.random.default_rng(0).standard_normal((4, TOKENS, 6)).astype("f4")
    states = MadeStates(*layers, pre_norm_state, has_state_before_norm=True)
    assert measure_rows(states, ["reach"], 0) == {"reach": []}
    ends = {"reach": layers[2], "later": layers[2], "before": pre_norm_state}
    rows_by_block = {block: measure_rows(states, ends, block) for block in (1, 2)}
    groups = selections.group_windows(20, 0)[np.arange(TOKENS) // 50]
    for name, last in ends.items():
        is_kept = (np.arange(TOKENS) % 50 > 0) if name == "later" else np.ones(TOKENS, bool)
        for block, x, y in ((1, layers[0], layers[1]), (2, layers[1], last)):
            batch, layer_row = rows_by_block[block][name]
            assert (batch.layer, batch.batch) == (block, 0)
            assert batch.n == batch.n_unique == is_kept.sum()
            assert batch.value == pytest.approx(np.vdot(x[is_kept], y[is_kept]), rel=1e-5)
            remaining_rows = [is_kept & (groups != g) for g in range(GROUPS)]
            jackknife_values = [np.vdot(x[rows], y[rows]) for rows in remaining_rows]
            assert layer_row.jackknife_values == pytest.approx(jackknife_values, rel=1e-4)
    selections_by_measure = {name: rows_by_block[1][name][0].selection for name in ends}
    assert selections_by_measure == {
        "reach": "all",
        "later": "without_first_token",
        "before": "before_final_norm",
    }


def test_a_token_that_is_massive_in_one_state_is_left_out_of_all_layers():
    """The state may also be the embedding output, or the one before the final norm."""
    states = np.random.default_rng(0).standard_normal((5, TOKENS, 6)).astype("f4")
    for state, token in ((0, 5), (2, 70), (4, 900)):
        states[state, token] *= 40
    kept_tokens = np.setdiff1d(np.arange(TOKENS), [5, 70, 900])
    name = "anisotropy_without_massive_tokens"
    protocol = MeasuringProtocol("m", **{**PROTOCOL, "batch_vectors": TOKENS})
    for layer in range(4):
        made_states = MadeStates(*states, has_state_before_norm=True)
        batch, _ = measure_layer(
            made_states, layer, "isotropy", [CONFIGURED_MEASURES[name]], protocol
        )
        assert batch.value == CONFIGURED_MEASURES["anisotropy"].load()(states[layer][kept_tokens])


def test_values_do_not_jump_where_the_norms_of_tokens_pass_the_threshold():
    """In SmolLM2 100 tokens of block 8 are longer than five times the median, 56 of block 9 and none of block 10."""
    random = np.random.default_rng(0)
    states = random.standard_normal((8, TOKENS, 30)).astype("f4")
    direction = np.zeros(30, "f4")
    direction[3] = np.sqrt(30)
    lengths = random.uniform(0.8, 1.2, 60)[:, None].astype("f4")
    for layer, factor in enumerate(np.linspace(14, 3, 8)):
        states[layer, :60] += factor * lengths * direction
    counts = [int(find_massive(state).sum()) for state in states]
    assert counts[0] == 60
    assert 0 < counts[5] < 60
    assert counts[-1] == 0
    made_states, name = MadeStates(*states), "anisotropy_without_massive_tokens"
    values = [measure_rows(made_states, [name], layer)[name][-1].value for layer in range(8)]
    assert max(values) < 1.2 * min(values)
    separate_values = [
        measure_rows(MadeStates(state), [name])[name][-1].value for state in states
    ]  # as if each layer left out its own massive tokens
    assert max(separate_values) > 2 * min(separate_values)


def test_a_block_is_measured_without_massive_tokens():
    vectors = np.random.default_rng(0).standard_normal((2, TOKENS, 6)).astype("f4")
    block_input, block_output = vectors
    block_input[7] = 50
    block_output[[7, 30]] = 80
    batch, layer_row = measure_rows(MadeStates(block_input, block_output), ["ordinary"], 1)[
        "ordinary"
    ]
    kept_tokens = np.setdiff1d(np.arange(TOKENS), [7, 30])
    assert (batch.n, batch.selection) == (TOKENS - 2, "without_massive_tokens")
    assert batch.value == pytest.approx(
        np.vdot(block_input[kept_tokens], block_output[kept_tokens]), rel=1e-5
    )
    # Without a group of windows, the massive tokens stay those of all windows.
    remaining_tokens = kept_tokens[selections.group_windows(20, 0)[kept_tokens // 50] != 3]
    assert layer_row.jackknife_values[3] == pytest.approx(
        np.vdot(block_input[remaining_tokens], block_output[remaining_tokens]), rel=1e-4
    )


def test_fewer_vectors_than_a_batch_may_remain_without_massive_tokens():
    X = np.random.default_rng(0).standard_normal((TOKENS, 6)).astype("f4")
    X[::50] = 90
    name = "anisotropy_without_massive_tokens"
    protocol = selections.MeasuringProtocol("m", **{**PROTOCOL, "batch_vectors": TOKENS})
    batch, layer_row = measure_layer(
        MadeStates(X), 0, "isotropy", [CONFIGURED_MEASURES[name]], protocol
    )
    assert (batch.n, layer_row.windows) == (TOKENS - 20, 20)
    kept_vectors = np.delete(X, np.arange(0, TOKENS, 50), axis=0)
    assert layer_row.value == CONFIGURED_MEASURES["anisotropy"].load()(kept_vectors) < 0.3
    assert CONFIGURED_MEASURES["anisotropy"].load()(X) > 0.9
    larger_batches = selections.MeasuringProtocol("m", **{**PROTOCOL, "batch_vectors": TOKENS + 1})
    with pytest.raises(InputError, match="fewer than one batch of 1001"):
        measure_layer(MadeStates(X), 0, "isotropy", [CONFIGURED_MEASURES[name]], larger_batches)


def test_a_measure_of_windows_has_one_batch_of_all_vectors():
    X = np.random.default_rng(0).standard_normal((TOKENS, 6)).astype("f4")
    batch, layer_row = measure_rows(MadeStates(X), ["apart_later"])["apart_later"]
    kept_tokens = np.flatnonzero(np.arange(TOKENS) % 50)
    assert (batch.n, batch.n_unique) == (len(kept_tokens), len(kept_tokens))
    assert batch.value == window_sum_norm(X[kept_tokens], kept_tokens // 50)
    remaining_tokens = kept_tokens[selections.group_windows(20, 0)[kept_tokens // 50] != 3]
    assert layer_row.jackknife_values[3] == window_sum_norm(
        X[remaining_tokens], remaining_tokens // 50
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_only_batches_with_values_that_are_not_finite_are_undefined(bad):
    X = np.stack([hidden_states(900).astype(np.float32)] * 4)
    X[1, 50, 3] = bad
    states = MadeStates(*X)
    for name, (*batches, _) in measure_rows(states, BATCH_MEASURES, 1).items():
        is_undefined = [row.n_unique == 1 and np.isnan(row.value) for row in batches]
        assert sorted(is_undefined) == [False, False, True], name
    blocks = [measure_rows(states, ["reach"], block)["reach"] for block in (1, 2, 3)]
    assert [np.isnan(batch.value) for batch, _ in blocks] == [True, True, False]
    assert np.isnan(blocks[0][1].jackknife_values).all()


def test_too_few_vectors_are_refused_before_a_model_is_run():
    states = make_states()
    protocol = selections.MeasuringProtocol("m", **{**PROTOCOL, "batch_vectors": 5000})
    measures = [CONFIGURED_MEASURES["apart"], CONFIGURED_MEASURES["reach"]]
    selections.require_batches(protocol, states.rows, measures)
    for name in ("two_nn", "anisotropy", "total_variance"):
        with pytest.raises(InputError, match="give 1000 vectors, fewer than one batch of 5000"):
            selections.require_batches(protocol, states.rows, [CONFIGURED_MEASURES[name]])


@pytest.mark.parametrize("sequence", ["last_token", "mean"])
def test_one_vector_of_each_window_is_measured(sequence):
    """400 windows of ten tokens give 400 vectors, and every group of windows leaves out a part of them."""
    X = np.random.default_rng(0).standard_normal((4000, 8)).astype("f4")
    states = MadeStates(X, windows=400)
    window_vectors = X.reshape(400, 10, 8)
    vectors = (
        window_vectors[:, -1] if sequence == "last_token" else window_vectors.mean(1, dtype=float)
    )
    protocol = MeasuringProtocol("m", 400, 0, 400, 20, Selection(sequence=sequence))
    measures = [CONFIGURED_MEASURES[name] for name in ("anisotropy", "two_nn", "rankme")]
    for measure in measures:
        _, layer_row = measure_layer(states, 0, measure.family, [measure], protocol)
        preparations = {"dimension": lambda X: nearest_distances(X, 20), "spectrum": spectrum}
        data = preparations.get(measure.family, lambda X: X)(vectors.astype("f4"))
        assert layer_row.n == 400
        assert (
            layer_row.selection == {"last_token": "last_token", "mean": "mean_of_window"}[sequence]
        )
        assert layer_row.value == pytest.approx(measure.load()(data), rel=1e-6)
        assert np.isfinite(layer_row.jackknife_values).all()
