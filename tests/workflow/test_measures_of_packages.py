"""A package that a user installs adds measures without a change of this repository."""

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import tiny_runs
from checkouts import Checkout, make_environment

PACKAGE = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "more-shapes"
version = "1.0"
[tool.setuptools]
py-modules = ["more_shapes", "gap_of_shapes", "more_shapes_entries"]
[project.entry-points."shape_of_learning.measures"]
gap = "more_shapes_entries:GAP"
moved = "more_shapes_entries:MOVED"
norm_before = "more_shapes_entries:NORM_BEFORE"
broken = "more_shapes_entries:NOT_THERE"
""",
    "more_shapes.py": """
import numpy as np


def largest_norm(X):
    return np.linalg.norm(X, axis=1).max()


def moved(X, Y):
    return np.linalg.norm(Y.mean(axis=0, dtype=float) - X.mean(axis=0, dtype=float))


def moved_without(pair):
    left = [np.delete(np.arange(len(pair.x)), part) for part in pair.parts]
    return moved(pair.x, pair.y), np.array([moved(pair.x[rows], pair.y[rows]) for rows in left])
""",
    "gap_of_shapes.py": """
def gap(distances, k):
    return (distances[:, k - 1] - distances[:, 0]).mean()
""",
    "more_shapes_entries.py": """
from shape_of_learning.metrics.measure_entry import AllowedRange, Measure

NORM_BEFORE = Measure("more_shapes:largest_norm", "isotropy", rows={"last_layer": "before_final_norm"})
MOVED = Measure("more_shapes:moved", "linearity", "Moved", "Distance", jackknife_function="moved_without")
GAP = Measure(
    "gap_of_shapes:gap", "dimension", "Gap {k}", "Distance", {"k": 10}, {"k": AllowedRange(least=2)},
    neighbours="k",
)
""",
}
RUN = (
    *("results/tables/estimates.csv", "results/tables/changes.csv"),
    *("results/tables/measurements.csv", "--configfile", "tiny.yaml", "--cores", "2"),
)
# Every family has at least one measure.
OURS = ["anisotropy", "rankme", "linearity_held_out", "linearity_without_first_token"]
ESTIMATORS = [*OURS, "intra_window_cosine", "gap", "moved", "norm_before"]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with our packages and the user's package."""
    environment, source = (tmp_path_factory.mktemp("more") / name for name in ("env", "source"))
    packages = make_environment(environment)
    source.mkdir()
    for name, content in PACKAGE.items():
        (source / name).write_text(content)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--target", packages)
    subprocess.run([*pip, *options, source], check=True)
    return environment / "bin/python"


@pytest.fixture
def checkout(checkout: Checkout, python: Path) -> Checkout:
    return Checkout(checkout.folder, python)


def read_values(checkout: Checkout, estimator: str) -> dict[tuple[str, int, int], float]:
    return {
        (row["revision"], int(row["layer"]), int(row["batch"])): float(row["value"])
        for row in checkout.read_rows("results/tables/measurements.csv")
        if row["estimator"] == estimator
    }


def test_measures_of_a_package_with_and_without_a_dump(checkout: Checkout):
    settings = tiny_runs.set_up(checkout)
    settings["forward"] = {"last_layer": "both"}
    settings["embeddings"] = {"keep": True}
    settings["measurement"]["estimators"] = ESTIMATORS
    checkout.write("tiny.yaml", settings)
    checkout.snakemake(*RUN)
    assert read_values(checkout, "gap").keys() == read_values(checkout, "anisotropy").keys()
    distances, norms = read_values(checkout, "moved"), read_values(checkout, "norm_before")
    for revision in ("step0", "step1"):
        states = []
        for name in ("layer_0", "layer_1", "layer_1_before_final_norm"):
            path = checkout.folder / f"results/embeddings/tiny/{revision}/{name}.h5"
            with h5py.File(path) as file:
                states.append(file["embeddings"][()].astype(float))
        distance = np.linalg.norm((states[1] - states[0]).mean(axis=0))
        assert distances[revision, 1, 0] == pytest.approx(distance, rel=1e-6)
        for layer, state in ((0, states[0]), (1, states[2])):
            largest = max(norms[key] for key in norms if key[:2] == (revision, layer))
            assert largest == pytest.approx(np.linalg.norm(state, axis=1).max(), rel=1e-6)
    # The rows are of one layer, and of the average over it.
    block_rows = [
        row
        for row in checkout.read_rows("results/tables/estimates.csv")
        if row["estimator"] == "moved"
    ]
    assert [row["layer"] for row in block_rows] == ["1", "", "1", ""]
    assert all(float(row["low"]) < float(row["value"]) < float(row["high"]) for row in block_rows)

    # An edit of the function reruns the jobs of its family.
    (module,) = checkout.python.parents[1].rglob("gap_of_shapes.py")
    module.write_text(module.read_text() + "OTHER = 1\n")
    assert checkout.plan_jobs(*RUN)["measure"] == 4

    # A run in memory gives the same bytes.
    settings |= {"embeddings": {"dump": False}, "run": "memory"}
    checkout.write("memory.yaml", settings)
    tables = [f"results/memory/tables/{name}.csv" for name in ("estimates", "measurements")]
    checkout.snakemake(*tables, "--configfile", "memory.yaml", "--cores", "2")
    results = checkout.folder / "results"
    files = sorted((results / "measurements/tiny").rglob("*.csv"))
    assert len(files) == 2 * (4 * 2 + 1)  # checkpoints; families of two layers, and of one block
    for file in files:
        name = file.relative_to(results / "measurements")
        table_in_memory = results / "memory/measurements_in_memory" / name
        assert table_in_memory.read_bytes() == file.read_bytes(), file
