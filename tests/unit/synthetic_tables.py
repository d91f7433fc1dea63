"""Tables of the papers' size whose numbers are made up, for docs/write_gallery.py."""

from collections.abc import Iterable, Iterator, Sequence
from zlib import crc32

import numpy as np
import pandas as pd

from papers.linear.changed_blocks import KINDS, ORDERS
from shape_of_learning.blocks.fit import FIT_ERROR_COLUMNS
from shape_of_learning.checkpoints.verdict_table import COLUMNS as VERDICT_COLUMNS
from shape_of_learning.claims.choices import ClaimChoices, specifications
from shape_of_learning.claims.judging import (
    CONTRADICTED,
    NOT_MEASURED,
    SUPPORTED,
    UNDECIDED,
    Judgement,
)
from shape_of_learning.claims.specifications import Specified
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

# Of Pythia, the longest training: step 0, powers of two to 512, every thousandth to 143,000.
LONGEST = (0, *(2**i for i in range(10)), *range(1000, 144_000, 1000))
TOKENS = 2_097_152  # of a batch, where an entry does not say it
ADJUSTMENTS = [
    ("none", np.nan, np.nan, "nothing"),
    *(("without_directions", 1, k, "training") for k in (0, 1, 2, 4, 8, 12, 16, 24, 32)),
    *(("only_directions", 1, k, "training") for k in (1, 2, 4, 8, 12, 16, 24, 32)),
    *(("cluster_based", 27, k, "training") for k in (0, 12)),
]


def steps_of(model: Model) -> list[tuple[int, int]]:
    """Steps and tokens of a model."""
    if model.family == "Pythia":
        return [(step, step * TOKENS) for step in LONGEST]
    known = [each for each in model.checkpoints if each.step is not None]
    return [(each.step, each.tokens or each.step * TOKENS) for each in known] or [
        (1000, 1000 * TOKENS)
    ]


