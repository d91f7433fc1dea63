import h5py
import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

import find_neighbours
import find_spectra
import measure
from clouds import hidden_states
from pretended_cuda import pretended_cuda
from shape_of_learning.errors import InputError
from shape_of_learning.estimators.arrays import distinct_rows
from shape_of_learning.estimators.dimension import mean_distance_to_mean
from shape_of_learning.estimators.neighbours import nearest_distances
from shape_of_learning.estimators.spread import spectrum
from shape_of_learning.metrics.batch_files import write_batches
from shape_of_learning.metrics.batches import (
    Batch,
    contiguous_batches,
    shuffle_of,
    shuffled_batches,
)
from shape_of_learning.metrics.layer import measure_layer
from shape_of_learning.metrics.measurements import (
    LAYER_COLUMNS,
    LEFT_OUT_COLUMNS,
    write_left_out,
    write_measurements,
)
from shape_of_learning.metrics.neighbour_lists import NeighbourLists
from shape_of_learning.metrics.registry import MEASURES, Measure
from shape_of_learning.metrics.resampling import window_groups
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.random_streams import random_stream
from shape_of_learning.script_arguments.protocol import SamplingProtocol
from shape_of_learning.storage.csv_table import read_rows
from shape_of_learning.storage.digests import add_digest

TOTAL_VARIANCE = Measure("numpy:sum", "spectrum", "Total variance", "Variance")
# Of the run's own rows, in batches; test_pairs_and_groups.py has the others.
ALL = {
    name: entry.chosen(name, {})
    for name, entry in {**MEASURES, "total_variance": TOTAL_VARIANCE}.items()
    if entry.of in ("vectors", "spectrum", "neighbours") and not entry.rows
}
OF_VECTORS = {name: chosen for name, chosen in ALL.items() if chosen.of == "vectors"}
NEIGHBOURS, BATCH_VECTORS, TOKEN_TYPES = 128, 300, 700
PROTOCOL = SamplingProtocol(windows=20, window_characters=0, seed=0)


def dump(folder, *layers):
    """A dump as the forward pass leaves it, of windows of 50 tokens whose first is a special one."""
    folder.mkdir()
    for number, X in enumerate(layers):
        positions = np.arange(len(X)) % 50
        path = folder / f"layer_{number}.h5"
        with h5py.File(path, "w") as file:
            file["embeddings"] = X.astype(np.float32)
            file["positions"] = positions
            file["token_ids"] = np.arange(len(X)) % TOKEN_TYPES
            file["special"] = positions == 0
            file["windows"] = np.arange(len(X)) // 50
        add_digest(path)
    return folder


def measured(folder, name, selection=Selection(), layers=None):  # noqa: B008
    """The tables of one estimator, by the jobs that make them."""
    output, left_out = folder.parent / f"{name}.csv", folder.parent / f"left_out_{name}.csv"
    layers = len(list(folder.glob("*.h5"))) - 1 if layers is None else layers
    taken = {"vectors": folder}.get(ALL[name].of, folder.parent / ALL[name].of)
    for layer in range(layers + 1):
        embeddings, found = folder / f"layer_{layer}.h5", taken / f"layer_{layer}.h5"
        if ALL[name].of == "neighbours":
            find_neighbours.main(
                embeddings, "m", selection, NEIGHBOURS, BATCH_VECTORS, PROTOCOL, found
            )
        elif ALL[name].of == "spectrum":
            find_spectra.main(embeddings, selection, BATCH_VECTORS, PROTOCOL, found)
    measure.main(taken, layers, ALL[name], selection, BATCH_VECTORS, PROTOCOL, output, left_out)
    return read_rows(output, LAYER_COLUMNS), read_rows(left_out, LEFT_OUT_COLUMNS)


def clouds():
    """Two layers with duplicates."""
    X = hidden_states(1000).astype(np.float32)
    X[400:420] = X[380:400]
    return X, X[::-1] * 2


def with_copies(X):
    """Distances from all vectors to their two nearest others, as `two_nn_authors` takes them."""
    X = X.astype(np.float64)
    return np.sort(cdist(X, X), axis=1)[:, 1:3] / mean_distance_to_mean(X)


def expected(name, X):
    """(n, distinct, value) of each batch, by the functions of the library."""
    chosen = ALL[name]
    stream = random_stream(0, "batches", model="m")
    batches = [X[rows] for rows in contiguous_batches(len(X), BATCH_VECTORS)]
    if chosen.of == "neighbours":
        batches = [X[rows] for rows in shuffled_batches(len(X), BATCH_VECTORS, stream)]
    for batch in batches:
        taken = {
            "vectors": lambda X: X,
            "spectrum": spectrum,
            "neighbours": lambda X: (
                nearest_distances(X, NEIGHBOURS) if chosen.collapse else with_copies(X)
            ),
        }[chosen.of](batch)
        value = chosen.load()(taken)
        yield (
            len(batch),
            len(distinct_rows(batch)),
            value if chosen.collapse else pytest.approx(value, rel=1e-12),
        )


@pytest.mark.parametrize("name", ALL)
def test_each_batch_of_each_layer_has_the_value_of_its_vectors(tmp_path, name):
    layers = clouds()
    rows = iter(measured(dump(tmp_path / "dump", *layers), name)[0])
    for layer, X in enumerate(layers):
        for batch, (n, distinct, value) in enumerate(expected(name, X)):
            *identity, written = next(rows)
            assert identity == [str(layer), str(batch), str(n), str(distinct)]
            assert float(written) == value
    assert not list(rows)


