"""Figures and a table of fine-tunings: values over seeds, spectra and probes."""

import numpy as np
import pandas as pd
import pytest

import figure_tables as made
from papers.finetuning.columns import TASK_COLUMNS
from papers.finetuning.figures import adjustments

NAMES, FAMILIES = ["a0", "a1", "b0"], ["A", "A", "B"]


def make_table(kind, rows):
    return {kind: pd.DataFrame(rows, columns=[*TASK_COLUMNS[kind]])}


def draw_tuned(function, tables, names=NAMES, families=FAMILIES, **options):
    inputs = made.make_inputs(made.make_models(names, families=families), **tables)
    return made.draw(f"papers.finetuning.figures:{function}", inputs, **options)


def identify(model, step):
    return model, f"step{step}", step, "topic/held_out"


def test_values_are_means_over_the_seeds_of_a_family_with_bands_of_their_range():
    values = {"a0": 1.0, "a1": 3.0, "b0": 7.0}
    rows = [
        (*identify(name, step), layer, "average_cosine", 500, value + step + layer)
        for name, value in values.items()
        for step in (0, 16)
        for layer in (0, 1)
    ]
    drawing = draw_tuned("isotropy_by_layer", make_table("finetuning_layers", rows))
    values_by_family = drawing.table.query("step == 16 and layer == 1").set_index("family")
    assert values_by_family.loc["A", ["value", "low", "high", "seeds"]].tolist() == [19, 18, 20, 2]
    assert values_by_family.loc["b0", "value"] == 24  # the only model of a family keeps its label
    assert values_by_family.loc["b0", ["low", "high"]].isna().all()


def make_spectra(scales, values=(30.0, 9.0, 6.0, 4.0)):
    """Make the table of a space whose variances are scaled at each step, and the table of layers."""
    rows = [
        (*identify("m", step), 0, 500, scale, 9.0, place, value * scale)
        for step, scale in scales.items()
        for place, value in enumerate(values, start=1)
    ]
    shares = ("top_1_share", "top_10_share")
    layers = [(*identify("m", step), 0, share, 500, 0.5) for step in scales for share in shares]
    return make_table("finetuning_spectra", rows) | make_table("finetuning_layers", layers)


def test_elongated_directions_are_compared_with_the_median_of_the_start():
    drawing = draw_tuned("spectra", make_spectra({0: 1, 4: 2}), ["m"], ["M"])
    counts = drawing.table.query("estimator == 'elongated_directions'")
    assert counts.set_index("when")["value"].to_dict() == {"before": 1, "after": 3}
    capped_drawing = draw_tuned("spectra", make_spectra({0: 1, 4: 9}), ["m"], ["M"])
    assert "there may be more" in capped_drawing.caption


@pytest.mark.parametrize("rounding_error", [1e-14, 0.0, -1e-15])
def test_eigenvalues_that_are_rounding_errors_do_not_stretch_the_axis(rounding_error):
    values = (30.0, 9.0, 6.0, rounding_error)
    drawing = draw_tuned("spectra", make_spectra({0: 1, 4: 2}, values), ["m"], ["M"])
    low, high = drawing.figure.axes[0].get_ylim()
    assert 1 < low < 6 < 60 < high < 100
    assert "rounding" in made.read_words(drawing)
    whole = draw_tuned("spectra", make_spectra({0: 1, 4: 2}), ["m"], ["M"])
    assert "rounding" not in made.read_words(whole)


@pytest.mark.parametrize("adjustments", [["none", "without_directions"], ["none"]])
def test_probes_of_any_adjustments_stand_beside_a_line_at_chance(adjustments):
    rows = make_probes()["finetuning_probes"]
    rows = rows[rows["adjustment"].isin(adjustments)]
    drawing = draw_tuned("probe_scores", {"finetuning_probes": rows})
    names = [text.get_text() for text in drawing.figure.legends[0].get_texts()]
    assert names.count("chance") == 1
    assert len({*names}) == len(names) == 1 + 2 * (len(adjustments) - 1)
    for axes in drawing.figure.axes[:2]:
        level = [line for line in axes.get_lines() if line.get_transform() != axes.transData]
        assert [line.get_ydata()[0] for line in level] == [0.5]


def test_accuracies_of_one_seed_have_the_interval_of_a_share_of_the_texts():
    rows = make_probes()["finetuning_probes"]
    drawing = draw_tuned("probe_scores", {"finetuning_probes": rows[rows["model"] == NAMES[0]]})
    table = drawing.table
    # The ends are the shares p for which the score is 1.96 standard errors of p away.
    for end in ("low", "high"):
        error = np.sqrt(table[end] * (1 - table[end]) / table["examples"])
        assert (table["value"] - table[end]).abs().tolist() == pytest.approx(
            (1.96 * error).tolist(), rel=1e-3
        )
    assert "100 texts" in made.read_words(drawing)


def make_probes():
    """Make scores that differ by adjustment and step."""
    kinds = [("none", np.nan, np.nan, "nothing")]
    for fitted_on in ("training", "each split"):
        kinds += [("without_directions", 1, k, fitted_on) for k in (0, 1, 8)]
    rows = [
        (
            *identify(name, step),
            3,
            *kind,
            500,
            0,
            -3.0,
            0.1,
            "accuracy",
            100,
            0.5 + number / 100 + step / 50,
            0.5,
        )
        for name in NAMES
        for step in (0, 16)
        for number, kind in enumerate(kinds)
    ]
    return make_table("finetuning_probes", rows)


def test_the_table_has_every_adjustment_before_and_after():
    names_and_families = zip(NAMES, FAMILIES, strict=True)
    entries = [
        {"name": name, "family": family, "model": name} for name, family in names_and_families
    ]
    means, markdown = adjustments(entries, make_probes())
    assert len(means) == 2 * 7
    first = means.query("family == 'A' and adjustment == 'none'").iloc[0]
    assert first[["score_before", "score_after", "seeds"]].tolist() == pytest.approx([0.5, 0.82, 2])
    assert "| A | zero mean, without 8 directions | 0.530 | 0.850 |" in markdown
