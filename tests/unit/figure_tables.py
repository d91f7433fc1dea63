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


def make_model_rows(model, *, role="decoder", layers=3, steps=(None,), estimators=ALL, n=4096):
    """Return rows of a model as dictionaries: each layer and estimator, and the averages over layers 1 to L."""
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
                rows.append(common | place | make_interval(value, top / 50))
            mean_place = {"layer": "", "depth": ""}
            rows.append(common | mean_place | make_interval(fmean(values[1:]), top / 90))
    return rows


def make_interval(value, error):
    """Return the columns of a value and its interval."""
    half = 2.131 * error
    return {"value": value, "standard_error": error, "low": value - half, "high": value + half}


SUSPECT = {"suspect": "yes", "reason": "copies"}


def clear_value(row):
    """Return a row without its value."""
    return row | NO_INTERVAL | {"value": "", "batch_sd": ""}


def make_verdicts(model, steps, faults=None, *, losses=None, vocabulary=100):
    """Return verdicts on the checkpoints of a model, ``ok`` and shown except for `faults`.

    `faults` maps a step to (verdict, shown), `losses` a step to its loss, by default 2.
    """
    rows = []
    counts = {"predicted_tokens": 1000, "vocabulary": vocabulary}
    for step in steps:
        verdict, is_shown = (faults or {}).get(step, ("ok", "yes"))
        checkpoint = {
            "model": model,
            "revision": f"step{step}",
            "step": step,
            "tokens": step * 2048,
        }
        judgement = {"loss": (losses or {}).get(step, 2.0), "verdict": verdict, "shown": is_shown}
        judgement["short_verdict"] = verdict
        rows.append(checkpoint | counts | judgement)
    return rows


def write_rows(path: Path, rows, header=HEADER) -> Path:
    pd.DataFrame(rows, columns=header).to_csv(path, index=False)
    return path


def make_models(names, labels=(), families=(), role="decoder"):
    """Return models of a figure at ``main``; label and family are by default the name."""
    models = zip(names, labels or names, families or names, strict=True)
    return [DrawnModel(*model, role, "main") for model in models]


def make_measures(*names):
    """Return measures of a figure."""
    return [
        DrawnMeasure(
            name,
            LABELS.get(name, name),
            QUANTITIES.get(name, "Intrinsic dimension"),
            begins_at_zero=name not in ALL[4:],
        )
        for name in names
    ]


def make_table(kind, rows, header):
    """Return rows as a figure reads them from a file."""
    return read_tables({kind: [StringIO(pd.DataFrame(rows, columns=header).to_csv(index=False))]})


def make_inputs(models, *measures, rows=(), verdicts=None, **tables) -> FigureInputs:
    """Return the inputs of a figure; models and measures may be names. Without verdicts all checkpoints are `ok`."""
    if verdicts is None and any(row["step"] != "" for row in rows):
        steps = {(row["model"], row["step"]): row for row in rows}
        verdicts = [verdict for model, step in steps for verdict in make_verdicts(model, [step])]
    for kind, kind_rows, header in (
        ("estimates", rows, HEADER),
        ("verdicts", verdicts, VERDICT_HEADER),
    ):
        tables |= make_table(kind, kind_rows, header) if kind_rows else {}
    models = make_models(models) if isinstance(models[0], str) else models
    if measures and isinstance(measures[0], str):
        measures = make_measures(*measures)
    return FigureInputs(models, measures, "Protocol.", tables)


def draw(function: str, inputs: FigureInputs, **options) -> Drawing:
    """Draw with ``module:function``, of papers or of :mod:`shape_of_learning.figures`."""
    module, _, name = function.partition(":")
    package = "" if module.startswith("papers.") else "shape_of_learning.figures."
    with use_theme():
        drawing = getattr(import_module(package + module), name)(inputs, **options)
        drawing.figure.draw_without_rendering()
    return drawing


def read_words(drawing: Drawing) -> str:
    """Return the caption and the notes below the panels."""
    notes = [text.get_text() for text in drawing.figure.texts if text.get_gid() == "footnote"]
    return " ".join(" ".join([drawing.caption, *notes]).split())


def read_legends(drawing: Drawing) -> list[str]:
    """Return the names in all legends of a figure."""
    return [text.get_text() for legend in drawing.figure.legends for text in legend.get_texts()]


def find_curves(drawing: Drawing, panel=0):
    """Return the curves of a panel by their labels, without other lines."""
    lines = drawing.figure.axes[panel].get_lines()
    return {line.get_label(): line for line in lines if line.get_label()[0] != "_"}


def find_lines(drawing: Drawing, label, panel=0):
    """Return the lines with a label, for example marks of suspect points."""
    return [line for line in drawing.figure.axes[panel].get_lines() if line.get_label() == label]
