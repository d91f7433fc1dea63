"""Tidy tables for the tests of figures: seeded numbers of plausible size, not measurements."""

import random
from importlib import import_module
from io import StringIO
from pathlib import Path
from statistics import fmean

import pandas as pd

from shape_of_learning.checkpoints.verdict import COLUMNS as VERDICT_HEADER
from shape_of_learning.figures.inputs import FigureInputs, read_tables
from shape_of_learning.figures.job import DrawnMeasure, DrawnModel
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.style import use_theme
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS

HEADER = list(ESTIMATE_COLUMNS)
# The columns of a CSV along both axes of its figure.
BY_DEPTH, BY_LAYER, BY_STEP = (((name,), ("value",)) for name in ("depth", "layer", "step"))
ALL = ("anisotropy", "anisotropy_uncentered", "average_cosine", "average_cosine_centered")
ALL += ("two_nn", "mada", "mom")
QUANTITIES = dict(zip(ALL, ["Anisotropy"] * 2 + ["Average cosine"] * 2, strict=False))
LABELS = {"anisotropy": "Anisotropy", "two_nn": "TwoNN", "mada": "MADA", "mom": "MOM"}
NO_INTERVAL = {"standard_error": "", "low": "", "high": ""}


def rows_of_model(model, *, role="decoder", layers=3, steps=(None,), estimators=ALL, n=4096):
    """Rows of one model as dictionaries: every layer and estimator, and the averages over layers 1 to L."""
    numbers = random.Random(f"{model} {steps}")
    rows = []
    for step in steps:
        checkpoint = {"model": model, "role": role, "revision": "main", "step": "", "tokens": ""}
        if step is not None:
            checkpoint |= {"revision": f"step{step}", "step": step, "tokens": step * 2048}
        for estimator in estimators:
            top = 40 if estimator in ALL[4:] else 1
            common = checkpoint | {
                **{"estimator": estimator, "selection": "all", "windows": 128},
                **{"n": n, "n_unique": n, "batch_sd": top / 100},
                "near_duplicates": 0.01 if estimator in ALL[4:] else "",
                **{"suspect": "no", "reason": ""},
            }
            values = [numbers.uniform(top / 4, top) for _ in range(layers + 1)]
            places = [{"layer": i, "depth": i / layers} for i in range(layers + 1)]
            for place, value in zip(places, values, strict=True):
                rows.append(common | place | with_interval(value, top / 50))
            over = {"layer": "", "depth": ""}
            rows.append(common | over | with_interval(fmean(values[1:]), top / 90))
    return rows


def with_interval(value, error):
    """The columns of a value and its interval."""
    half = 2.131 * error
    return {"value": value, "standard_error": error, "low": value - half, "high": value + half}


SUSPECT = {"suspect": "yes", "reason": "copies"}


def undefined(row):
    """A row without a value."""
    return row | NO_INTERVAL | {"value": "", "batch_sd": ""}


def verdicts_on(model, steps, flagged=None, *, losses=None, vocabulary=100):
    """Verdicts on one model's checkpoints, ``ok`` and shown but for `flagged`.

    `flagged` has a step's (verdict, shown), `losses` its loss where that is not 2.
    """
    rows, counts = [], {"predicted_tokens": 1000, "vocabulary": vocabulary}
    for step in steps:
        verdict, shown = (flagged or {}).get(step, ("ok", "yes"))
        checkpoint = {
            "model": model,
            "revision": f"step{step}",
            "step": step,
            "tokens": step * 2048,
        }
        judged = {"loss": (losses or {}).get(step, 2.0), "verdict": verdict, "shown": shown}
        judged["short_verdict"] = verdict
        rows.append(checkpoint | counts | judged)
    return rows


def write_rows(path: Path, rows, header=HEADER) -> Path:
    pd.DataFrame(rows, columns=header).to_csv(path, index=False)
    return path


def models_named(names, labels=(), families=(), role="decoder"):
    """Models of a figure at ``main``, labelled by their names and each its own family if not said."""
    named = zip(names, labels or names, families or names, strict=True)
    return [DrawnModel(*model, role, "main") for model in named]


def measures_named(*names):
    """Measures of a figure."""
    return [
        DrawnMeasure(
            name,
            LABELS.get(name, name),
            QUANTITIES.get(name, "Intrinsic dimension"),
            begins_at_zero=name not in ALL[4:],
        )
        for name in names
    ]


def table_of(kind, rows, header):
    """Rows as a figure reads them from a file."""
    return read_tables({kind: [StringIO(pd.DataFrame(rows, columns=header).to_csv(index=False))]})


def inputs_of(models, *measures, rows=(), verdicts=None, **tables) -> FigureInputs:
    """What a figure is given; models and measures by name or as they are. Without verdicts all is `ok`."""
    if verdicts is None and any(row["step"] != "" for row in rows):
        steps = {(row["model"], row["step"]): row for row in rows}
        verdicts = [each for model, step in steps for each in verdicts_on(model, [step])]
    for kind, of_kind, header in (
        ("estimates", rows, HEADER),
        ("verdicts", verdicts, VERDICT_HEADER),
    ):
        tables |= table_of(kind, of_kind, header) if of_kind else {}
    models = models_named(models) if isinstance(models[0], str) else models
    if measures and isinstance(measures[0], str):
        measures = measures_named(*measures)
    return FigureInputs(models, measures, "Protocol.", tables)


def draw(function: str, inputs: FigureInputs, **options) -> Drawing:
    """Draw with ``module:function``, of papers or of :mod:`shape_of_learning.figures`."""
    module, _, name = function.partition(":")
    package = "" if module.startswith("papers.") else "shape_of_learning.figures."
    with use_theme():
        drawing = getattr(import_module(package + module), name)(inputs, **options)
        drawing.figure.draw_without_rendering()
    return drawing


def words_of(drawing: Drawing) -> str:
    """The caption, and what stands below the panels."""
    notes = [text.get_text() for text in drawing.figure.texts if text.get_gid() == "footnote"]
    return " ".join(" ".join([drawing.caption, *notes]).split())


def words_of_legends(drawing: Drawing) -> list[str]:
    """The names in all legends of a figure."""
    return [text.get_text() for legend in drawing.figure.legends for text in legend.get_texts()]


def named_lines(drawing: Drawing, panel=0):
    """The lines of a panel by their labels, without those that are no curves."""
    lines = drawing.figure.axes[panel].get_lines()
    return {line.get_label(): line for line in lines if line.get_label()[0] != "_"}


def lines_labelled(drawing: Drawing, label, panel=0):
    """Those that are no curves: such as marks of suspect points."""
    return [line for line in drawing.figure.axes[panel].get_lines() if line.get_label() == label]
