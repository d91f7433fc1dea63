"""Tables of a run whose numbers are made up."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from zlib import crc32

import numpy as np
import pandas as pd

from papers.linear.changed_blocks import KINDS, ORDERS
from shape_of_learning.blocks.maps import FIT_ERROR_COLUMNS
from shape_of_learning.checkpoints.verdict_table import COLUMNS as VERDICT_COLUMNS
from shape_of_learning.figures.inputs import KINDS as TYPES
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.table_columns import (
    ESTIMATE_COLUMNS,
    WEIGHT_COLUMNS,
    WEIGHT_POINT_COLUMNS,
)
from shape_of_learning.plan.models import Model
from shape_of_learning.tasks.task_tables import CHECKPOINT, TABLES
from shape_of_learning.training.train import TRAINING_COLUMNS

TASK_LAYERS = 12
EDITS = (
    *("model", "revision", "order", "blocks", "kind", "k"),
    *("predicted_tokens", "loss", "perplexity", "parameters"),
)
ADJUSTMENTS = [
    ("none", np.nan, np.nan, "nothing"),
    *(("without_directions", 1, k, "training") for k in (0, 1, 2, 4, 8, 12, 16, 24, 32)),
    *(("only_directions", 1, k, "training") for k in (1, 2, 4, 8, 12, 16, 24, 32)),
    *(("cluster_based", 27, k, "training") for k in (0, 12)),
]


def steps_of(model: Model) -> list[tuple[int, int]]:
    """Steps and tokens of a model."""
    known = [each for each in model.checkpoints if each.step is not None]
    return [(each.step, each.tokens or 2048 * each.step) for each in known] or [(1000, 2_048_000)]


def estimates(models: Iterable[Model], measures: Iterable[Measure], last: bool) -> pd.DataFrame:
    """Rows of every layer and the averages over layers; `last`: of the last checkpoint only."""
    rows = []
    for model, measure in product(models, [m for m in measures if m.family != "weights"]):
        layers = model.shape.layers or 24
        for number, (step, tokens) in enumerate(steps_of(model)[-1 if last else 0 :]):
            places = np.arange(measure.first_layer, layers + 1)
            values = _numbers(model.name, measure.name, step).uniform(0.1, 0.9, len(places))
            if measure.name == "mada" and number == 3:
                values[layers // 2 :] = np.nan
            is_suspect = measure.suspect_above is not None and number == 1
            near = np.where(is_suspect & (places < layers / 3), 0.3, 0.01)
            own = [*zip(places, places / layers, values, near, strict=True)]
            for place, depth, value, share in [*own, (pd.NA, np.nan, np.nanmean(values), 0)]:
                error = 0.03 * value if measure.interval or place is pd.NA else np.nan
                deviation = np.nan if measure.first_layer else 0.1 * value  # blocks have no batches
                of_layers = len(places) if place is pd.NA else 1
                at = (model.name, model.shape.role, f"step{step}", step, tokens, place, depth)
                numbers = (value, error, value - 2 * error, value + 2 * error, deviation)
                counts = (4096.0, 4090.0, share, 128, of_layers)
                rows.append((*at, measure.name, "all", *numbers, *counts))
    return _typed(rows, ESTIMATE_COLUMNS)


def verdicts(models: Sequence[Model]) -> pd.DataFrame:
    """Losses that fall; of every third model a step is left out as broken, of another it is hollow."""
    rows = []
    for number, model in enumerate(models):
        for place, (step, tokens) in enumerate(steps_of(model)):
            loss = 2.3 + 0.1 * (number % 7) + 8.5 * np.exp(-np.log1p(step) / 3)
            verdict = ("ok", "yes")
            if place == 5 and not number % 3:
                verdict, loss = ("broken: perplexity of 320322", "no"), 12.7
            if place == 7 and number % 3 == 1:
                verdict = ("mixed shards", "hollow")
            counts = (14_000, 50_000 + number)
            rows.append((model.name, f"step{step}", step, tokens, loss, *counts, *verdict))
    return _typed(rows, VERDICT_COLUMNS)


def _typed(rows: Sequence[tuple], columns: Sequence[str]) -> pd.DataFrame:
    """A table with the types that a figure reads."""
    table = pd.DataFrame(rows, columns=[*columns])
    return table.astype({name: kind for name, kind in TYPES.items() if name in table})


def further(kind: str, models: Sequence[Model], measures: Sequence[Measure]) -> pd.DataFrame:
    """A table that a figure `reads` besides."""
    if kind in TABLES:
        rows = [row for model in models for row in _task_rows(kind, model)]
        return pd.DataFrame(rows, columns=[*CHECKPOINT, *TABLES[kind]])
    columns, make = _FURTHER[kind]
    rows = [row for model in models for row in make(model, measures)]
    return pd.DataFrame(rows, columns=[*columns])


def _numbers(*names: object) -> np.random.Generator:
    return np.random.default_rng(crc32(repr(names).encode()))


def _edits(model: Model, _: object) -> Iterator[tuple]:
    layers = model.shape.layers or 24
    for order, kind in product(ORDERS, KINDS):
        alone = order == "alone"
        for k in range(alone, layers + 1 if alone else 13):
            loss = 2.5 + _numbers(order, kind, k).random()
            count = (str(k), kind, 1) if alone else ("", kind, k)
            yield model.name, "main", order, *count, 60_000, loss, np.exp(loss), 7e9


def _fit_errors(model: Model, _: object) -> Iterator[tuple]:
    layers = model.shape.layers or 24
    for block in range(1, layers + 1):
        worst, *quantiles = np.sort(_numbers(block).uniform(0.001, 0.1, 9))
        yield model.name, "main", block, block / layers, 70_000, 0.98, worst, *quantiles


def _training(model: Model, _: object) -> Iterator[tuple]:
    facts = {"model": model.name, "step": 1000, "revision": "step1000", **model.recipe}
    if model.kind == "pretraining":
        facts["held_out_loss"] = 3 + 0.2 * _numbers(model.name).random()
    if model.kind == "finetuning":
        facts |= {"origin": model.origin.name, "score": 0.9}
    yield tuple(facts.get(name) for name in TRAINING_COLUMNS)


def _weights(model: Model, measures: Sequence[Measure], first: int = 0) -> Iterator[tuple]:
    for step, tokens in steps_of(model)[first:]:
        at = (model.name, model.shape.role, f"step{step}", step, tokens)
        for matrix, measure in product(("input", "output"), measures):
            if not measure.matrix or matrix != "output":
                value = _numbers(model.name, matrix, measure.name, step).uniform(-2, -0.1)
                value = abs(value) if measure.matrix else value
                yield *at, measure.matrix or matrix, measure.name, 50_000, 2048, value


def _points(model: Model, _: object) -> Iterator[tuple]:
    steps = steps_of(model)
    ends = (steps[0], steps[len(steps) // 2], steps[-1])
    for (step, tokens), matrix, centered in product(ends, ("input", "output"), ("no", "yes")):
        at = (model.name, model.shape.role, f"step{step}", step, tokens, matrix, centered)
        cloud = _numbers(model.name, step, matrix).normal((4, 0), (2, 0.7), (8000, 2))
        yield from ((*at, entry, *point) for entry, point in enumerate(cloud))


def _task_rows(kind: str, model: Model) -> Iterator[tuple]:
    """Of the columns after those of the checkpoint."""
    task = model.name.rsplit("-", 2)[1]
    every = range(TASK_LAYERS + 1)
    names = ("log_partition_isotropy", "average_cosine", "top_1_share", "top_10_share")
    shares = ("share_between_token_types", "share_between_frequency_bands")
    for step in (0, 16, 64, 256, 656):
        random = _numbers(model.name, kind, step).random
        rows = {
            "finetuning_layers": [(at, name, 21_000, random()) for at in every for name in names],
            "finetuning_spectra": [
                (at, 21_000, 0.02, 30.0, place, 9 / (place + random()))
                for at in every
                for place in range(1, 65)
            ],
            "finetuning_structure": [
                *((at, share, np.nan, 21_000, random()) for at in every for share in shares),
                *((TASK_LAYERS, names[0], k, 21_000, -9 * random()) for k in (1, 3, 9, 15, 21, 27)),
            ],
            "finetuning_probes": [
                (TASK_LAYERS, *adjustment, 21_000, 0, -3.0, 0.1, "accuracy", random())
                for adjustment in ADJUSTMENTS
            ],
        }
        at = (model.name, f"step{step}", step, f"{task}/held_out")
        yield from ((*at, *row) for row in rows[kind])


_FURTHER = {
    "edits": (EDITS, _edits),
    "fit_errors": (FIT_ERROR_COLUMNS, _fit_errors),
    "training": (TRAINING_COLUMNS, _training),
    "weights": (WEIGHT_COLUMNS, _weights),
    "last_weights": (WEIGHT_COLUMNS, lambda model, measures: _weights(model, measures, -1)),
    "weight_points": (WEIGHT_POINT_COLUMNS, _points),
}