def in_memory(X):
    """All measures of one layer by the job that writes no hidden states."""
    windows, groups = np.arange(len(X)) // 50, window_groups(PROTOCOL.windows, PROTOCOL.seed)
    return measure_layer(
        X, windows, ALL, BATCH_VECTORS, NEIGHBOURS, shuffle_of(PROTOCOL.seed, "m"), groups
    )


def test_in_memory_all_values_are_those_of_the_separate_jobs(tmp_path):
    layers = clouds()
    folder = dump(tmp_path / "dump", *layers)
    values = [in_memory(X) for X in layers]
    for name in ALL:
        measured(folder, name)
        columns = {layer: value[name] for layer, value in enumerate(values)}
        for write, file in (
            (write_measurements, f"{name}.csv"),
            (write_left_out, f"left_out_{name}.csv"),
        ):
            write(tmp_path / "memory.csv", columns)
            assert (tmp_path / "memory.csv").read_bytes() == (tmp_path / file).read_bytes()


def test_on_a_gpu_values_are_those_of_the_cpu():
    X, _ = clouds()

    with pretended_cuda():
        on_gpu = in_memory(torch.from_numpy(X).to("cuda"))
    for name, expected in in_memory(X).items():
        for there, here in zip(on_gpu[name].values, expected.values, strict=True):
            assert (there.batch, there.n, there.n_unique) == (here.batch, here.n, here.n_unique)
            assert there.value == pytest.approx(here.value, rel=1e-9)
        assert on_gpu[name].estimate.left_out == pytest.approx(expected.estimate.left_out, rel=1e-9)


@pytest.mark.parametrize("name", ["anisotropy", "two_nn", "total_variance"])
def test_selected_rows_are_measured_as_if_there_were_no_others(tmp_path, name):
    X, _ = clouds()
    kept = np.arange(len(X)) % 50 != 0
    for number, selection in enumerate(
        (Selection(special_tokens="drop"), Selection(first_token="drop"))
    ):
        (tmp_path / f"{number}").mkdir()
        rows, _ = measured(dump(tmp_path / f"{number}/dump", X), name, selection)
        values = [(int(row[2]), int(row[3]), float(row[4])) for row in rows]
        assert values == list(expected(name, X[kept]))


@pytest.mark.parametrize("name", ["anisotropy", "two_nn", "total_variance"])
def test_one_vector_of_each_token_type_is_measured(tmp_path, name):
    X, _ = clouds()
    token_ids, none = np.arange(len(X)) % TOKEN_TYPES, np.zeros(len(X), bool)
    selection = Selection(token_types="one", seed=5)
    kept = selection.rows(none, np.zeros(len(X)), token_ids)
    assert len(kept) == TOKEN_TYPES
    rows, _ = measured(dump(tmp_path / "dump", X), name, selection)
    values = [(int(row[2]), int(row[3]), float(row[4])) for row in rows]
    assert values == list(expected(name, X[kept]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ALL)
def test_a_batch_that_is_not_finite_is_undefined_and_the_others_are_not(tmp_path, name, bad):
    X = hidden_states(900)
    X[50, 3] = bad
    rows, _ = measured(dump(tmp_path / "dump", X), name)
    assert sorted(row[3:] == ["1", ""] for row in rows) == [False, False, True]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("missing", "is missing"),
        ("truncated", "is not what was written.*"),
        ("no HDF5", "is not what was written.*"),
        ("a folder", r"cannot be read \(Is a directory\)"),
        ("an I/O error", r"cannot be read \(Input/output error\)"),
    ],
)
@pytest.mark.parametrize("name", ["anisotropy", "two_nn", "total_variance"])
def test_hidden_states_that_cannot_be_read_are_one_sentence(tmp_path, name, how, said):
    folder = dump(tmp_path / "dump", hidden_states(5000))
    file = folder / "layer_0.h5"
    content = file.read_bytes()
    file.unlink()
    if how == "truncated":
        file.write_bytes(content[:300_000])
    elif how == "no HDF5":
        file.write_text("some words\n")
    elif how == "a folder":
        file.mkdir()
    elif how == "an I/O error":
        file.symlink_to("/proc/self/mem")  # whose first bytes nobody can read
    with pytest.raises(InputError, match=rf"layer_0\.h5 {said}; delete .* and run again"):
        measured(folder, name, layers=0)
    assert not list(tmp_path.glob("*.csv"))


def test_distances_that_are_none_name_their_file(tmp_path):
    measured(dump(tmp_path / "dump", hidden_states(400)), "two_nn")
    lists = NeighbourLists(-np.ones((3, 2)), np.zeros((3, 2), int), np.arange(3), np.float64(1))
    write_batches(tmp_path / "neighbours/layer_0.h5", [Batch(3, np.arange(3), lists)])
    with pytest.raises(InputError, match=r"layer_0\.h5: distances must be positive .*delete"):
        measure.main(
            tmp_path / "neighbours", 0, ALL["two_nn"], Selection(), 300, PROTOCOL,
            tmp_path / "b.csv", tmp_path / "c.csv",
        )  # fmt: skip
    assert not (tmp_path / "b.csv").exists()
