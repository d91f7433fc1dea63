"""A package that a user installs brings measures of its own, without a change of this repository."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import h5py
import numpy as np
import pytest

import tiny_runs
from checkouts import Checkout

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
largest_norm = "more_shapes_entries:LARGEST_NORM"
participation = "more_shapes_entries:PARTICIPATION"
gap = "more_shapes_entries:GAP"
moved = "more_shapes_entries:MOVED"
moved_fast = "more_shapes_entries:MOVED_FAST"
moved_later = "more_shapes_entries:MOVED_LATER"
apart = "more_shapes_entries:APART"
apart_types = "more_shapes_entries:APART_TYPES"
norm_before = "more_shapes_entries:NORM_BEFORE"
""",
    "more_shapes.py": """
import numpy as np


def largest_norm(X):
    return np.linalg.norm(X, axis=1).max()


def participation(spectrum):
    return spectrum.sum() ** 2 / (spectrum**2).sum()


def moved(X, Y):
    return np.linalg.norm(Y.mean(axis=0, dtype=float) - X.mean(axis=0, dtype=float))


def moved_without(pair):
    left = [np.delete(np.arange(len(pair.x)), part) for part in pair.parts]
    return moved(pair.x, pair.y), np.array([moved(pair.x[rows], pair.y[rows]) for rows in left])


def apart(X, groups):
    X = X - X.mean(axis=0, dtype=float)
    means = np.array([X[groups == group].mean(axis=0) for group in groups])
    return (means**2).sum() / (X**2).sum()
""",
    "gap_of_shapes.py": """
def gap(distances, k):
    return (distances[:, k - 1] - distances[:, 0]).mean()
""",
    "more_shapes_entries.py": """
from shape_of_learning.metrics.measure_entry import Interval, Measure

LARGEST_NORM = Measure("more_shapes:largest_norm", "isotropy", "Largest norm", "Norm")
NORM_BEFORE = Measure(
    "more_shapes:largest_norm", "isotropy", "Largest norm", "Norm", rows={"last_layer": "before_final_norm"}
)
MOVED = Measure("more_shapes:moved", "linearity", "Moved", "Distance")
MOVED_FAST = Measure("more_shapes:moved", "linearity", "Moved", "Distance", leaving_out="moved_without")
MOVED_LATER = Measure("more_shapes:moved", "linearity", "Moved", "Distance", rows={"first_token": "drop"})
APART = Measure("more_shapes:apart", "windows", "Apart", "Share")
PARTICIPATION = Measure("more_shapes:participation", "spectrum", "Participation", "Directions")
GAP = Measure(
    "gap_of_shapes:gap", "dimension", "Gap {k}", "Distance", {"k": 10}, {"k": Interval(least=2)},
    neighbours="k",
)
""",
}
RUN = ("results/tables/measurements.csv", "--configfile", "tiny.yaml", "--cores", "2")
MEASURES = ("largest_norm", "participation", "gap")
LINEARITY = ["linearity", "linearity_held_out", "linearity_without_first_token"]
OF_ALL = ("moved", "moved_fast", "moved_later", "apart")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has ours and the package."""
    environment, source = (tmp_path_factory.mktemp("more") / name for name in ("env", "source"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    paths = {"base": str(environment), "platbase": str(environment)}
    own = Path(sysconfig.get_path("purelib", "venv", paths))
    (own / "ours.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    source.mkdir()
    for name, content in PACKAGE.items():
        (source / name).write_text(content)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--target", own)
    subprocess.run([*pip, *options, source], check=True)
    return environment / "bin/python"


@pytest.fixture
def checkout(checkout: Checkout, python: Path) -> Checkout:
    return Checkout(checkout.folder, python)


def values(checkout: Checkout, estimator: str) -> dict[tuple[str, int, int], float]:
    return {
        (row["revision"], int(row["layer"]), int(row["batch"])): float(row["value"])
        for row in checkout.rows("results/tables/measurements.csv")
        if row["estimator"] == estimator
    }


def test_measures_of_a_package_with_and_without_a_dump(checkout: Checkout):
    settings = tiny_runs.set_up(checkout)
    settings["forward"] = {"last_layer": "both"}
    settings["embeddings"] = {"keep": True}
    settings["measurement"]["estimators"] = ["anisotropy", *MEASURES, *OF_ALL, "norm_before"]
    settings["measurement"]["estimators"] += LINEARITY
    checkout.write("tiny.yaml", settings)
    run = ("results/tables/estimates.csv", "results/tables/changes.csv", *RUN)
    checkout.snakemake(*run)
    assert values(checkout, "gap").keys() == values(checkout, "anisotropy").keys()
    for revision in ("step0", "step1"):
        states = []
        for name in ("layer_0", "layer_1", "layer_1_before_final_norm"):
            path = checkout.folder / f"results/embeddings/tiny/{revision}/{name}.h5"
            with h5py.File(path) as file:
                states.append(file["embeddings"][()].astype(float))
                windows, positions = file["windows"][()], file["positions"][()]
        later = positions > 0
        moved = {name: values(checkout, name) for name in OF_ALL}
        distance = np.linalg.norm((states[1] - states[0]).mean(axis=0))
        assert moved["moved"][revision, 1, 0] == pytest.approx(distance, rel=1e-6)
        assert moved["moved_fast"] == moved["moved"]
        distance = np.linalg.norm((states[1] - states[0])[later].mean(axis=0))
        assert moved["moved_later"][revision, 1, 0] == pytest.approx(distance, rel=1e-6)
        X = states[1] - states[1].mean(axis=0)
        of_each = (X[windows == w] for w in {*windows})
        sums = sum(rows.sum(axis=0) @ rows.mean(axis=0) for rows in of_each)
        assert moved["apart"][revision, 1, 0] == pytest.approx(sums / (X**2).sum(), rel=1e-6)
        for layer, state in ((0, states[0]), (1, states[2])):
            norms = values(checkout, "norm_before")
            largest = max(norms[key] for key in norms if key[:2] == (revision, layer))
            assert largest == pytest.approx(np.linalg.norm(state, axis=1).max(), rel=1e-6)
    # One layer and the average over it; the same interval, since the windows are the same.
    estimates = checkout.rows("results/tables/estimates.csv")
    of_blocks = [row for row in estimates if row["estimator"] == "moved"]
    assert [row["layer"] for row in of_blocks] == ["1", "", "1", ""]
    assert all(float(row["low"]) < float(row["value"]) < float(row["high"]) for row in of_blocks)
    chosen = {row["estimator"]: row["selection"] for row in estimates}
    assert (chosen["moved"], chosen["moved_later"]) == ("all", "without_first_token")
    assert chosen["norm_before"] == "before_final_norm"

    # Another setting is the jobs of its family. So is an edit of the function; a comment is none.
    gathered = {"gather_model": 1, "gather_tables": 3}
    family = {"measure": 4, **gathered, "total": 8}
    other = settings["measurement"] | {"parameters": {"gap": {"k": 5}}}
    checkout.write("tiny.yaml", settings | {"measurement": other})
    assert checkout.planned(*run) == family
    checkout.write("tiny.yaml", settings)
    (module,) = checkout.python.parents[1].rglob("gap_of_shapes.py")
    module.write_text(module.read_text() + "# A comment.\n")
    assert checkout.planned(*run) == {}
    module.write_text(module.read_text() + "OTHER = 1\n")
    assert checkout.planned(*run) == family

    # In memory the same bytes.
    settings |= {"embeddings": {"dump": False}, "run": "memory"}
    checkout.write("memory.yaml", settings)
    tables = [f"results/memory/tables/{name}.csv" for name in ("estimates", "measurements")]
    checkout.snakemake(*tables, "--configfile", "memory.yaml", "--cores", "2")
    results = checkout.folder / "results"
    files = sorted((results / "measurements/tiny").rglob("*.csv"))
    assert len(files) == 2 * (4 * 2 + 1)  # checkpoints; families of two layers, and of one block
    for file in files:
        name = file.relative_to(results / "measurements")
        beside = results / "memory/measurements_in_memory" / name
        assert beside.read_bytes() == file.read_bytes(), file
