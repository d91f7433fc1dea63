"""What single figures of the papers compute on their way: twins, changes, seeds."""

import random

import numpy as np
import pandas as pd
import pytest

import figure_tables as made
from papers.finetuning.columns import TASK_COLUMNS
from papers.finetuning.figures import adjustments
from papers.linear.maps import FIT_ERROR_COLUMNS
from shape_of_learning.figures.inputs import DrawnMeasure
from shape_of_learning.metrics.tidy import WEIGHT_COLUMNS
from shape_of_learning.training.train import TRAINING_COLUMNS

# The Shape of Learning


def test_panels_of_scales_are_the_first_middle_and_last_block():
    measures = [
        DrawnMeasure(f"gride_{n1}", f"n1 = {n1}", "Dimension", False, parameters={"n1": n1})
        for n1 in (1, 2, 4, 8, 16)
    ]
    names = [measure.name for measure in measures]
    rows = made.rows_of_model("a", layers=12, estimators=names)
    rows += [r | {"value": 20.0} for r in made.rows_of_model("b", layers=1, estimators=names)]
    given = made.inputs_of(["a", "b"], *measures, rows=rows)
    drawing = made.draw(
        "papers.shape_of_learning.figures:dimension_by_scale", given, parameter="n1"
    )
    blocks = drawing.table.query("model == 'a'").groupby("block", sort=False)["layer"]
    assert [int(*block.unique()) for _, block in blocks] == [1, 6, 12]
    assert set(drawing.table.query("model == 'b'")["layer"]) == {1}


# Linearity


def steps_of(model, first=5.0, last=4.0, **facts):
    """The two saved steps of a training, the later one first."""
    empty = dict.fromkeys(TRAINING_COLUMNS, np.nan) | {"model": model}
    both = ((128, last), (0, first))
    return [{**empty, "step": step, "held_out_loss": loss, **facts} for step, loss in both]


OF_TWINS = ("linearity_increment", "linearity_increment_adjusted", "anisotropy", "two_nn")


def drawn_trainings(function, rows, names, *training, **tables):
    table = pd.DataFrame([row for each in training for row in each], columns=TRAINING_COLUMNS)
    models = list(dict.fromkeys(row["model"] for row in rows))
    given = made.inputs_of(models, *names, rows=rows, training=table, **tables)
    return made.draw(f"papers.linear.figures:{function}", given)


def test_each_twin_is_compared_with_what_it_is_the_twin_of():
    models = ("plain1", "twin1", "plain2", "twin2", "other")
    rows = [row for name in models for row in made.rows_of_model(name, estimators=OF_TWINS)]
    cosine = {"last": 3.9, "regulariser": "cosine", "strength": 0.5}
    twins = [steps_of(f"twin{n}", twin_of=f"plain{n}", **cosine) for n in (1, 2)]
    others = steps_of("plain1"), steps_of("plain2", last=4.2), steps_of("other")
    drawing = drawn_trainings("twins", rows, OF_TWINS, *others, *twins)
    table = drawing.table.set_index(["model", "quantity"])
    means = {(r["model"], r["estimator"]): r["value"] for r in rows if r["layer"] == ""}
    for number in (1, 2):
        for name in OF_TWINS:
            found = table.loc[f"twin{number}", name]
            both = means[f"plain{number}", name], means[f"twin{number}", name]
            assert (found["plain"], found["value"]) == pytest.approx(both)
            assert found["difference"] == pytest.approx(both[1] - both[0])
    # Differences of -0.1 and -0.3: their deviation is that of two numbers, 0.2 / sqrt(2).
    assert "Held-out loss (nats per token) -0.200 (sd 0.141, n 2)" in made.words_of(drawing)


