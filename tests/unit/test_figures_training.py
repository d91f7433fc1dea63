"""Figures of twins and of fine-tuning: who is compared with whom, and the differences over seeds."""

from dataclasses import replace
from itertools import count

import numpy as np
import pandas as pd
import pytest

from figure_tables import inputs_of, rows_of_model, verdicts_on
from shape_of_learning.checkpoints.record import write_record
from shape_of_learning.errors import InputError
from shape_of_learning.figures.output import paper_function
from shape_of_learning.figures.style import theme
from shape_of_learning.training.train import TRAINING_COLUMNS as COLUMNS
from shape_of_learning.training.train import training_row

OF_TWINS = ("linearity_increment_adjusted", "linearity_adjusted", "anisotropy", "two_nn")
CHANGED = ("linearity_increment", "linearity_increment_adjusted")


def steps_of(model, **facts):
    """The two saved steps of a training; the loss is 5 at first, then 4 and less for each model."""
    losses = (5.0, facts.pop("loss", 4.0))
    empty = dict.fromkeys(COLUMNS, np.nan)
    return [
        {**empty, "model": model, "revision": f"step{step}", "step": step, "held_out_loss": loss}
        | facts
        for step, loss in zip((0, 128), losses, strict=True)
    ]


def drawn(name, inputs, training):
    with theme():
        return paper_function(f"linear:{name}")(
            replace(inputs, tables={"training": pd.DataFrame(training, columns=COLUMNS)})
        )


def test_each_twin_is_compared_with_what_it_is_the_twin_of(tmp_path):
    models = ["plain1", "twin1", "plain2", "twin2", "other"]
    rows = [
        row for name in models for row in rows_of_model(name, steps=(128,), estimators=OF_TWINS)
    ]
    cosine = {"regulariser": "cosine", "strength": 0.5}
    training = [
        *(steps_of("plain1") + steps_of("plain2", loss=4.2) + steps_of("other")),
        *steps_of("twin1", loss=3.9, twin_of="plain1", **cosine),
        *steps_of("twin2", loss=3.9, twin_of="plain2", **cosine),
    ]
    drawing = drawn("twins", inputs_of(tmp_path, models, *OF_TWINS, rows=rows), training)
    table = drawing.table.set_index(["model", "quantity"])
    assert set(drawing.table["model"]) == {"twin1", "twin2"}
    assert len(table) == 2 * 5
    means = {(r["model"], r["estimator"]): r["value"] for r in rows if r["layer"] == ""}
    for number in (1, 2):
        for name in OF_TWINS:
            found = table.loc[f"twin{number}", name]
            both = means[f"plain{number}", name], means[f"twin{number}", name]
            assert (found["plain"], found["value"]) == pytest.approx(both)
            assert found["difference"] == pytest.approx(both[1] - both[0])
    # Differences of -0.1 and -0.3: their deviation is that of two numbers, 0.2 / sqrt(2).
    assert "Held-out loss (nats per token) -0.200 (sd 0.141, n 2)" in drawing.caption
    assert "Cosine 0.5: Linearity of the increment" in drawing.caption


def test_a_twin_without_its_other_is_refused(tmp_path):
    rows = rows_of_model("twin", steps=(128,), estimators=OF_TWINS)
    training = steps_of("twin", twin_of="plain", regulariser="mse", strength=2.0)
    with pytest.raises(InputError, match="name both"):
        drawn("twins", inputs_of(tmp_path, ["twin"], *OF_TWINS, rows=rows), training)


def test_a_fine_tuning_changes_what_its_last_step_has_and_its_first_has_not(tmp_path):
    models, seeds = ["a0", "a1"], count()
    rows = [row for m in models for row in rows_of_model(m, steps=(0, 128), estimators=CHANGED)]
    verdicts = [each for name in models for each in verdicts_on(name, (0, 128))]
    training = [
        step
        for name in models
        for step in steps_of(name, origin="gpt", task="words", seed=next(seeds))
    ]
    inputs = inputs_of(tmp_path, models, *CHANGED, rows=rows, verdicts=verdicts)
    table = drawn("changes_by_finetuning", inputs, training).table
    assert table["setting"].unique().tolist() == ["gpt, words"]
    for row in table.to_dict("records"):
        of_step = {
            each["step"]: each["value"]
            for each in rows
            if (each["model"], each["estimator"], each["layer"])
            == (row["model"], row["estimator"], "")
        }
        assert row["change"] == pytest.approx(of_step[128] - of_step[0])
        assert row["seed"] == int(row["model"][-1])


def test_a_row_of_training_is_what_the_record_says(tmp_path):
    facts = {
        "model": "mine",
        "step": 4,
        "score": 0.75,
        "recipe": {"seed": 3},
        "origin": {"model": "gpt", "revision": "step8"},
        "task": {"name": "words", "metric": "accuracy"},
    }
    write_record(tmp_path, {}, revision="step4", **facts)
    row = dict(zip(COLUMNS, training_row(tmp_path), strict=True))
    assert {key: value for key, value in row.items() if value is not None} == {
        **{"model": "mine", "revision": "step4", "step": 4, "seed": 3, "score": 0.75},
        **{"origin": "gpt", "origin_revision": "step8", "task": "words", "metric": "accuracy"},
    }
