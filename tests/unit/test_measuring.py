"""What is measured of a layer is what the functions say of its vectors, whoever has the hidden states."""

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


def apart(X, windows):
    """A measure of vectors and their windows."""
    return sum(np.linalg.norm(X[windows == one].sum(axis=0)) for one in np.unique(windows))


OWN = {
    "total_variance": Measure("numpy:sum", "spectrum"),
    "reach": Measure("numpy:vdot", "linearity"),
    "later": Measure("numpy:vdot", "linearity", rows={"first_token": "drop"}),
    "ordinary": Measure("numpy:vdot", "linearity", rows={"massive_tokens": "drop"}),
    "before": Measure("numpy:vdot", "linearity", rows={"last_layer": "before_final_norm"}),
    "apart": Measure(f"{__name__}:apart", "windows"),
    "apart_later": Measure(f"{__name__}:apart", "windows", rows={"first_token": "drop"}),
}
ALL = {name: entry.configure(name, {}) for name, entry in {**MEASURES, **OWN}.items()}
# Of the run's own rows, in batches.
IN_BATCHES = {
    name: chosen
    for name, chosen in ALL.items()
    if chosen.family in ("isotropy", "spectrum", "dimension") and not chosen.rows
}


def measured(states, names, layer=0, **selection):
    """Rows of each measure: those of its batches, and that of the layer."""
    protocol = selections.MeasuringProtocol(
        "m", **PROTOCOL, selection=selections.Selection(**selection)
    )
    chosen = [ALL[name] for name in names]
    rows = [row for f in FAMILIES for row in measure_layer(states, layer, f, chosen, protocol)]
    return {name: [row for row in rows if row.estimator == name] for name in names}


def clouds():
    """Two layers with duplicates."""
    X = hidden_states(TOKENS).astype(np.float32)
    X[400:420] = X[380:400]
    return MadeStates(X, X[::-1] * 2)


def with_copies(X):
    """As `two_nn_authors` takes them."""
    return distances_by_brute_force(X, 2) / mean_distance_to_mean(X)


def expected(name, X):
    """(n, distinct, value) of each batch, by the functions of the library."""
    chosen = ALL[name]
    batches = [X[rows] for rows in selections.divide_contiguously(len(X), BATCH_VECTORS)]
    if chosen.family == "dimension":
        stream = random_stream(0, "batches", model="m")
        batches = [X[rows] for rows in selections.divide_shuffled(len(X), BATCH_VECTORS, stream)]
    for batch in batches:
        if chosen.family == "dimension":
            taken = nearest_distances(batch, NEIGHBOURS) if chosen.collapse else with_copies(batch)
        else:
            taken = batch if chosen.family == "isotropy" else spectrum(batch)
        value = chosen.load()(taken)
        # Of copies the distances are sums in another order.
        close = value if chosen.collapse else pytest.approx(value, rel=1e-12)
        yield len(batch), len(distinct_rows(batch)), close


def shown(rows):
    return [(row.n, row.n_unique, row.value) for row in rows if row.batch is not None]


@pytest.mark.parametrize("layer", [0, 1])
def test_each_batch_has_the_value_of_its_vectors(layer):
    states = clouds()
    for name, (*batches, of_layer) in measured(states, IN_BATCHES, layer).items():
        values = list(expected(name, states[layer]))
        assert shown(batches) == values, name
        assert [row.batch for row in batches] == list(range(len(values)))
        assert (of_layer.batch, of_layer.layer, of_layer.selection) == (None, layer, "all")
        assert of_layer.value == pytest.approx(np.mean([row.value for row in batches]), rel=1e-14)


@pytest.mark.parametrize(("massive", "are_known"), [(3, False), (20, True)])
def test_where_few_windows_decide_second_moments_have_no_left_out_values(massive, are_known):
    """A massive token in 3 of 20 windows, and one in each."""
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
    known = {name: are_known or name in ("average_cosine", "two_nn") for name in names} | blocks
    found = measured(MadeStates(X + Y, X), names, layer=1)
    found |= measured(MadeStates(X, X + Y), [*blocks], layer=1)
    for name, (*_, of_layer) in found.items():
        assert np.isfinite(of_layer.jackknife_values).all() == known[name], name
        assert np.isfinite(of_layer.value), name
        assert np.isnan(of_layer.effective_windows) == (not ALL[name].moments), name
    assert found["anisotropy"][-1].effective_windows == pytest.approx(massive, rel=0.1)