def test_one_pair_of_twins_is_two_points_and_several_are_lines():
    def lines(pairs):
        names = [f"{kind}{n}" for n in range(pairs) for kind in ("plain", "twin")]
        rows = [r for name in names for r in made.rows_of_model(name, estimators=OF_TWINS)]
        of = {"regulariser": "cosine", "strength": 0.5}
        twins = [steps_of(f"twin{n}", twin_of=f"plain{n}", **of) for n in range(pairs)]
        plain = [steps_of(f"plain{n}") for n in range(pairs)]
        drawing = drawn_trainings("twins", rows, OF_TWINS, *plain, *twins)
        return {line.get_linestyle() for line in drawing.figure.axes[0].get_lines()}

    assert lines(1) == {"None"}
    assert lines(2) == {"-"}


def test_a_twin_that_diverged_is_shown_without_a_loss_and_not_with_an_earlier_one():
    rows = [r for n in ("plain", "twin") for r in made.rows_of_model(n, estimators=OF_TWINS)]
    twin = steps_of("twin", last=np.nan, twin_of="plain", regulariser="cosine", strength=0.5)
    drawing = drawn_trainings("twins", rows, OF_TWINS, steps_of("plain"), twin)
    loss = drawing.table.set_index("quantity").loc["held_out_loss"]
    assert loss["plain"] == 4.0
    assert loss[["value", "difference"]].isna().all()


def test_a_fine_tuning_changes_what_its_last_step_has_and_its_first_has_not():
    names = ("linearity_increment", "linearity_increment_adjusted")
    rows = [
        r for m in ("a0", "a1") for r in made.rows_of_model(m, steps=(0, 128), estimators=names)
    ]
    training = [steps_of(f"a{seed}", origin="gpt", task="t", seed=seed) for seed in (0, 1)]
    # Without group g each layer is g larger at the last step, and so is the change.
    left_out = pd.DataFrame(
        {
            **{key: row[key] for key in ("model", "step", "estimator", "layer", "value")},
            **{f"without_{group}": row["value"] + group * (row["step"] > 0) for group in range(16)},
        }
        for row in rows
        if row["layer"] != ""
    )
    drawing = drawn_trainings("changes_by_finetuning", rows, names, *training, left_out=left_out)
    half = 2.131 * np.sqrt(15 / 16 * np.square(np.arange(16) - 7.5).sum())
    (bar, *_) = drawing.figure.axes[0].collections[0].get_segments()
    assert np.ptp(bar[:, 0]) == pytest.approx(2 * half, rel=1e-3)
    means = {(r["model"], r["estimator"], r["step"]): r["value"] for r in rows if r["layer"] == ""}
    for row in drawing.table.to_dict("records"):
        first, last = (means[row["model"], row["estimator"], step] for step in (0, 128))
        assert row["change"] == pytest.approx(last - first)
        assert (row["setting"], row["seed"]) == (row["model"], int(row["model"][1]))


def test_bars_of_seeds_do_not_cover_each_other():
    names, seeds = ("linearity_increment",), [f"gpt on t, seed {seed}" for seed in range(3)]
    rows = [r for m in seeds for r in made.rows_of_model(m, steps=(0, 8), estimators=names)]
    training = [steps_of(m, origin="gpt", task="t", seed=n) for n, m in enumerate(seeds)]
    left_out = pd.DataFrame(
        {
            **{key: row[key] for key in ("model", "step", "estimator", "layer", "value")},
            **{f"without_{group}": row["value"] + group * row["step"] for group in range(16)},
        }
        for row in rows
        if row["layer"] != ""
    )
    drawing = drawn_trainings("changes_by_finetuning", rows, names, *training, left_out=left_out)
    (axes,) = drawing.figure.axes
    heights = [bar[0, 1] for bar in axes.collections[0].get_segments()]
    assert len({*heights}) == 3
    assert np.mean(heights) == pytest.approx(0)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["gpt on t"]


