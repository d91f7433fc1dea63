import csv

import numpy as np
import pytest
import transformers

import dump_embeddings as script
from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.embeddings.tokenised_windows import masked_tokens
from tiny_models import ENCODERS, save_stirred_model, save_tiny_model


def save_with_scaled_head(folder, factor):
    save_tiny_model(folder, "gpt_neox", head=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    model.get_output_embeddings().weight.data *= factor
    model.save_pretrained(folder)


def run_script(tmp_path, name, revision="main", destination="dump"):
    text = tmp_path / "text.txt"
    text.write_text("the shape of what a model learns, " * 60)
    outputs = {"embeddings": "", "loss": ".csv", "tensors": ".tensors.csv"}
    script.main(
        {"model": "tiny", "revision": revision},
        tmp_path / "model",
        None,
        text,
        {"windows": 12, "window_characters": 100, "seed": 0},
        {"measures": [], "seed": 0, "points": False},
        {key: str(tmp_path / f"{destination}{end}") for key, end in outputs.items()},
        shape=vars(Shape("encoder" if name in ENCODERS else "decoder", 3, 32, 32)),
        threads=1,
        window_batch_size=4,
    )
    with (tmp_path / f"{destination}.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    return row


def test_an_undefined_loss_is_an_empty_cell(tmp_path):
    save_tiny_model(tmp_path / "model", "bert")
    row = run_script(tmp_path, "bert")
    assert row == {"loss": "", "predicted_tokens": "0", "vocabulary": ""}


@pytest.mark.parametrize("factor", [float("inf"), float("nan")])
def test_a_loss_that_is_not_finite_is_recorded_as_inf(factor, tmp_path):
    save_with_scaled_head(tmp_path / "model", factor)
    row = run_script(tmp_path, "gpt_neox")
    assert row["loss"] == "inf"
    assert int(row["predicted_tokens"]) > 0


def test_all_checkpoints_of_a_model_predict_the_same_masked_tokens(tmp_path, monkeypatch):
    drawn = []

    def recorded(*arguments):
        drawn.append(masked_tokens(*arguments))
        return drawn[-1]

    monkeypatch.setattr("shape_of_learning.embeddings.tokenised_windows.masked_tokens", recorded)
    save_tiny_model(tmp_path / "model", "bert", head=True)
    first = run_script(tmp_path, "bert", revision="step1", destination="one")
    save_stirred_model(tmp_path / "model", "bert")
    second = run_script(tmp_path, "bert", revision="step2", destination="two")
    assert first["loss"] != second["loss"]
    assert first["predicted_tokens"] == second["predicted_tokens"]
    for one, other in zip(drawn[:12], drawn[12:], strict=True):
        np.testing.assert_array_equal(one.positions, other.positions)
        np.testing.assert_array_equal(one.shown, other.shown)
