"""A package that a user installs brings measures of its own, without a change of this repository."""

import csv
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import tiny_runs
from checkouts import Checkout
from shape_of_learning.metrics.batch_files import read_batches

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
""",
    "more_shapes.py": """
import numpy as np


def largest_norm(X):
    return np.linalg.norm(X, axis=1).max()


def participation(spectrum):
    return spectrum.sum() ** 2 / (spectrum**2).sum()
""",
    "gap_of_shapes.py": """
def gap(distances, k):
    return (distances[:, k - 1] - distances[:, 0]).mean()
""",
    "more_shapes_entries.py": """
from shape_of_learning.metrics.registry import Interval, Measure

LARGEST_NORM = Measure("more_shapes:largest_norm", "vectors", "Largest norm", "Norm")
PARTICIPATION = Measure("more_shapes:participation", "spectrum", "Participation", "Directions")
GAP = Measure(
    "gap_of_shapes:gap", "neighbours", "Gap {k}", "Distance", {"k": 10}, {"k": Interval(least=2)},
    neighbours="k",
)
""",
}
RUN = ("results/tables/measurements.csv", "--configfile", "tiny.yaml", "--cores", "2")
MEASURES = ("largest_norm", "participation", "gap")


@pytest.fixture
def checkout(checkout: Checkout, tmp_path: Path) -> Checkout:
    """A checkout in an environment that has ours and the package."""
    environment, source = tmp_path / "environment", tmp_path / "more-shapes"
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
    return Checkout(checkout.folder, environment / "bin/python")


def values(checkout: Checkout, estimator: str) -> dict[tuple[str, int, int], float]:
    with (checkout.folder / "results/tables/measurements.csv").open(newline="") as table:
        return {
            (row["revision"], int(row["layer"]), int(row["batch"])): float(row["value"])
            for row in csv.DictReader(table)
            if row["estimator"] == estimator
        }


def test_measures_of_a_package_are_in_the_table(checkout: Checkout):
    settings = tiny_runs.set_up(checkout)
    settings["measurement"]["estimators"] = ["anisotropy", *MEASURES]
    checkout.write("tiny.yaml", settings)
    checkout.snakemake(*RUN)

    found = values(checkout, "gap")
    assert found.keys() == values(checkout, "anisotropy").keys()
    for revision, layer, batch in found:
        results = checkout.folder / "results"
        kept = [
            read_batches(results / f"{kind}/tiny/{revision}/layer_{layer}.h5")[batch].content
            for kind in ("neighbours", "spectra")
        ]
        distances, spectrum = kept[0].distances, kept[1].eigenvalues
        mean_gap = (distances[:, 9] - distances[:, 0]).mean()
        assert found[revision, layer, batch] == pytest.approx(mean_gap, rel=1e-12)
        directions = spectrum.sum() ** 2 / (spectrum**2).sum()
        participation = values(checkout, "participation")[revision, layer, batch]
        assert participation == pytest.approx(directions, rel=1e-12)

    # Another setting is one small job per checkpoint. So is an edit of the function; a comment is none.
    small = {"measure": 2, "gather_checkpoints": 1, "gather_tables": 1, "total": 4}
    checkout.write(
        "tiny.yaml",
        settings | {"measurement": settings["measurement"] | {"parameters": {"gap": {"k": 5}}}},
    )
    assert checkout.planned(*RUN) == small
    checkout.write("tiny.yaml", settings)
    (module,) = checkout.python.parents[1].rglob("gap_of_shapes.py")
    module.write_text(module.read_text() + "# A comment.\n")
    assert checkout.planned(*RUN) == {}
    module.write_text(module.read_text() + "OTHER = 1\n")
    assert checkout.planned(*RUN) == small


def test_without_a_dump_they_are_measured_in_memory(checkout: Checkout):
    settings = tiny_runs.set_up(checkout)
    settings["embeddings"] = {"dump": False}
    settings["measurement"]["estimators"] = ["anisotropy", *MEASURES]
    checkout.write("tiny.yaml", settings)
    checkout.snakemake(*RUN)
    for name in MEASURES:
        assert values(checkout, name).keys() == values(checkout, "anisotropy").keys()