def estimates(models: Iterable[Model], measures: Iterable[Measure], last: bool) -> pd.DataFrame:
    """Rows of every layer and the averages over layers; `last`: of the last checkpoint only."""
    measures, rows = list(measures), []
    for model in models:
        layers = model.shape.layers or 24
        for step, tokens in steps_of(model)[-1 if last else 0 :]:
            for measure in (each for each in measures if each.family != "weights"):
                numbers = _numbers(model.name, measure.name, step)
                places = np.arange(measure.first_layer, layers + 1)
                late = np.log1p(step) / np.log1p(steps_of(model)[-1][0])
                values = _shape(model, measure, places / layers, late)
                values = values * (1 + 0.02 * numbers.standard_normal(len(places)))
                if measure.name == "mada" and step in (4000, 300_000):
                    values[layers // 2 :] = np.nan
                is_early = measure.suspect_above is not None and 0 < late < 0.3
                near = np.where(is_early & (places < layers / 3), 0.3, 0.01)
                average = np.nanmean(values)
                for place, value, share in [
                    *zip(places, values, near, strict=True),
                    (None, average, 0),
                ]:
                    error = 0.03 * abs(value) if measure.interval or place is None else np.nan
                    at = (pd.NA, np.nan) if place is None else (place, place / layers)
                    whose = (model.name, model.shape.role, f"step{step}", step, tokens, *at)
                    bounds = (value - 2.131 * error, value + 2.131 * error)
                    deviation = (
                        np.nan if measure.first_layer else 0.1 * abs(value)
                    )  # blocks have no batches
                    counts = (deviation, 4096.0, 4090.0, share, 128)
                    of_layers = len(places) if place is None else 1
                    rows.append(
                        (*whose, measure.name, "all", value, error, *bounds, *counts, of_layers)
                    )
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
            rows.append(
                (model.name, f"step{step}", step, tokens, loss, 14_000, 50_000 + number, *verdict)
            )
    return _typed(rows, VERDICT_COLUMNS)


def _typed(rows: Sequence[tuple], columns: Sequence[str]) -> pd.DataFrame:
    """A table with the types that a figure reads."""
    table = pd.DataFrame(rows, columns=[*columns])
    return table.astype({name: kind for name, kind in TYPES.items() if name in table})


def judged(of: ClaimChoices) -> list[Specified]:
    """Judgements of a claim: an effect of each option, a bound of 0.05, here and there nothing measured."""
    found = []
    for number, each in enumerate(specifications(of.choices)):
        effects = [_numbers(*option).normal(0.02, 0.05) for option in each.items()]
        estimate = 0.2 + sum(effects) + 0.02 * _numbers(number).standard_normal()
        reach = 0.03 + 0.02 * _numbers(number, "reach").random()
        verdict = UNDECIDED
        if abs(estimate - 0.05) > reach:
            verdict = SUPPORTED if estimate > 0.05 else CONTRADICTED
        numbers = (estimate, estimate - reach, estimate + reach, reach)
        if number % 50 == 49:
            verdict, numbers = NOT_MEASURED, (np.nan,) * 4
        found.append(Specified(each, Judgement(verdict, "made up", *numbers, n=("4096",))))
    return found


def further(kind: str, models: Sequence[Model], measures: Sequence[Measure]) -> pd.DataFrame:
    """A table that a figure `reads` besides."""
    columns, make = _FURTHER[kind]
    rows = [row for model in models for row in make(model, measures)]
    return pd.DataFrame(rows, columns=columns)


def _numbers(*names: object) -> np.random.Generator:
    return np.random.default_rng(crc32(repr(names).encode()))


def _shape(model: Model, measure: Measure, depth: np.ndarray, late: float) -> np.ndarray:
    """A bell over depth that grows with training, at a level of the model's own."""
    own = _numbers(model.name, measure.axis).uniform(0.6, 1.2)
    bell = np.exp(-(((depth - _numbers(model.family).uniform(0.35, 0.65)) / 0.28) ** 2))
    if measure.axis == "Intrinsic dimension":
        return own * (8 + 20 * np.sin(np.pi * late**0.8) * (0.5 + bell) + 4 * late)
    if measure.axis == "ln I":
        return -12 * own * late * (0.3 + bell)
    if measure.name == "average_cosine_centered":
        return 0.001 * own * np.sin(9 * depth)
    height = 0.75 * late if model.shape.role == "decoder" else 0.15
    return np.clip(own * (0.1 + height * bell), 0, 0.99)


def _edits(model: Model, _: object) -> Iterator[tuple]:
    layers = model.shape.layers or 24
    for order in ORDERS:
        for place, kind in enumerate(KINDS):
            for k in range(0, layers + 1 if order == "alone" else 13):
                blocks = str(k) if order == "alone" else ""
                count = min(k, 1) if order == "alone" else k
                loss = 2.5 + 0.5 * count / (1 + 2 * place) + 0.1 * _numbers(order, kind, k).random()
                if order != "alone" or k:
                    yield (
                        model.name,
                        "main",
                        order,
                        blocks,
                        kind,
                        count,
                        60_000,
                        loss,
                        np.exp(loss),
                        7e9,
                    )


def _fit_errors(model: Model, _: object) -> Iterator[tuple]:
    for block in range(1, (model.shape.layers or 24) + 1):
        quantiles = 0.003 * np.exp(np.linspace(-1.2, 1.5, 8) + 0.4 * np.sin(block / 4))
        worst = 0.05 + 0.1 * _numbers(block).random()
        yield (
            model.name,
            "main",
            block,
            block / (model.shape.layers or 24),
            70_000,
            0.98,
            worst,
            *quantiles,
        )


def _training(model: Model, _: object) -> Iterator[tuple]:
    source, empty = model, dict.fromkeys(TRAINING_COLUMNS)
    facts = {"model": model.name, "step": 1000, "revision": "step1000"}
    if model.kind == "pretraining":
        recipe = {
            key: source.recipe.get(key) for key in ("twin_of", "regulariser", "strength", "seed")
        }
        facts |= {**recipe, "held_out_loss": 3 + 0.2 * _numbers(model.name).random()}
    if model.kind == "finetuning":
        origin, recipe = source.origin.name, source.recipe
        facts |= {"origin": origin, "task": recipe["task"], "seed": recipe["seed"], "score": 0.9}
    yield tuple((empty | facts).values())


def _weights(model: Model, measures: Sequence[Measure], last: bool = False) -> Iterator[tuple]:
    for step, tokens in steps_of(model)[-1 if last else 0 :]:
        late = np.log1p(step) / np.log1p(steps_of(model)[-1][0])
        for matrix in (
            ("tied",) if model.family in ("BERT", "GPT-2", "BLOOM") else ("input", "output")
        ):
            for measure in measures:
                own = _numbers(model.name, matrix, measure.name).uniform(0.3, 1.5)
                value = (own if measure.matrix else -own * (0.1 + late)) * (1 + late)
                name = measure.matrix or matrix
                if not measure.matrix or matrix != "output":
                    at = (model.name, model.shape.role, f"step{step}", step, tokens)
                    yield *at, name, measure.name, 50_000, 2048, value


def _points(model: Model, _: object) -> Iterator[tuple]:
    steps = steps_of(model)
    for step, tokens in (steps[0], steps[len(steps) // 2], steps[-1]):
        for matrix in ("input", "output"):
            for centered in ("no", "yes"):
                cloud = _numbers(model.name, step, matrix).standard_normal((8000, 2)) * (2, 0.7)
                cloud += (0, 0) if centered == "yes" else (4, 0)
                for entry, (x, y) in enumerate(cloud):
                    at = (model.name, model.shape.role, f"step{step}", step, tokens)
                    yield *at, matrix, centered, entry, x, y


def _task_rows(kind: str, model: Model) -> Iterator[tuple]:
    layers, task = 12, model.name.rsplit("-", 2)[1]
    for step in (0, 16, 64, 256, 656):
        numbers, late = _numbers(model.name, kind, step), np.log1p(step) / 7
        at = (model.name, f"step{step}", step, f"{task}/held_out")
        for layer in range(layers + 1):
            if kind == "finetuning_layers":
                for name in (
                    "log_partition_isotropy",
                    "average_cosine",
                    "top_1_share",
                    "top_10_share",
                ):
                    share = (0.2 + 0.5 * late * layer / layers) * numbers.uniform(0.9, 1.1)
                    yield *at, layer, name, 21_000, -9 * share if name[0] == "l" else share
            elif kind == "finetuning_spectra":
                for place in range(1, 65):
                    yield *at, layer, 21_000, 0.02, 30.0, place, (3 + 6 * late) / place**1.3
            elif kind == "finetuning_structure":
                for quantity in ("share_between_token_types", "share_between_frequency_bands"):
                    yield (
                        *at,
                        layer,
                        quantity,
                        np.nan,
                        21_000,
                        0.7 - 0.4 * layer / layers * (0.5 + late),
                    )
        if kind == "finetuning_structure":
            for clusters in (1, 3, 9, 15, 21, 27):
                yield (
                    *at,
                    layers,
                    "log_partition_isotropy",
                    clusters,
                    21_000,
                    -9 / (1 + clusters**0.5) - late,
                )
        if kind == "finetuning_probes":
            metric = "spearman" if task == "stsb" else "accuracy"
            for adjustment in ADJUSTMENTS:
                score = 0.75 + 0.1 * late + 0.03 * numbers.random()
                yield *at, layers, *adjustment, 21_000, 0, -3.0, 0.1, metric, score


_FURTHER = {
    "edits": (
        [
            *("model", "revision", "order", "blocks", "kind", "k"),
            *("predicted_tokens", "loss", "perplexity", "parameters"),
        ],
        _edits,
    ),
    "fit_errors": ([*FIT_ERROR_COLUMNS], _fit_errors),
    "training": ([*TRAINING_COLUMNS], _training),
    "weights": ([*WEIGHT_COLUMNS], _weights),
    "last_weights": (
        [*WEIGHT_COLUMNS],
        lambda model, measures: _weights(model, measures, last=True),
    ),
    "weight_points": ([*WEIGHT_POINT_COLUMNS], _points),
} | {
    kind: ([*CHECKPOINT, *columns], lambda model, _, kind=kind: _task_rows(kind, model))
    for kind, columns in TABLES.items()
}
