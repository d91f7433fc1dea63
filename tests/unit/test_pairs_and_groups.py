"""Blocks and labelled vectors are measured on all vectors of a selection, by the jobs that read a dump."""

import h5py
import numpy as np
import pytest

import measure
import measure_pairs
from shape_of_learning.metrics.layer import measure_layer
from shape_of_learning.metrics.measure_entry import Measure, by_rows
from shape_of_learning.metrics.measurements import LAYER_COLUMNS, LEFT_OUT_COLUMNS
from shape_of_learning.metrics.resampling import GROUPS, window_groups
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.script_arguments.protocol import SamplingProtocol
from shape_of_learning.storage.csv_table import read_rows
from shape_of_learning.storage.digests import add_digest

PROTOCOL = SamplingProtocol(windows=20, window_characters=0, seed=0)
WIDTH, TOKENS = 6, 1000
# A sum over all vectors: of a batch it would be another.
PAIR = {"of": "pair", "label": "x", "axis": "x"}
MEASURES = {
    "reach": Measure("numpy:vdot", **PAIR),
    "later": Measure("numpy:vdot", rows={"first_token": "drop"}, **PAIR),
    "before": Measure("numpy:vdot", rows={"last_layer": "before_final_norm"}, **PAIR),
}
CHOSEN = [measure.chosen(name, {}) for name, measure in MEASURES.items()]


def ratio_of_widths(X, Y):
    """A measure of a pair."""
    return X.shape[1] / Y.shape[1]


def spread(X, groups):
    """A measure of labelled vectors."""
    return sum(np.linalg.norm(X[groups == group].sum(axis=0)) for group in np.unique(groups))


def dump(folder, *layers, before_final_norm=None):
    """A dump of windows of 50 tokens."""
    folder.mkdir()
    states = {f"layer_{number}": X for number, X in enumerate(layers)}
    if before_final_norm is not None:
        states[f"layer_{len(layers) - 1}_before_final_norm"] = before_final_norm
    for name, X in states.items():
        path = folder / f"{name}.h5"
        with h5py.File(path, "w") as file:
            file["embeddings"] = X.astype(np.float32)
            file["positions"] = np.arange(TOKENS) % 50
            file["token_ids"] = np.arange(TOKENS) % 7
            file["special"] = np.zeros(TOKENS, bool)
            file["windows"] = np.arange(TOKENS) // 50
        add_digest(path)
    return folder


def clouds(count, seed=0):
    return list(np.random.default_rng(seed).standard_normal((count, TOKENS, WIDTH)).astype("f4"))


def pairs_measured(folder, layers, chosen=CHOSEN):
    """Rows of both tables of each measure."""
    kinds = ("values", "left_out")
    files = {k: [folder.parent / k / f"{each.name}.csv" for each in chosen] for k in kinds}
    for kind in kinds:
        (folder.parent / kind).mkdir()
    measure_pairs.main(folder, layers, chosen, Selection(), PROTOCOL, *files.values())
    columns = dict(zip(kinds, (LAYER_COLUMNS, LEFT_OUT_COLUMNS), strict=True))
    return [
        {path.stem: read_rows(path, columns[kind]) for path in paths}
        for kind, paths in files.items()
    ]


def test_each_block_is_measured_on_all_vectors_of_the_rows_that_an_entry_chooses(tmp_path):
    *layers, before = clouds(4)
    folder = dump(tmp_path / "dump", *layers, before_final_norm=before)
    values, left_out = pairs_measured(folder, 2)
    later = np.arange(TOKENS) % 50 > 0
    ends = {"reach": layers[2], "later": layers[2], "before": before}
    for name, last in ends.items():
        kept = later if name == "later" else np.ones(TOKENS, bool)
        expected = [np.vdot(layers[0][kept], layers[1][kept]), np.vdot(layers[1][kept], last[kept])]
        assert [row[:4] for row in values[name]] == [
            [block, "0", str(kept.sum()), str(kept.sum())] for block in ("1", "2")
        ]
        assert [float(row[4]) for row in values[name]] == pytest.approx(expected, rel=1e-5)
        groups = window_groups(20, 0)[np.arange(TOKENS) // 50]
        for row, (x, y) in zip(
            left_out[name], ((layers[0], layers[1]), (layers[1], last)), strict=True
        ):
            without = [np.vdot(x[s], y[s]) for s in (kept & (groups != g) for g in range(GROUPS))]
            assert [float(cell) for cell in row[-GROUPS:]] == pytest.approx(without, rel=1e-4)


def test_measures_of_the_same_rows_share_a_pair():
    fast = Measure("numpy:vdot", **PAIR).chosen("fast", {})
    together = [(rows, list(chosen)) for rows, chosen in by_rows([*CHOSEN, fast])]
    assert together == [
        ({}, ["reach", "fast"]),
        ({"first_token": "drop"}, ["later"]),
        ({"last_layer": "before_final_norm"}, ["before"]),
    ]


def test_a_block_that_is_not_finite_is_undefined_and_the_others_are_not(tmp_path):
    layers = clouds(4)
    layers[1][3, 2] = np.nan
    values, left_out = pairs_measured(dump(tmp_path / "dump", *layers), 3, CHOSEN[:1])
    assert [row[3:] == ["1", ""] for row in values["reach"]] == [True, True, False]
    assert set(left_out["reach"][0][-GROUPS:]) == {""}


def test_hidden_states_of_other_widths_are_given_as_they_are(tmp_path):
    layers = [*clouds(2), clouds(1, seed=1)[0][:, :2]]
    ratio = Measure(f"{__name__}:ratio_of_widths", **PAIR).chosen("ratio", {})
    values, _ = pairs_measured(dump(tmp_path / "dump", *layers), 2, [ratio])
    assert [float(row[4]) for row in values["ratio"]] == [1, WIDTH / 2]


@pytest.mark.parametrize("groups", ["windows", "token_ids"])
def test_labelled_vectors_are_one_batch_with_the_group_of_each(tmp_path, groups):
    (X,) = clouds(1)
    entry = Measure(f"{__name__}:spread", "labelled", "x", "x", groups=groups)
    entry = entry.chosen("spread", {})
    folder = dump(tmp_path / "dump", X)
    files = tmp_path / "values.csv", tmp_path / "left_out.csv"
    selection = Selection(first_token="drop")
    measure.main(folder, 0, entry, selection, 300, PROTOCOL, *files)
    kept = np.flatnonzero(np.arange(TOKENS) % 50)
    windows, ids = kept // 50, kept % 7
    ((layer, batch, n, distinct, value),) = read_rows(files[0], LAYER_COLUMNS)
    assert (layer, batch, n, distinct) == ("0", "0", str(len(kept)), str(len(kept)))
    assert float(value) == spread(X[kept], windows if groups == "windows" else ids)
    in_memory = measure_layer(
        X[kept], windows, {"spread": entry}, 300, 2, np.random.default_rng(0), window_groups(20, 0), ids
    )["spread"]  # fmt: skip
    assert in_memory.values[0].value == float(value)
    left = [float(cell) for cell in read_rows(files[1], LEFT_OUT_COLUMNS)[0][-GROUPS:]]
    assert list(in_memory.estimate.left_out) == left
    without = window_groups(20, 0)[windows] != 3
    labels = (windows if groups == "windows" else ids)[without]
    assert left[3] == spread(X[kept][without], labels)
