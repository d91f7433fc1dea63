import h5py
import numpy as np
import pytest
import torch

import find_neighbours
import find_spectra
import measure
from clouds import hidden_states
from pretended_cuda import pretended_cuda
from shape_of_learning.errors import InputError
from shape_of_learning.estimators.arrays import distinct_rows
from shape_of_learning.estimators.neighbours import nearest_distances
from shape_of_learning.estimators.spectrum import spectrum
from shape_of_learning.metrics.batch_files import write_batches
from shape_of_learning.metrics.batches import Batch, contiguous_batches, shuffled_batches
from shape_of_learning.metrics.layer import measure_layer
from shape_of_learning.metrics.measurements import LAYER_COLUMNS, write_measurements
from shape_of_learning.metrics.registry import MEASURES, Measure
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.random_streams import random_stream
from shape_of_learning.storage.csv_table import read_rows
from shape_of_learning.storage.digests import add_digest

TOTAL_VARIANCE = Measure("numpy:sum", "spectrum", "Total variance", "Variance")
ALL = {
    name: entry.chosen(name, {})
    for name, entry in {**MEASURES, "total_variance": TOTAL_VARIANCE}.items()
}
OF_VECTORS = {name: chosen for name, chosen in ALL.items() if chosen.of == "vectors"}
NEIGHBOURS, BATCH_VECTORS = 100, 300


def dump(folder, *layers):
    """A dump as the forward pass leaves it, of windows of 50 tokens whose first is a special one."""
    folder.mkdir()
    for number, X in enumerate(layers):
        positions = np.arange(len(X)) % 50
        path = folder / f"layer_{number}.h5"
        with h5py.File(path, "w") as file:
            file["embeddings"] = X.astype(np.float32)
            file["positions"] = positions
            file["special"] = positions == 0
        add_digest(path)
    return folder


def measured(folder, name, selection=Selection(), layers=None):  # noqa: B008
    """The table of one estimator, by the jobs that make it."""
    output = folder.parent / f"{name}.csv"
    layers = len(list(folder.glob("*.h5"))) - 1 if layers is None else layers
    taken = {"vectors": folder}.get(ALL[name].of, folder.parent / ALL[name].of)
    for layer in range(layers + 1):
        embeddings, found = folder / f"layer_{layer}.h5", taken / f"layer_{layer}.h5"
        if ALL[name].of == "neighbours":
            owner = ("m", "r", layer)
            find_neighbours.main(embeddings, owner, selection, NEIGHBOURS, BATCH_VECTORS, 0, found)
        elif ALL[name].of == "spectrum":
            find_spectra.main(embeddings, selection, BATCH_VECTORS, found)
    measure.main(taken, layers, ALL[name], selection, BATCH_VECTORS, output)
    return read_rows(output, LAYER_COLUMNS)


def clouds():
    """Two layers with duplicates."""
    X = hidden_states(1000).astype(np.float32)
    X[400:420] = X[380:400]
    return X, X[::-1] * 2


def expected(name, layer, X):
    """(n, distinct, value) of each batch, by the functions of the library."""
    chosen = ALL[name]
    stream = random_stream(0, "batches", model="m", revision="r", layer=layer)
    batches = [X[rows] for rows in contiguous_batches(len(X), BATCH_VECTORS)]
    if chosen.of == "neighbours":
        batches = [X[rows] for rows in shuffled_batches(len(X), BATCH_VECTORS, stream)]
    for batch in batches:
        taken = {
            "vectors": lambda X: X,
            "spectrum": spectrum,
            "neighbours": lambda X: nearest_distances(X, NEIGHBOURS),
        }[chosen.of](batch)
        yield len(batch), len(distinct_rows(batch)), chosen.load()(taken)


@pytest.mark.parametrize("name", ALL)
def test_each_batch_of_each_layer_has_the_value_of_its_vectors(tmp_path, name):
    layers = clouds()
    rows = iter(measured(dump(tmp_path / "dump", *layers), name))
    for layer, X in enumerate(layers):
        for batch, (n, distinct, value) in enumerate(expected(name, layer, X)):
            *identity, written = next(rows)
            assert identity == [str(layer), str(batch), str(n), str(distinct)]
            assert float(written) == value
    assert not list(rows)


def test_in_memory_all_values_are_those_of_the_separate_jobs(tmp_path):
    layers = clouds()
    folder = dump(tmp_path / "dump", *layers)
    values = [
        measure_layer(
            X, ALL, BATCH_VECTORS, NEIGHBOURS,
            random_stream(0, "batches", model="m", revision="r", layer=layer),
        )
        for layer, X in enumerate(layers)
    ]  # fmt: skip
    for name in ALL:
        write_measurements(
            tmp_path / "memory.csv", {layer: v[name] for layer, v in enumerate(values)}
        )
        assert read_rows(tmp_path / "memory.csv", LAYER_COLUMNS) == measured(folder, name)


def test_on_a_gpu_values_are_those_of_the_cpu():
    X, _ = clouds()

    def values(vectors):
        stream = random_stream(0, "batches")
        return measure_layer(vectors, ALL, BATCH_VECTORS, NEIGHBOURS, stream)

    with pretended_cuda():
        on_gpu = values(torch.from_numpy(X).to("cuda"))
    for name, expected in values(X).items():
        for there, here in zip(on_gpu[name], expected, strict=True):
            assert (there.batch, there.n, there.n_unique) == (here.batch, here.n, here.n_unique)
            assert there.value == pytest.approx(here.value, rel=1e-9)


@pytest.mark.parametrize("name", ["anisotropy", "two_nn", "total_variance"])
def test_selected_rows_are_measured_as_if_there_were_no_others(tmp_path, name):
    X, _ = clouds()
    kept = np.arange(len(X)) % 50 != 0
    for number, selection in enumerate(
        (Selection(special_tokens="drop"), Selection(first_token="drop"))
    ):
        (tmp_path / f"{number}").mkdir()
        rows = measured(dump(tmp_path / f"{number}/dump", X), name, selection)
        values = [(int(row[2]), int(row[3]), float(row[4])) for row in rows]
        assert values == list(expected(name, 0, X[kept]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ALL)
def test_a_batch_that_is_not_finite_is_undefined_and_the_others_are_not(tmp_path, name, bad):
    X = hidden_states(900)
    X[50, 3] = bad
    rows = measured(dump(tmp_path / "dump", X), name)
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
    write_batches(tmp_path / "neighbours/layer_0.h5", [Batch(3, 3, -np.ones((3, 2)))])
    with pytest.raises(InputError, match=r"layer_0\.h5: distances must be positive .*delete"):
        measure.main(
            tmp_path / "neighbours", 0, ALL["two_nn"], Selection(), 300, tmp_path / "b.csv"
        )
