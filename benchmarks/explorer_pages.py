"""A page of the explorer with made-up tables of the size of the largest run that it is for."""

from pathlib import Path

import numpy as np

from shape_of_learning.checkpoints.verdict_table import COLUMNS as VERDICT_COLUMNS
from shape_of_learning.explorer.curves import read_curves
from shape_of_learning.explorer.explorer_page import explorer_page
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.table_columns import ESTIMATE_COLUMNS
from shape_of_learning.storage.csv_table import write_table

# The steps of Pythia: powers of two, then every thousandth.
STEPS = [0, *(2**power for power in range(10)), *range(1000, 144_000, 1000)]
TOKENS_OF_A_STEP = 2_097_152
MODELS = {"small": "Pythia 410M", "middle": "Pythia 1.4B", "large": "Pythia 6.9B"}
BATCH = 4096


def write_tables(
    folder: Path, steps: int, layers: int, measures: list[str]
) -> tuple[Path, list[Path]]:
    """Write estimates with noise of plausible size, and verdicts; returns where they are."""
    rows, verdicts = [], []
    for number, model in enumerate(MODELS):
        for name in measures:
            rows += curve_rows(
                model, name, steps, layers, np.random.default_rng([number, len(name)])
            )
        judged = [
            [
                model,
                f"step{step}",
                step,
                step * TOKENS_OF_A_STEP,
                3.0,
                10_000,
                50_304,
                *verdict(step),
            ]
            for step in STEPS[:steps]
        ]
        verdicts.append(folder / f"{model}.csv")
        write_table(verdicts[-1], VERDICT_COLUMNS, judged)
    estimates = folder / "estimates.csv"
    write_table(estimates, ESTIMATE_COLUMNS, rows)
    return estimates, verdicts


def verdict(step: int) -> tuple[str, str]:
    """One of the checkpoints is not what it should be."""
    return ("same weights as step143000", "hollow") if step == 3000 else ("ok", "yes")


def curve_rows(
    model: str, name: str, steps: int, layers: int, noise: np.random.Generator
) -> list[list[object]]:
    """All checkpoints and layers of one measure, each with the average over layers."""
    depth = np.arange(layers) / (layers - 1)
    is_dimension = MEASURES[name].of == "neighbours"
    top, rows = (30 if is_dimension else 1), []
    for step in STEPS[:steps]:
        grown = np.log1p(step) / np.log1p(STEPS[-1])
        bell = np.exp(-(((depth - 0.5) / 0.25) ** 2)) * grown
        value = top * (0.1 + 0.6 * bell) * noise.normal(1, 0.02, layers)
        error = top * 0.01 * noise.uniform(0.5, 1.5, layers)
        share = noise.uniform(0, 0.12, layers)
        revision = [model, "decoder", f"step{step}", step, step * TOKENS_OF_A_STEP]
        cells = [*zip(range(layers), depth, value, error, share, strict=True)]
        cells.append((None, None, value[1:].mean(), error.mean() / 3, share.mean()))
        for layer, at, middle, spread, duplicates in cells:
            half = 2.131 * spread
            rows.append(
                [
                    *(
                        *revision,
                        layer,
                        at,
                        name,
                        "all",
                        middle,
                        spread,
                        middle - half,
                        middle + half,
                    ),
                    *(spread, BATCH, BATCH, duplicates if is_dimension else None, 128),
                ]
            )
    return rows


def write_page(
    output: Path, folder: Path, *, steps: int = len(STEPS), layers: int = 33, measures: int = 12
) -> None:
    """Write the page of such tables, which are written into `folder`."""
    chosen = list(MEASURES)[:measures]
    estimates, verdicts = write_tables(folder, steps, layers, chosen)
    curves = read_curves(estimates, verdicts, list(MODELS), chosen)
    entries = [MEASURES[name].chosen(name, {}) for name in chosen]
    keys = ("name", "label", "axis", "description", "suspect_above")
    description = {
        "models": [{"name": name, "label": label} for name, label in MODELS.items()],
        "measures": [{key: getattr(each, key) for key in keys} for each in entries],
        **{"papers": [], "claims": [], "notes": ["These numbers are made up."]},
        **{"checkpoints": curves.checkpoints, "series": curves.series},
    }
    output.write_text(explorer_page(description, curves.columns), encoding="utf-8")
