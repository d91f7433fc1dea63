"""A SLURM, a checkout for each run on it, and a local run to compare with."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkouts import REPOSITORY, Checkout, check_out
from on_slurm import SlurmCheckout
from one_host_slurm import OneHostSlurm, UnavailableError
from tiny_runs import RECIPE

# The models may be tiny, since these tests are about jobs.
ENTRIES = {
    f"small-{role}": {
        "role": role,
        "layers": 1,
        "hidden_size": 32,
        "pretraining": {**RECIPE, "architecture": architecture, "vocabulary": 512, "context": 400},
    }
    for role, architecture in (("decoder", "gpt_neox"), ("encoder", "bert"))
}
UNDRAWN = ("massive_tokens", "controls_by_layer", "controls_by_step", "loss_by_step")
UNDRAWN += ("anisotropy_measures", "dimension_by_scale")
SETTINGS = {
    "models": list(ENTRIES),
    "corpus": {"source": "python_topics"},
    "sampling": {"windows": 24, "window_characters": 512},
    "measurement": {"estimators": ["anisotropy", "two_nn"]},
    "figures": {
        **dict.fromkeys(("figure_1", "figure_4", "figure_5", "table_1"), "all"),
        **{name: [] for name in UNDRAWN},
        "figure_2": ["small-decoder"],
        "figure_3": ["small-encoder"],
    },
}


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneHostSlurm]:
    """A cluster of the nodes c1, c2 and g1."""
    cluster = OneHostSlurm(tmp_path_factory.mktemp("slurm"))
    try:
        try:
            cluster.start()
        except UnavailableError as reason:
            if os.environ.get("SLURM_TESTS") == "required":
                raise
            pytest.skip(f"no SLURM on this host: {reason}")
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def snakemake_on_slurm() -> Path:
    """The Python that has the plugin."""
    folder = Path(os.environ.get("SLURM_ENVIRONMENT", REPOSITORY / ".venv-slurm"))
    python = folder / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{python} is missing: run `make slurm`")
    return python


@pytest.fixture(scope="session")
def local_run(tmp_path_factory: pytest.TempPathFactory, slurm) -> Checkout:
    """A run of the whole chain on this machine."""
    checkout = check_out(tmp_path_factory.mktemp("local") / "checkout")
    checkout.write("config/models/small.yaml", ENTRIES)
    checkout.write("small.yaml", SETTINGS)
    checkout.snakemake("--configfile", "small.yaml", "--cores", "2", "--quiet", "rules")
    return checkout


def make_small_checkout(folder: Path, python: Path, slurm: OneHostSlurm) -> SlurmCheckout:
    checkout = SlurmCheckout(check_out(folder).folder, plugin_python=python, slurm=slurm)
    checkout.write("config/models/small.yaml", ENTRIES)
    checkout.write("small.yaml", SETTINGS)
    return checkout


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory, local_run, slurm, snakemake_on_slurm) -> SlurmCheckout:
    """A run of the whole chain on the cluster."""
    folder = tmp_path_factory.mktemp("cluster") / "checkout"
    checkout = make_small_checkout(folder, snakemake_on_slurm, slurm)
    checkout.run()
    return checkout


@pytest.fixture
def checkout_with_weights(tmp_path, local_run, slurm, snakemake_on_slurm) -> SlurmCheckout:
    """A checkout with the corpus and the weights of the local run."""
    checkout = make_small_checkout(tmp_path / "checkout", snakemake_on_slurm, slurm)
    for place in ("results/corpus", "results/pretrained"):
        shutil.copytree(local_run.folder / place, checkout.folder / place)
    return checkout