def test_bands_of_errors_have_the_colours_of_the_legend():
    quantiles = np.sort(np.random.default_rng(0).uniform(0.001, 0.1, (4, 8)))
    rows = [("a", "main", n + 1, n / 4, 900, 0.9, 0.1, *of) for n, of in enumerate(quantiles)]
    errors = pd.DataFrame(rows, columns=[*FIT_ERROR_COLUMNS])
    drawing = made.draw(
        "papers.linear.figures:errors_of_tokens", made.inputs_of(["a"], fit_errors=errors)
    )
    bands = [
        tuple(collection.get_facecolor()[0]) for collection in drawing.figure.axes[0].collections
    ]
    named = [patch.get_facecolor() for patch in drawing.figure.legends[0].get_patches()]
    assert bands == named[::-1]
    assert all(opacity == 1 for *_, opacity in bands)


# Matrices of a model

STEPS = [0, 10, 100, 1000]
RAW = "matrix_partition_isotropy"


def weights(model, matrices=("input", "output")):
    """A table of one model, seeded numbers of plausible size."""
    numbers, rows = random.Random(model), []
    for step in STEPS:
        common = {"model": model, "role": "decoder", "revision": f"step{step}", "step": step}
        common |= {"tokens": step * 2048, "estimator": RAW, "n": 50304, "d": 512}
        for matrix in matrices:
            value = -numbers.uniform(0, 0.1) - step / 500
            rows.append(common | {"matrix": matrix, "value": value})
    return rows


def drawn_weights(function, rows, flagged=None):
    """Draw with a loss that falls as the isotropy of `weights` does."""
    names = list(dict.fromkeys(row["model"] for row in rows)) or ["a"]
    loss = {step: 5 - step / 500 for step in STEPS}
    verdicts = [r for name in names for r in made.verdicts_on(name, STEPS, flagged, losses=loss)]
    models = made.models_named(names, [f"M-{name}" for name in names])
    measure = DrawnMeasure(RAW, "Partition isotropy", "ln I", parameters={"center": False})
    table = pd.DataFrame(rows, columns=WEIGHT_COLUMNS)
    given = made.inputs_of(models, measure, verdicts=verdicts, weights=table)
    return made.draw(f"papers.inherent.figures:{function}", given)


def test_a_tied_matrix_is_at_both_ends():
    rows = weights("a") + weights("b", ["tied"])
    drawing = drawn_weights("isotropy_by_step", rows)
    both = [made.named_lines(drawing, panel) for panel in (0, 1)]
    tied = [row["value"] for row in rows if row["matrix"] == "tied"]
    assert [lines["M-b"].get_ydata().tolist() for lines in both] == [tied, tied]
    assert both[0]["M-a"].get_ydata().tolist() != both[1]["M-a"].get_ydata().tolist()


def test_isotropy_and_loss_are_of_the_checkpoints_that_are_shown():
    drawing = drawn_weights("isotropy_and_loss", weights("a"), {1000: ("broken", "no")})
    output = drawing.table[drawing.table["matrix"] == "output"]
    assert output["step"].tolist() == [0, 10, 100]
    assert output["loss"].tolist() == [5.0, 4.98, 4.8]


# Fine-tuning

NAMES, FAMILIES = ["a0", "a1", "b0"], ["A", "A", "B"]


def table(kind, rows):
    return {kind: pd.DataFrame(rows, columns=[*TASK_COLUMNS[kind]])}


def drawn_tuned(function, tables, names=NAMES, families=FAMILIES, **options):
    given = made.inputs_of(made.models_named(names, families=families), **tables)
    return made.draw(f"papers.finetuning.figures:{function}", given, **options)


def at(model, step):
    return model, f"step{step}", step, "topic/held_out"


def test_values_are_means_over_the_seeds_of_a_family_and_bands_their_range():
    values = {"a0": 1.0, "a1": 3.0, "b0": 7.0}
    rows = [
        (*at(name, step), layer, "average_cosine", 500, value + step + layer)
        for name, value in values.items()
        for step in (0, 16)
        for layer in (0, 1)
    ]
    drawing = drawn_tuned("isotropy_by_layer", table("finetuning_layers", rows))
    found = drawing.table.query("step == 16 and layer == 1").set_index("family")
    assert found.loc["A", ["value", "low", "high", "seeds"]].tolist() == [19, 18, 20, 2]
    assert found.loc["b0", "value"] == 24  # the only one of its family has its label
    assert found.loc["b0", ["low", "high"]].isna().all()


