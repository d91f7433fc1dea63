"""The matrices of a model are found for every architecture and measured."""

import numpy as np
import pytest
import torch
import transformers as hf

from runs import load_sample
from shape_of_learning.embeddings.matrices import find_matrices, measure_matrices, place_entries
from shape_of_learning.estimators.weights import principal_coordinates
from shape_of_learning.metrics.registry import find_measure
from tiny_models import (
    CONFIGURATIONS,
    USUAL,
    VOCABULARY,
    WIDTHS,
    choose_class_with_head,
    save_stirred_model,
)

NAMES = ("matrix_partition_isotropy", "gain_length", "bias_length", "bias_to_gain")
MEASURES = [find_measure(name).configure(name, {}) for name in NAMES]


def test_measures_of_matrices_follow_their_formulas():
    normal = np.random.default_rng(0).normal
    matrices = {"input": normal(size=(300, 32)), "output": normal(0.1, 0.3, (300, 32))}
    matrices["final_norm"] = normal(1, 0.1, (2, 32))
    rows = {row[:2]: row[2:] for row in measure_matrices(matrices.items(), MEASURES)}
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


def test_measures_of_missing_or_broken_matrices_are_undefined():
    matrices = {"input": np.full((9, 4), np.nan), "final_norm": np.ones((1, 4))}
    rows = {row[:2]: row[4] for row in measure_matrices(matrices.items(), MEASURES)}
    assert rows.pop(("final_norm", "gain_length")) == 2
    assert len(rows) == 3
    assert np.isnan(list(rows.values())).all()
    assert list(place_entries(matrices.items(), 0)) == []


def draw_cloud(n=500, d=12, offset=0.0):
    numbers = np.random.default_rng(0)
    return numbers.exponential(1, (n, d)) * np.linspace(3, 1, d) + offset


@pytest.mark.parametrize("center", [False, True])
def test_principal_coordinates_are_those_of_a_singular_value_decomposition(center, monkeypatch):
    X = draw_cloud()
    monkeypatch.setattr("shape_of_learning.estimators.weights.BLOCK_BYTES", 8 * 12 * 7)
    coordinates = principal_coordinates(X, center)
    U, s, _ = np.linalg.svd(X - X.mean(axis=0) * center, full_matrices=False)
    np.testing.assert_allclose(abs(coordinates), abs(U[:, :2] * s[:2]), atol=1e-9)
    assert ((coordinates**3).sum(axis=0) > 0).all()


def test_all_matrices_keep_the_same_entries_of_a_large_vocabulary(monkeypatch):
    monkeypatch.setattr("shape_of_learning.embeddings.matrices.MOST_POINTS", 40)
    X = draw_cloud()
    rows = list(place_entries([("input", X), ("output", X[:, ::-1] * 2)], seed=3))
    entries = [[row[2] for row in rows[i : i + 40]] for i in range(0, 160, 40)]
    assert len(rows) == 160
    assert entries == [sorted(set(entries[0]))] * 4
    coordinates = principal_coordinates(X)[entries[0]]
    np.testing.assert_allclose([row[3:] for row in rows[:40]], coordinates, rtol=1e-5)


TIED_NAMES = ["tied"]
SEPARATE_NAMES = ["input", "output"]
SEPARATE_MATRICES = ("gpt_neox", "llama", "gptj")


def read_matrices(checkpoint, name):
    sample = load_sample(checkpoint, WIDTHS.get(name, [32] * 4))
    return find_matrices(sample.forward)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_architecture_has_its_matrices_bit_for_bit(name, tmp_path):
    checkpoint = save_stirred_model(tmp_path, name)
    matrices = read_matrices(checkpoint, name)
    model = choose_class_with_head(name).from_pretrained(checkpoint, dtype=torch.float32)
    ends = {
        "input": model.get_input_embeddings().weight,
        "output": model.get_output_embeddings().weight,
        "tied": model.get_input_embeddings().weight,
    }
    names = SEPARATE_NAMES if name in SEPARATE_MATRICES else TIED_NAMES
    norm = load_sample(checkpoint, WIDTHS[name]).forward.final_norm
    assert list(matrices) == names + ([] if norm is None else ["final_norm"])
    for matrix in names:
        assert matrices[matrix].dtype == np.float32
        assert matrices[matrix].shape[0] == VOCABULARY
        np.testing.assert_array_equal(matrices[matrix], ends[matrix].detach().numpy())
    if norm is not None:
        rows = [row.numpy() for row in norm.parameters()]
        np.testing.assert_array_equal(matrices["final_norm"], rows)


def test_the_gain_of_a_norm_that_adds_one_to_its_weight_includes_the_one(tmp_path):
    config = hf.GemmaConfig(**USUAL, num_key_value_heads=1, head_dim=16)
    checkpoint = save_stirred_model(tmp_path, "gemma", config)
    gain = read_matrices(checkpoint, "gemma")["final_norm"]
    weight = hf.AutoModel.from_pretrained(checkpoint, dtype=torch.float32).norm.weight
    np.testing.assert_array_equal(gain, [1 + weight.detach().numpy()])
