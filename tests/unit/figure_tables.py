"""Tidy tables for the tests of figures: seeded numbers of plausible size, not measurements."""

import csv
import random
from pathlib import Path

from shape_of_learning.figures.verdicts import COLUMNS as VERDICT_COLUMNS
from shape_of_learning.metrics.measurements import COLUMNS

HEADER = list(COLUMNS)
VERDICT_HEADER = list(VERDICT_COLUMNS)
ALL = ("anisotropy", "anisotropy_uncentered", "average_cosine", "average_cosine_centered")
ALL += ("two_nn", "mada", "mom")


def rows_of_model(model, *, role="decoder", layers=3, steps=(None,), estimators=ALL, n=4096):
    """Rows of one model as dictionaries; three batches of every layer and estimator."""
    numbers = random.Random(f"{model} {steps}")
    return [
        {
            "model": model,
            "role": role,
            "revision": "main" if step is None else f"step{step}",
            "step": "" if step is None else step,
            "tokens": "" if step is None else step * 2048,
            "layer": layer,
            "depth": layer / layers,
            "estimator": estimator,
            "batch": batch,
            "n": n,
            "n_unique": n,
            "value": numbers.uniform(10, 40) if estimator in ALL[4:] else numbers.uniform(0, 1),
        }
        for step in steps
        for layer in range(layers + 1)
        for estimator in estimators
        for batch in range(3)
    ]


def verdicts_on(model, steps, flagged=None, *, losses=None, vocabulary=100):
    """Verdicts on one model's checkpoints, ``ok`` and shown but for `flagged`.

    `flagged` has a step's (verdict, shown), `losses` its loss where that is not 2.
    """
    flagged, losses = flagged or {}, losses or {}
    return [
        {
            "model": model,
            "revision": f"step{step}",
            "step": step,
            "tokens": step * 2048,
            "loss": losses.get(step, 2.0),
            "predicted_tokens": 1000,
            "vocabulary": vocabulary,
        }
        | dict(zip(("verdict", "shown"), flagged.get(step, ("ok", "yes")), strict=True))
        for step in steps
    ]


def write_verdicts(path: Path, rows) -> Path:
    return write_rows(path, rows, VERDICT_HEADER)


def write_rows(path: Path, rows, header=HEADER) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, header, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def read_csv(path: Path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