def spectra(scales, values=(30.0, 9.0, 6.0, 4.0)):
    """The table of a space whose variances are scaled at each step, and one of layers."""
    rows = [
        (*at("m", step), 0, 500, scale, 9.0, place, value * scale)
        for step, scale in scales.items()
        for place, value in enumerate(values, start=1)
    ]
    shares = ("top_1_share", "top_10_share")
    layers = [(*at("m", step), 0, share, 500, 0.5) for step in scales for share in shares]
    return table("finetuning_spectra", rows) | table("finetuning_layers", layers)


def test_elongated_directions_are_counted_against_the_median_of_the_start():
    drawing = drawn_tuned("spectra", spectra({0: 1, 4: 2}), ["m"], ["M"])
    counted = drawing.table.query("estimator == 'elongated_directions'")
    assert counted.set_index("when")["value"].to_dict() == {"before": 1, "after": 3}
    capped = drawn_tuned("spectra", spectra({0: 1, 4: 9}), ["m"], ["M"])
    assert "there may be more" in capped.caption


@pytest.mark.parametrize("rounded", [1e-14, 0.0, -1e-15])
def test_eigenvalues_that_are_zero_but_for_rounding_do_not_stretch_the_axis(rounded):
    values = (30.0, 9.0, 6.0, rounded)
    drawing = drawn_tuned("spectra", spectra({0: 1, 4: 2}, values), ["m"], ["M"])
    low, high = drawing.figure.axes[0].get_ylim()
    assert 1 < low < 6 < 60 < high < 100
    assert "rounding" in made.words_of(drawing)
    whole = drawn_tuned("spectra", spectra({0: 1, 4: 2}), ["m"], ["M"])
    assert "rounding" not in made.words_of(whole)


@pytest.mark.parametrize("adjustments", [["none", "without_directions"], ["none"]])
def test_probes_of_any_adjustments_stand_beside_a_line_at_chance(adjustments):
    rows = probes()["finetuning_probes"]
    rows = rows[rows["adjustment"].isin(adjustments)]
    drawing = drawn_tuned("probe_scores", {"finetuning_probes": rows})
    names = [text.get_text() for text in drawing.figure.legends[0].get_texts()]
    assert names.count("chance") == 1
    assert len({*names}) == len(names) == 1 + 2 * (len(adjustments) - 1)
    for axes in drawing.figure.axes[:2]:
        level = [line for line in axes.get_lines() if line.get_transform() != axes.transData]
        assert [line.get_ydata()[0] for line in level] == [0.5]


def probes():
    """Scores by (model, step, fitted on) that tell where each comes from."""
    kinds = [("none", np.nan, np.nan, "nothing")]
    for fitted_on in ("training", "each split"):
        kinds += [("without_directions", 1, k, fitted_on) for k in (0, 1, 8)]
    rows = [
        (
            *at(name, step),
            3,
            *kind,
            500,
            0,
            -3.0,
            0.1,
            "accuracy",
            0.5 + number / 100 + step / 50,
            0.5,
        )
        for name in NAMES
        for step in (0, 16)
        for number, kind in enumerate(kinds)
    ]
    return table("finetuning_probes", rows)


def test_the_table_has_every_adjustment_before_and_after():
    named = zip(NAMES, FAMILIES, strict=True)
    entries = [{"name": name, "family": family, "model": name} for name, family in named]
    means, markdown = adjustments(entries, probes())
    assert len(means) == 2 * 7
    first = means.query("family == 'A' and adjustment == 'none'").iloc[0]
    assert first[["score_before", "score_after", "seeds"]].tolist() == pytest.approx([0.5, 0.82, 2])
    assert "| A | zero mean, without 8 directions | 0.530 | 0.850 |" in markdown
