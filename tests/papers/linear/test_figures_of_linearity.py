"""Figures of twins, of changes by fine-tuning and of errors of tokens."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import figure_tables as made
from papers.linear.maps import FIT_ERROR_COLUMNS
from shape_of_learning.figures.job import make_drawn_measures
from shape_of_learning.figures.style import SUSPECT
from shape_of_learning.metrics.registry import find_measure
from shape_of_learning.training.train import TRAINING_COLUMNS


def make_steps(model, first=5.0, last=4.0, **facts):
    """Make the rows of the two saved steps of a training, the later step first."""
    empty = dict.fromkeys(TRAINING_COLUMNS, np.nan) | {"model": model}
    both = ((128, last), (0, first))
    return [{**empty, "step": step, "held_out_loss": loss, **facts} for step, loss in both]


TWIN_MEASURES = ("linearity_increment", "linearity_increment_adjusted", "anisotropy", "two_nn")


def draw_trainings(function, rows, names, *training, **tables):
    table = pd.DataFrame([row for steps in training for row in steps], columns=TRAINING_COLUMNS)
    models = list(dict.fromkeys(row["model"] for row in rows))
    inputs = made.make_inputs(models, *names, rows=rows, training=table, **tables)
    return made.draw(f"papers.linear.figures:{function}", inputs)


def test_each_twin_is_compared_with_its_original():
    models = ("plain1", "twin1", "plain2", "twin2", "other")
    rows = [row for name in models for row in made.make_model_rows(name, estimators=TWIN_MEASURES)]
    cosine = {"last": 3.9, "regulariser": "cosine", "strength": 0.5}
    twins = [make_steps(f"twin{n}", twin_of=f"plain{n}", **cosine) for n in (1, 2)]
    other_trainings = make_steps("plain1"), make_steps("plain2", last=4.2), make_steps("other")
    drawing = draw_trainings("twins", rows, TWIN_MEASURES, *other_trainings, *twins)
    table = drawing.table.set_index(["model", "quantity"])
    means = {(r["model"], r["estimator"]): r["value"] for r in rows if r["layer"] == ""}
    for number in (1, 2):
        for name in TWIN_MEASURES:
            twin_row = table.loc[f"twin{number}", name]
            both = means[f"plain{number}", name], means[f"twin{number}", name]
            assert (twin_row["plain"], twin_row["value"]) == pytest.approx(both)
            assert twin_row["difference"] == pytest.approx(both[1] - both[0])
    # The differences -0.1 and -0.3 have the standard deviation 0.2 / sqrt(2).
    assert "Held-out loss (nats per token) -0.200 (sd 0.141, n 2)" in made.read_words(drawing)


def test_one_pair_of_twins_is_drawn_as_points_and_several_as_lines():
    def list_line_styles(pairs):
        names = [f"{kind}{n}" for n in range(pairs) for kind in ("plain", "twin")]
        rows = [r for name in names for r in made.make_model_rows(name, estimators=TWIN_MEASURES)]
        recipe = {"regulariser": "cosine", "strength": 0.5}
        twins = [make_steps(f"twin{n}", twin_of=f"plain{n}", **recipe) for n in range(pairs)]
        plain = [make_steps(f"plain{n}") for n in range(pairs)]
        drawing = draw_trainings("twins", rows, TWIN_MEASURES, *plain, *twins)
        return {line.get_linestyle() for line in drawing.figure.axes[0].get_lines()}

    assert list_line_styles(1) == {"None"}
    assert list_line_styles(2) == {"-"}


def test_a_twin_that_diverged_has_no_loss():
    rows = [r for n in ("plain", "twin") for r in made.make_model_rows(n, estimators=TWIN_MEASURES)]
    twin = make_steps("twin", last=np.nan, twin_of="plain", regulariser="cosine", strength=0.5)
    drawing = draw_trainings("twins", rows, TWIN_MEASURES, make_steps("plain"), twin)
    loss = drawing.table.set_index("quantity").loc["held_out_loss"]
    assert loss["plain"] == 4.0
    assert loss[["value", "difference"]].isna().all()


def make_jackknife(rows, change):
    """Make the jackknife values of layers: without group g, a value is larger by `change(row, g)`."""
    keys = ("model", "revision", "step", "estimator", "layer", "value")
    return pd.DataFrame(
        {
            **{key: row[key] for key in keys},
            **{f"without_{group}": row["value"] + change(row, group) for group in range(16)},
        }
        for row in rows
        if row["layer"] != ""
    )


def test_the_change_by_a_fine_tuning_is_the_difference_of_its_last_and_first_step():
    names = ("linearity_increment", "linearity_increment_adjusted")
    rows = [
        r for m in ("a0", "a1") for r in made.make_model_rows(m, steps=(0, 128), estimators=names)
    ]
    training = [make_steps(f"a{seed}", origin="gpt", task="t", seed=seed) for seed in (0, 1)]
    measures = make_drawn_measures([find_measure(name).configure(name, {}) for name in names])
    # Without group g each layer is larger by g at the last step, and so is the change.
    jackknife = make_jackknife(rows, lambda row, group: group * (row["step"] > 0))
    draw = partial(draw_trainings, "changes_by_finetuning", rows, measures, *training)
    drawing = draw(jackknife=jackknife)
    half = 2.131 * np.sqrt(15 / 16 * np.square(np.arange(16) - 7.5).sum())
    (bar, *_) = drawing.figure.axes[1].collections[0].get_segments()
    assert np.ptp(bar[:, 0]) == pytest.approx(2 * half, rel=1e-3)
    # The paper's score has no interval, and neither has a mean with a block that has none.
    assert drawing.table.groupby("estimator")["low"].count().to_dict() == dict(
        zip(names, (0, 2), strict=True)
    )
    is_first_block = jackknife["layer"] == 1
    jackknife.loc[is_first_block, [f"without_{group}" for group in range(16)]] = np.nan
    assert draw(jackknife=jackknife).table["low"].isna().all()
    means = {(r["model"], r["estimator"], r["step"]): r["value"] for r in rows if r["layer"] == ""}
    for row in drawing.table.to_dict("records"):
        first, last = (means[row["model"], row["estimator"], step] for step in (0, 128))
        assert row["change"] == pytest.approx(last - first)
        assert (row["setting"], row["seed"]) == (row["model"], int(row["model"][1]))


def test_bars_of_seeds_do_not_cover_each_other():
    names, seeds = (
        ("linearity_increment_adjusted",),
        [f"gpt on t, seed {seed}" for seed in range(3)],
    )
    rows = [r for m in seeds for r in made.make_model_rows(m, steps=(0, 8), estimators=names)]
    training = [make_steps(m, origin="gpt", task="t", seed=n) for n, m in enumerate(seeds)]
    jackknife = make_jackknife(rows, lambda row, group: group * row["step"])
    drawing = draw_trainings("changes_by_finetuning", rows, names, *training, jackknife=jackknife)
    (axes,) = drawing.figure.axes
    heights = [bar[0, 1] for bar in axes.collections[0].get_segments()]
    assert len({*heights}) == 3
    assert np.mean(heights) == pytest.approx(0)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["gpt on t"]


def test_bands_of_errors_have_the_colours_of_the_legend():
    quantiles = np.sort(np.random.default_rng(0).uniform(0.001, 0.1, (4, 8)))
    rows = [
        ("a", "main", n + 1, n / 4, 900, 0.9, 0.1, *row_quantiles)
        for n, row_quantiles in enumerate(quantiles)
    ]
    errors = pd.DataFrame(rows, columns=[*FIT_ERROR_COLUMNS])
    drawing = made.draw(
        "papers.linear.figures:errors_of_tokens", made.make_inputs(["a"], fit_errors=errors)
    )
    bands = [
        tuple(collection.get_facecolor()[0]) for collection in drawing.figure.axes[0].collections
    ]
    legend_colours = [patch.get_facecolor() for patch in drawing.figure.legends[0].get_patches()]
    assert bands == legend_colours[::-1]
    assert all(opacity == 1 for *_, opacity in bands)


def test_errors_of_tokens_are_relative_to_the_root_mean_square_length():
    tokens, norms = 900, np.array([[4.0, 10, 20, 40, 50, 60, 90, 100]]) / 1000
    table = [("a", "main", 1, 1.0, tokens, 0.9, 0.1, *norms[0])]
    errors = pd.DataFrame(table, columns=[*FIT_ERROR_COLUMNS])
    drawing = made.draw(
        "papers.linear.figures:errors_of_tokens", made.make_inputs(["a"], fit_errors=errors)
    )
    quantiles = [name for name in errors if name.startswith("quantile_")]
    assert drawing.table[quantiles].to_numpy() == pytest.approx(np.sqrt(tokens) * norms)
    low, high = drawing.figure.axes[0].get_ylim()
    ends = drawing.table[["quantile_0.01", "quantile_0.99"]].iloc[0]
    assert low < ends.min() < ends.max() <= high


def test_a_twin_whose_layers_are_suspect_has_a_ring():
    rows = [r for n in ("plain", "twin") for r in made.make_model_rows(n, estimators=TWIN_MEASURES)]
    rows = [row | made.SUSPECT if row["estimator"] == "two_nn" else row for row in rows]
    twin = make_steps("twin", twin_of="plain", regulariser="cosine", strength=0.5)
    drawing = draw_trainings("twins", rows, TWIN_MEASURES, make_steps("plain"), twin)
    rings = [
        sum(line.get_label() == SUSPECT for line in axes.get_lines())
        for axes in drawing.figure.axes
    ]
    assert rings == [0, 0, 0, 2, 0]
