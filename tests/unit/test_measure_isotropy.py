import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from clouds import hidden_states
from measure_isotropy import main
from shape_of_learning import anisotropy
from shape_of_learning.embeddings.hidden_state_files import HiddenStateWriter, layer_file
from shape_of_learning.errors import InputError
from shape_of_learning.estimators.arrays import distinct_rows
from shape_of_learning.metrics.batches import contiguous_batches
from shape_of_learning.metrics.measurements import BATCH_COLUMNS
from shape_of_learning.metrics.registry import ESTIMATORS, Estimator
from shape_of_learning.storage.csv_table import read_rows

REPOSITORY = Path(__file__).parents[2]
ISOTROPY = [name for name, entry in ESTIMATORS.items() if not entry.needs_neighbours]


def dump(folder, X, dtype="float32"):
    folder.mkdir()
    numbers = np.arange(len(X))
    writer = HiddenStateWriter(folder, [X.shape[1]], numbers, numbers, {}, dtype)
    writer.write(0, slice(None), X)
    writer.close()
    return folder


def measured(folder, names, batch_vectors):
    files = [folder.parent / f"{name}.csv" for name in names]
    main(folder, 0, names, batch_vectors, files)
    return {name: read_rows(file, BATCH_COLUMNS) for name, file in zip(names, files, strict=True)}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_each_batch_has_the_measures_of_its_vectors(tmp_path, monkeypatch, dtype, is_streamed):
    if is_streamed:
        monkeypatch.setattr("shape_of_learning.metrics.isotropy.MATRIX_BYTES", 0)
    X = hidden_states(1000).astype(dtype)
    X[400:420] = X[380:400]
    tables = measured(dump(tmp_path / "dump", X, dtype), ISOTROPY, 300)
    batches = contiguous_batches(len(X), 300)
    for name in ISOTROPY:
        entry = ESTIMATORS[name]
        assert len(tables[name]) == len(batches) == 3
        for number, (row, rows) in enumerate(zip(tables[name], batches, strict=True)):
            batch, n, n_unique, value = row
            assert int(batch) == number
            assert int(n) == len(X[rows])
            assert int(n_unique) == len(distinct_rows(X[rows]))
            expected = entry.load()(X[rows], **entry.arguments)
            # Sums of n terms in another order.
            assert float(value) == pytest.approx(expected, abs=4 * len(X) * np.finfo(float).eps)


def test_an_estimator_that_takes_the_matrix_gets_it(tmp_path, monkeypatch):
    X = hidden_states(250).astype(np.float32)
    monkeypatch.setitem(ESTIMATORS, "of_matrix", Estimator("spectrum", "anisotropy"))
    rows = measured(dump(tmp_path / "dump", X), ["of_matrix"], 100)["of_matrix"]
    expected = [anisotropy(X[batch]) for batch in contiguous_batches(len(X), 100)]
    assert [float(row[-1]) for row in rows] == expected


@pytest.mark.parametrize("matrix_bytes", [0, 1 << 28])
def test_one_measure_alone_is_what_it_is_among_others(tmp_path, monkeypatch, matrix_bytes):
    monkeypatch.setattr("shape_of_learning.metrics.isotropy.MATRIX_BYTES", matrix_bytes)
    folder = dump(tmp_path / "dump", hidden_states(500))
    together = measured(folder, ISOTROPY, 200)
    for name in ISOTROPY:
        assert measured(folder, [name], 200)[name] == together[name]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_batch_that_is_not_finite_is_undefined_and_the_others_are_not(tmp_path, bad):
    X = hidden_states(300)
    X[50, 3] = bad
    for rows in measured(dump(tmp_path / "dump", X), ISOTROPY, 100).values():
        assert [row[2:] == ["1", ""] for row in map(list, rows)] == [True, False, False]


def test_as_many_outputs_as_estimators_are_asked_for(tmp_path):
    with pytest.raises(InputError, match="--estimator names 4 but --output 1; give one"):
        main(tmp_path, 0, ISOTROPY, 100, [tmp_path / "a.csv"])


def test_a_missing_or_truncated_layer_is_named(tmp_path):
    folder = dump(tmp_path / "dump", hidden_states(5000))
    file = layer_file(folder, 0)
    file.write_bytes(file.read_bytes()[:300_000])
    with pytest.raises(InputError, match=r"layer_0\.h5 cannot be read .*delete"):
        measured(folder, ISOTROPY, 1000)
    file.unlink()
    with pytest.raises(InputError, match=r"layer_0\.h5 is missing; delete"):
        measured(folder, ISOTROPY, 1000)
    assert not list(tmp_path.glob("*.csv"))


def peak_bytes(folder, batch_vectors):
    """Largest resident memory of the job, one batch after another."""
    program = (
        "import resource, sys; from pathlib import Path; from measure_isotropy import main;"
        "folder = Path(sys.argv[1]); names = sys.argv[3:];"
        "main(folder, 0, names, int(sys.argv[2]), [folder / f'{n}.csv' for n in names]);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    workflow = REPOSITORY / "workflow"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(workflow), str(workflow / "scripts")]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    run = subprocess.run(
        [sys.executable, "-c", program, folder, str(batch_vectors), *ISOTROPY],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return int(run.stdout) * unit


def test_memory_does_not_grow_with_the_layer(tmp_path):
    short, long = 90_000, 200_000  # both larger than what is held in memory
    X = np.random.default_rng(0).standard_normal((long, 384), dtype=np.float32)
    small = peak_bytes(dump(tmp_path / "small", X[:short]), short)
    large = peak_bytes(dump(tmp_path / "large", X), long)
    # Both fill their blocks. Of a row there remains a digest, 65 bytes in a table of twice 16 to 32.
    assert large - small < (long - short) * 130 + 8e6
    assert X.nbytes > 5 * ((long - short) * 130 + 8e6)