def test_of_a_block_all_vectors_are_measured_and_of_the_rows_that_an_entry_chooses():
    *layers, before = np.random.default_rng(0).standard_normal((4, TOKENS, 6)).astype("f4")
    states = MadeStates(*layers, before, has_state_before_norm=True)
    assert measured(states, ["reach"], 0) == {"reach": []}
    ends = {"reach": layers[2], "later": layers[2], "before": before}
    found = {block: measured(states, ends, block) for block in (1, 2)}
    groups = selections.group_windows(20, 0)[np.arange(TOKENS) // 50]
    for name, last in ends.items():
        kept = (np.arange(TOKENS) % 50 > 0) if name == "later" else np.ones(TOKENS, bool)
        for block, x, y in ((1, layers[0], layers[1]), (2, layers[1], last)):
            batch, of_layer = found[block][name]
            assert (batch.layer, batch.batch) == (block, 0)
            assert batch.n == batch.n_unique == kept.sum()
            assert batch.value == pytest.approx(np.vdot(x[kept], y[kept]), rel=1e-5)
            left = [kept & (groups != g) for g in range(GROUPS)]
            without = [np.vdot(x[some], y[some]) for some in left]
            assert of_layer.jackknife_values == pytest.approx(without, rel=1e-4)
    names = {name: found[1][name][0].selection for name in ends}
    assert names == {"reach": "all", "later": "without_first_token", "before": "before_final_norm"}


def test_a_token_that_is_massive_in_one_state_is_left_out_of_all_layers():
    """Also if it is massive in the embedding output or before the final norm alone."""
    states = np.random.default_rng(0).standard_normal((5, TOKENS, 6)).astype("f4")
    for state, token in ((0, 5), (2, 70), (4, 900)):
        states[state, token] *= 40
    kept = np.setdiff1d(np.arange(TOKENS), [5, 70, 900])
    name = "anisotropy_without_massive_tokens"
    protocol = MeasuringProtocol("m", **{**PROTOCOL, "batch_vectors": TOKENS})
    for layer in range(4):
        made = MadeStates(*states, has_state_before_norm=True)
        batch, _ = measure_layer(made, layer, "isotropy", [ALL[name]], protocol)
        assert batch.value == ALL["anisotropy"].load()(states[layer][kept])


def test_where_the_norms_of_tokens_pass_the_threshold_nothing_jumps():
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
    made, name = MadeStates(*states), "anisotropy_without_massive_tokens"
    found = [measured(made, [name], layer)[name][-1].value for layer in range(8)]
    assert max(found) < 1.2 * min(found)
    of_each_layer = [
        measured(MadeStates(state), [name])[name][-1].value for state in states
    ]  # as if each layer left out its own massive tokens
    assert max(of_each_layer) > 2 * min(of_each_layer)


def test_a_block_is_measured_without_massive_tokens():
    before, after = np.random.default_rng(0).standard_normal((2, TOKENS, 6)).astype("f4")
    before[7], after[[7, 30]] = 50, 80
    batch, of_layer = measured(MadeStates(before, after), ["ordinary"], 1)["ordinary"]
    kept = np.setdiff1d(np.arange(TOKENS), [7, 30])
    assert (batch.n, batch.selection) == (TOKENS - 2, "without_massive_tokens")
    assert batch.value == pytest.approx(np.vdot(before[kept], after[kept]), rel=1e-5)
    # Without a group of windows, the massive tokens stay those of all windows.
    others = kept[selections.group_windows(20, 0)[kept // 50] != 3]
    assert of_layer.jackknife_values[3] == pytest.approx(
        np.vdot(before[others], after[others]), rel=1e-4
    )


def test_massive_tokens_may_leave_less_than_a_batch():
    X = np.random.default_rng(0).standard_normal((TOKENS, 6)).astype("f4")
    X[::50] = 90
    name = "anisotropy_without_massive_tokens"
    how = selections.MeasuringProtocol("m", **{**PROTOCOL, "batch_vectors": TOKENS})
    batch, of_layer = measure_layer(MadeStates(X), 0, "isotropy", [ALL[name]], how)
    assert (batch.n, of_layer.windows) == (TOKENS - 20, 20)
    kept = np.delete(X, np.arange(0, TOKENS, 50), axis=0)
    assert of_layer.value == ALL["anisotropy"].load()(kept) < 0.3
    assert ALL["anisotropy"].load()(X) > 0.9
    few = selections.MeasuringProtocol("m", **{**PROTOCOL, "batch_vectors": TOKENS + 1})
    with pytest.raises(InputError, match="fewer than one batch of 1001"):
        measure_layer(MadeStates(X), 0, "isotropy", [ALL[name]], few)


def test_vectors_and_their_windows_are_one_batch():
    X = np.random.default_rng(0).standard_normal((TOKENS, 6)).astype("f4")
    batch, of_layer = measured(MadeStates(X), ["apart_later"])["apart_later"]
    kept = np.flatnonzero(np.arange(TOKENS) % 50)
    assert (batch.n, batch.n_unique) == (len(kept), len(kept))
    assert batch.value == apart(X[kept], kept // 50)
    others = kept[selections.group_windows(20, 0)[kept // 50] != 3]
    assert of_layer.jackknife_values[3] == apart(X[others], others // 50)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_undefined_and_the_rest_is_not(bad):
    X = np.stack([hidden_states(900).astype(np.float32)] * 4)
    X[1, 50, 3] = bad
    states = MadeStates(*X)
    for name, (*batches, _) in measured(states, IN_BATCHES, 1).items():
        undefined = [row.n_unique == 1 and np.isnan(row.value) for row in batches]
        assert sorted(undefined) == [False, False, True], name
    blocks = [measured(states, ["reach"], block)["reach"] for block in (1, 2, 3)]
    assert [np.isnan(batch.value) for batch, _ in blocks] == [True, True, False]
    assert np.isnan(blocks[0][1].jackknife_values).all()


def test_too_few_vectors_are_refused_before_a_model_is_run():
    states, few = clouds(), selections.MeasuringProtocol("m", **{**PROTOCOL, "batch_vectors": 5000})
    selections.require_batches(
        few, states.rows, [ALL["apart"], ALL["reach"]]
    )  # which have no batches
    for name in ("two_nn", "anisotropy", "total_variance"):
        with pytest.raises(InputError, match="give 1000 vectors, fewer than one batch of 5000"):
            selections.require_batches(few, states.rows, [ALL[name]])


@pytest.mark.parametrize("sequence", ["last_token", "mean"])
def test_one_vector_of_each_window_is_measured(sequence):
    """400 windows of ten tokens: as many vectors, and groups of windows leave out as many of them each."""
    X = np.random.default_rng(0).standard_normal((4000, 8)).astype("f4")
    states = MadeStates(X, windows=400)
    per_window = X.reshape(400, 10, 8)
    vectors = per_window[:, -1] if sequence == "last_token" else per_window.mean(1, dtype=float)
    protocol = MeasuringProtocol("m", 400, 0, 400, 20, Selection(sequence=sequence))
    chosen = [ALL[name] for name in ("anisotropy", "two_nn", "rankme")]
    for measure in chosen:
        _, of_layer = measure_layer(states, 0, measure.family, [measure], protocol)
        given = {"dimension": lambda X: nearest_distances(X, 20), "spectrum": spectrum}
        data = given.get(measure.family, lambda X: X)(vectors.astype("f4"))
        assert of_layer.n == 400
        assert (
            of_layer.selection == {"last_token": "last_token", "mean": "mean_of_window"}[sequence]
        )
        assert of_layer.value == pytest.approx(measure.load()(data), rel=1e-6)
        assert np.isfinite(of_layer.jackknife_values).all()
