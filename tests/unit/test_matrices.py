"""What is measured of the matrices of a model: values against formulas, points, and the published ones."""

import csv
import json
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
import requests
import torch
import transformers as hf

from shape_of_learning.estimators.weights import principal_coordinates
from shape_of_learning.metrics.matrices import weight_points, weight_values, write_matrix_tables
from shape_of_learning.metrics.registry import find_measure

NAMES = ("matrix_partition_isotropy", "gain_length", "bias_length", "bias_to_gain")
MEASURES = [find_measure(name).chosen(name, {}) for name in NAMES]


def test_values_are_those_of_the_formulas():
    normal = np.random.default_rng(0).normal
    matrices = {"input": normal(size=(300, 32)), "output": normal(0.1, 0.3, (300, 32))}
    matrices["final_norm"] = normal(1, 0.1, (2, 32))
    rows = {row[:2]: row[2:] for row in weight_values(matrices.items(), MEASURES)}
    W, (gain, bias) = matrices["output"].astype(float), matrices["final_norm"].astype(float)
    directions = np.linalg.eigh(W.T @ W)[1]
    directions *= np.where(W.mean(axis=0) @ directions < 0, -1, 1)
    partition = np.exp(W @ directions).sum(axis=0)
    expected = np.log(partition.min() / partition.max())
    assert rows["output", "matrix_partition_isotropy"] == (
        300,
        32,
        pytest.approx(expected, rel=1e-9),
    )
    lengths = [np.linalg.norm(gain), np.linalg.norm(bias)]
    values = [rows["final_norm", name] for name in ("gain_length", "bias_length", "bias_to_gain")]
    expected = [*lengths, lengths[1] / lengths[0]]
    assert values == [(1, 32, pytest.approx(value, rel=1e-12)) for value in expected]
    assert len(rows) == 5


def test_what_is_missing_or_broken_is_undefined():
    matrices = {"input": np.full((9, 4), np.nan), "final_norm": np.ones((1, 4))}
    rows = {row[:2]: row[4] for row in weight_values(matrices.items(), MEASURES)}
    assert rows.pop(("final_norm", "gain_length")) == 2
    assert len(rows) == 3
    assert np.isnan(list(rows.values())).all()
    assert list(weight_points(matrices.items(), 0)) == []


def test_tables_have_what_is_asked_for(tmp_path):
    matrices = {"tied": cloud(), "final_norm": np.ones((1, 12))}
    paths = {name: str(tmp_path / f"{name}.csv") for name in ("weights", "weight_points")}
    told = [measure.for_jobs() for measure in MEASURES]
    for measures, points in ((told, True), ([], False)):
        write_matrix_tables(matrices, paths, measures, 0, points=points)
        rows = {}
        for name, path in paths.items():
            rows[name] = list(csv.DictReader(Path(path).read_text().splitlines()))
        assert len(rows["weights"]) == (4 if measures else 0)
        assert len(rows["weight_points"]) == (1000 if points else 0)
    write_matrix_tables(matrices, {}, told, 0, points=True)  # where nobody reads any


def cloud(n=500, d=12, offset=0.0):
    numbers = np.random.default_rng(0)
    return numbers.exponential(1, (n, d)) * np.linspace(3, 1, d) + offset


@pytest.mark.parametrize("center", [False, True])
def test_coordinates_are_those_of_a_singular_value_decomposition(center, monkeypatch):
    X = cloud()
    monkeypatch.setattr("shape_of_learning.estimators.weights.BLOCK_BYTES", 8 * 12 * 7)
    found = principal_coordinates(X, center)
    U, s, _ = np.linalg.svd(X - X.mean(axis=0) * center, full_matrices=False)
    np.testing.assert_allclose(abs(found), abs(U[:, :2] * s[:2]), atol=1e-9)
    assert ((found**3).sum(axis=0) > 0).all()


def test_the_same_entries_of_a_large_vocabulary_are_kept_everywhere(monkeypatch):
    monkeypatch.setattr("shape_of_learning.metrics.matrices.MOST_POINTS", 40)
    X = cloud()
    rows = list(weight_points([("input", X), ("output", X[:, ::-1] * 2)], seed=3))
    entries = [[row[2] for row in rows[i : i + 40]] for i in range(0, 160, 40)]
    assert len(rows) == 160
    assert entries == [sorted(set(entries[0]))] * 4
    raw = principal_coordinates(X)[entries[0]]
    np.testing.assert_allclose([row[3:] for row in rows[:40]], raw, rtol=1e-5)


# The authors' README, pythia-70m: I of input and output, and of both less their mean.
PUBLISHED = {
    ("input", False): 0.9584758,
    ("output", False): 0.0830891,
    ("input", True): 0.9968441,
    ("output", True): 0.9724734,
}


def test_the_published_isotropies_of_pythia_70m(capsys):
    """Reaches for the weights in the cache or on the Hub; the authors' signs are what their eigh gave."""
    try:
        requests.head(huggingface_hub.constants.ENDPOINT, timeout=10)
        cached = False
    except requests.RequestException:  # else the Hub's client tries again and again
        cached = True
    try:
        model = hf.AutoModelForCausalLM.from_pretrained(
            "EleutherAI/pythia-70m",
            dtype=torch.float32,
            trust_remote_code=False,
            local_files_only=cached,
        )
    except OSError as error:
        pytest.skip(
            f"pythia-70m is neither in the cache nor on the Hub: {str(error).split('.')[0]}"
        )
    ends = {"input": model.get_input_embeddings(), "output": model.get_output_embeddings()}
    for (end, center), published in PUBLISHED.items():
        W = ends[end].weight.detach()
        W = W - W.mean(dim=0) if center else W
        _, directions = torch.linalg.eigh(W.T @ W)
        sums = {
            "eigh's signs": torch.exp(W @ directions).sum(dim=0),
            "the opposite signs": torch.exp(W @ -directions).sum(dim=0),
        }
        as_given = {signs: float(F.min() / F.max()) for signs, F in sums.items()}
        name = f"matrix_partition_isotropy{'_centered' if center else ''}"
        measure = find_measure(name).chosen(name, {}).load()
        ours = measure(ends[end].weight.detach().numpy())
        as_given["turned to the mean"] = float(np.exp(ours))
        matched = [
            s for s, value in as_given.items() if value == pytest.approx(published, abs=1e-3)
        ]
        with capsys.disabled():
            print(json.dumps([end, center, published, as_given, matched]))
        assert matched, (end, center, as_given)
