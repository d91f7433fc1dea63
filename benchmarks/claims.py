"""Measure how often each claim is decided at the published effect, and how often wrongly where it is false.

    python -m benchmarks.claims 300

prints the table of docs/explanation/statistics.md, a row for each claim. *Supported* is the share of simulations that
support the claim at the published effect (an approximate effect where a figure has no numbers), with the given standard
error of a layer. *Wrong* is the share that support it where its sentence is false and all models share a trend over the
layers or the steps: a saturating or a drifting trend. Where there is no correlation, each verdict on a correlation is
wrong. Saturating trends differ in speed, drifting trends in their wobble.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from shape_of_learning.claims.claim import Claim, ClaimVerdict, EvidenceModel
from shape_of_learning.claims.evidence import ClaimData, Evidence, LayerValues
from shape_of_learning.claims.judgement import decide, group_units, judge
from shape_of_learning.metrics.tidy import GROUPS
from shape_of_learning.plan.papers import read_papers

RUNS = 300
SHARED_SHARE = 0.5  # of the variance of a group's error, by layers, steps and models
LAYERS, BLOCKS, WIDTH = 8, 12, 40
STEPS = [50, 100, 200, 400, 800, 1600, 3200, 6400]
WARM_UP = 400
DECODERS, ENCODERS = ["d0", "d1", "d2", "d3"], ["e0", "e1", "e2"]
OPT_125M = [.979, .987, .995, .9951, .9948, .9934, .9914, .9887, .9834, .974, .960]  # fmt: skip
GROWTH, TOP = [.05, .1, .3, .45, .5, .52, .5, .5], [10, 14, 20, 30, 26, 24, 22, 20]  # fmt: skip
PHASES = [100, 80, 60, 70, 90, 85, 75, 70]
WOBBLE = 0.05  # of a drift, from step to step
OWN_TREND = 0.1  # of a trend, which a model does not share

Truth = Mapping[tuple[str, str], Any]
Trend = Callable[[np.random.Generator, int, int], np.ndarray]
Simulation = Callable[[np.random.Generator, int], Iterator[Evidence] | Evidence]
Null = Callable[[np.random.Generator, int, Trend], Iterator[Evidence] | Evidence]


class ClaimCase(NamedTuple):
    """A claim with its published effect and its null; a null without correlation must not be decided."""

    effect: Simulation
    null: Null
    error: str
    is_correlation: bool = False


def saturate(random: np.random.Generator, runs: int, number: int) -> np.ndarray:
    """Return curves from 0 to 1 that rise ever less, (runs, number)."""
    share = np.linspace(0, 1, number)
    curves = 1 - np.exp(-share / random.uniform(0.05, 0.5, size=(runs, 1)))
    ends: np.ndarray = curves / curves[:, -1:]
    return ends


def drift(random: np.random.Generator, runs: int, number: int) -> np.ndarray:
    """Return curves that rise steadily by about 1, with a wobble, (runs, number)."""
    wobble = WOBBLE * random.normal(size=(runs, number)).cumsum(axis=1)
    return np.linspace(0, 1, number) + wobble


TRENDS: dict[str, Trend] = {"saturating": saturate, "drifting": drift}


def make_evidence(
    random: np.random.Generator,
    truth: Truth,
    noise: float,
    runs: int,
    models: Mapping[str, EvidenceModel] | None = None,
    tables: Mapping[str, pd.DataFrame] | None = None,
) -> Evidence:
    """Simulate values around true ones, (steps, layers) or one such array per run.

    `noise` is the standard error of a layer. Errors of groups of windows are shared in part.
    """
    shared_errors = random.normal(size=(runs, 1, 1, GROUPS))
    curves, evidence_models = {}, {}
    for (model, estimator), values in truth.items():
        values = np.asarray(values, float)
        shape = values.shape[-2:]
        own_errors = random.normal(size=(runs, *shape, GROUPS))
        errors = (
            np.sqrt(GROUPS)
            * noise
            * (SHARED_SHARE**0.5 * shared_errors + (1 - SHARED_SHARE) ** 0.5 * own_errors)
        )
        mean = errors.mean(axis=-1, keepdims=True)
        around = np.concatenate([mean, (GROUPS * mean - errors) / (GROUPS - 1)], axis=-1)
        steps = STEPS if shape[0] == len(STEPS) else [*range(1, shape[0] + 1)]
        near = np.zeros(shape)
        curves[model, estimator] = LayerValues(
            [f"step{step}" for step in steps],
            np.array(steps, float),
            "all",
            np.arange(shape[1]) + 1,
            values[..., None] + around,
            near,
            near[:, 0],
        )
        role = "encoder" if model.startswith(("e", "bert", "roberta")) else "decoder"
        twin = {"kind": "twin", "origin": model[5:], "treatment": "cosine 0.5"}
        kind = twin if model.startswith("twin") else {}
        # The output of one more block is after the final norm.
        evidence_models[model] = EvidenceModel(
            model, role, shape[1] + 1, warmup_steps=WARM_UP, **kind
        )
    return Evidence({**evidence_models, **(models or {})}, curves, tables or {})


def add_step(profile: Any) -> np.ndarray:
    """Return a profile over layers, of all runs or one per run, as that of a single step."""
    return np.asarray(profile, float)[..., None, :]


def repeat_layers(curve: Any) -> np.ndarray:
    """Return a curve over steps, of all runs or one per run, as that of each layer."""
    return np.repeat(np.asarray(curve, float)[..., None], LAYERS, axis=-1)


def share_trend(
    random: np.random.Generator, runs: int, trend: Trend, names: Sequence[str], number: int
) -> dict[str, np.ndarray]:
    """Return a curve for each name: a shared trend, and a tenth of a separate trend."""
    common = trend(random, runs, number)
    return {name: common + OWN_TREND * trend(random, runs, number) for name in names}


def make_profiles(
    estimator: str,
    shape_profile: Callable[[np.ndarray, str], np.ndarray],
    names: Sequence[str],
    noise: float,
) -> Null:
    """Return a null of profiles over blocks, each made of a shared trend."""

    def null(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
        trends = share_trend(random, runs, trend, names, BLOCKS)
        truth = {
            (name, estimator): add_step(shape_profile(curve, name))
            for name, curve in trends.items()
        }
        return make_evidence(random, truth, noise, runs)

    return null


def make_trainings(
    estimators: Sequence[str],
    shape_curve: Callable[[np.ndarray, str, str], np.ndarray],
    names: Sequence[str],
    noise: float,
) -> Null:
    """Return a null of curves over steps, each made of a shared trend."""

    def null(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
        trends = share_trend(random, runs, trend, names, len(STEPS))
        truth = {
            (name, estimator): repeat_layers(shape_curve(curve, name, estimator))
            for name, curve in trends.items()
            for estimator in estimators
        }
        return make_evidence(random, truth, noise, runs)

    return null


def make_published(truth: Truth, noise: float) -> Simulation:
    """Return the simulation of one truth."""
    return lambda random, runs: make_evidence(random, truth, noise, runs)


def peak_at(warm_up: int, multiple: float, height: float) -> np.ndarray:
    """Return the logarithm of a curve with one peak at the step nearest to a multiple of the warm-up."""
    place = int(np.argmin(np.abs(np.log(np.array(STEPS) / (multiple * warm_up)))))
    curve = np.zeros(len(STEPS))
    curve[place] = height
    return curve


WARM_UPS = {"d0": 50, "d1": 100, "d2": 200, "d3": 400}


def make_warm_ups(multiples: Mapping[str, float], noise: float) -> Null:
    """Return curves of trainings with different warm-ups, on top of a trend."""

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
        trends = share_trend(random, runs, trend, DECODERS, len(STEPS))
        truth = {
            (name, "two_nn"): repeat_layers(
                10 * np.exp(peak_at(WARM_UPS[name], multiples[name], 0.8) + 0.1 * trends[name])
            )
            for name in DECODERS
        }
        models = {
            name: EvidenceModel(name, "decoder", LAYERS + 1, warmup_steps=warm_up)
            for name, warm_up in WARM_UPS.items()
        }
        return make_evidence(random, truth, noise, runs, models)

    return simulate


def make_performance(dimension: Any, loss: Any, noise: float) -> Null:
    """Return curves of a dimension beside one loss, each as a function of a trend."""

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
        trends = share_trend(random, runs, trend, DECODERS, len(STEPS))
        rows = [
            {"model": name, "revision": f"step{step}", "shown": "yes", "loss": value}
            for name in DECODERS
            for step, value in zip(STEPS, loss, strict=True)
        ]
        truth = {(n, "two_nn"): repeat_layers(dimension(curve)) for n, curve in trends.items()}
        tables = {"verdicts": pd.DataFrame(rows)}
        return make_evidence(random, truth, noise, runs, tables=tables)

    return simulate


def remove_trend(null: Null) -> Simulation:
    """Return a simulation without trends."""
    flat: Trend = lambda random, runs, number: np.zeros((runs, number))  # noqa: E731
    return lambda random, runs: null(random, runs, flat)


def make_linearity(
    claim: Claim, functions: Mapping[str, Any], noise: float, shape: str = "last"
) -> Null:
    """Return values of the claim's models by estimator, each a function of a trend over blocks or steps."""

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
        number = BLOCKS if shape == "last" else len(STEPS)
        trends = share_trend(random, runs, trend, list(claim.models), number)
        place = add_step if shape == "last" else repeat_layers
        truth = {
            (name, estimator): place(values(curve, name))
            for name, curve in trends.items()
            for estimator, values in functions.items()
        }
        return make_evidence(random, truth, noise, runs)

    return simulate


def make_twins(change: float, spread: float) -> Null:
    """Return twins and originals of three seeds, which differ by a change and by chance."""

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
        trends = share_trend(random, runs, trend, DECODERS[:3], BLOCKS)
        truth: dict[tuple[str, str], np.ndarray] = {}
        for name, curve in trends.items():
            original = 0.8 - 0.1 * curve
            chance = spread * random.normal(size=(runs, 1))
            truth[name, "linearity_increment"] = add_step(original)
            truth[f"twin-{name}", "linearity_increment"] = add_step(original + change + chance)
        return make_evidence(random, truth, 0.002, runs)

    return simulate


def make_twin_losses(change: float, spread: float) -> Null:
    """Return held-out losses of twins and originals of three seeds."""

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Iterator[Evidence]:
        models = {n: EvidenceModel(n, "decoder", 8) for n in DECODERS[:3]}
        models |= {
            f"twin-{n}": EvidenceModel(f"twin-{n}", "decoder", 8, "twin", n, 0, "cosine 0.5")
            for n in DECODERS[:3]
        }
        for _ in range(runs):
            trends = share_trend(random, 1, trend, DECODERS[:3], len(STEPS))
            rows = []
            for name, (curve,) in trends.items():
                difference = change + spread * random.normal()
                for place, step in enumerate(STEPS):
                    row = {"revision": f"step{step}", "step": step}
                    loss = 7 - 2 * curve[place]
                    rows += [
                        row | {"model": name, "held_out_loss": loss},
                        row | {"model": f"twin-{name}", "held_out_loss": loss + difference},
                    ]
            yield Evidence(models, tables={"training": pd.DataFrame(rows)})

    return simulate


def make_edits(claim: Claim, cost_of_dropping: float, cost_of_replacing: float) -> Null:
    """Return perplexities that grow with each changed block, ever less or steadily."""

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Iterator[Evidence]:
        models = {name: EvidenceModel(name, "decoder", 24) for name in claim.models}
        for _ in range(runs):
            shape = np.maximum.accumulate(trend(random, 1, 7)[0])
            rows = [
                {"model": name, "revision": "main", "order": order, "kind": kind, "k": k,
                 "perplexity": 10 * (1 + (cost - 1) * shape[k] / (shape[3] or 1))}
                for name in models
                for order in ("most_linear_first", "least_linear_first")
                for kind, cost in (("dropped", cost_of_dropping), ("replaced", cost_of_replacing))
                for k in range(7)
            ]  # fmt: skip
            yield Evidence(models, tables={"edits": pd.DataFrame(rows)})

    return simulate


def make_weights(
    names: Sequence[str],
    draw_measures: Callable[[np.random.Generator, np.ndarray], Mapping[str, Any]],
    cosine: Any = None,
) -> Null:
    """Return measures of the weights of models in the order of their sizes, along which a trend runs."""

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Iterator[Evidence]:
        for _ in range(runs):
            sizes = trend(random, 1, len(names))[0]
            rows = [
                {"model": name, "revision": "main", "step": 9, "estimator": estimator, "value": value,
                 "matrix": "final_norm" if "bias" in estimator else "output"}
                for estimator, values in draw_measures(random, sizes).items()
                for name, value in zip(names, values, strict=True)
            ]  # fmt: skip
            tables = {"weights": pd.DataFrame(rows)}
            truth = {
                (name, estimator): [[0.5, value]]
                for estimator, value in (cosine or {}).items()
                for name in names
            }
            evidence = make_evidence(random, truth, 0.002, 1) if truth else Evidence({})
            curves = {
                key: LayerValues(**{**vars(curve), "values": curve.values[0]})
                for key, curve in evidence.curves.items()
            }
            models = {name: EvidenceModel(name, "decoder", 2) for name in names}
            yield Evidence(models, curves, tables)

    return simulate


def make_development(
    name: str, isotropy: Callable[..., np.ndarray], loss: Callable[..., np.ndarray], noise: float
) -> Null:
    """Return ln I and the loss of 21 steps of one training, as functions of two trends."""
    steps = [0, *(7000 * place for place in range(1, 21)), 143000]

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Iterator[Evidence]:
        models = {name: EvidenceModel(name, "decoder", 6, last_step=143000)}
        for _ in range(runs):
            trends = trend(random, 2, len(steps) - 1)
            values = isotropy(random, trends[0]) + noise * random.normal(size=len(trends[0]))
            losses = loss(random, trends[1]) + noise / 10 * random.normal(size=len(trends[0]))
            weight_keys = {
                "model": name,
                "matrix": "output",
                "estimator": "matrix_partition_isotropy",
            }
            weights = [
                weight_keys | {"revision": f"step{s}", "step": s, "value": v}
                for s, v in zip(steps, [-9, *values], strict=True)
            ]
            verdicts = [
                {"model": name, "revision": f"step{s}", "loss": v, "verdict": "ok", "shown": "yes"}
                for s, v in zip(steps, [11, *losses], strict=True)
            ]
            tables = {"weights": pd.DataFrame(weights), "verdicts": pd.DataFrame(verdicts)}
            yield Evidence(models, tables=tables)

    return simulate


def turn(curve: np.ndarray, rise: float, fall: float) -> np.ndarray:
    """Return a curve that rises until the middle of the training and falls from there."""
    share = np.linspace(0, 1, len(curve))
    return np.where(share < 0.5, rise * share / 0.5, rise - fall * (share - 0.5) / 0.5)


def make_fine_tunings(
    make_rows: Callable[[np.random.Generator, float], Mapping[str, list[dict[str, Any]]]],
) -> Null:
    """Return tables of fine-tunings of three seeds, before and after; a trend sets their progress."""

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Iterator[Evidence]:
        models = {
            f"{origin}-{seed}": EvidenceModel(
                f"{origin}-{seed}", "encoder", 2, "fine_tuning", origin, treatment="t"
            )
            for origin in ENCODERS
            for seed in range(3)
        }
        for _ in range(runs):
            come = np.clip(trend(random, len(models), 5)[:, 3], 0, 2)
            tables: dict[str, list[dict[str, Any]]] = {}
            for name, share in zip(models, come, strict=True):
                for kind, rows in make_rows(random, float(share)).items():
                    row_keys = {"model": name, "layer": 2, "sample": "x"}
                    tables.setdefault(kind, []).extend(
                        row_keys | {"revision": f"s{row['step']}"} | row for row in rows
                    )
            yield Evidence(models, tables={kind: pd.DataFrame(r) for kind, r in tables.items()})

    return simulate


def change_isotropy(change: float, spread: float) -> Any:
    """Return rows of ln I before and after."""

    def rows(random: np.random.Generator, share: float) -> dict[str, list[dict[str, Any]]]:
        grown = change * (0.5 + share / 2) + spread * random.normal()
        values = {0: -4.0, 9: -4.0 + grown}
        name = {"estimator": "log_partition_isotropy"}
        return {"finetuning_layers": [name | {"step": s, "value": v} for s, v in values.items()]}

    return rows


def change_structure(types: float, spread: float) -> Any:
    """Return rows of shares of variance before and after."""

    def rows(random: np.random.Generator, share: float) -> dict[str, list[dict[str, Any]]]:
        start_shares = {"share_between_token_types": 0.4, "share_between_frequency_bands": 0.1}
        return {
            "finetuning_structure": [
                {"step": step, "quantity": quantity, "value": value}
                for quantity, start in start_shares.items()
                for step, value in (
                    (0, start),
                    (9, start * (1 + types * (0.5 + share / 2) + spread * random.normal())),
                )
            ]
        }

    return rows


def change_directions(
    start_count: int, end_count: int, costs: tuple[float, float], spread: float
) -> Any:
    """Return rows of spectra and of probes before and after, of a small width."""

    def rows(random: np.random.Generator, share: float) -> dict[str, list[dict[str, Any]]]:
        numbers = {0: start_count, 9: max(0, end_count + int(random.integers(-1, 2)))}
        spectra = [
            {"step": step, "median": 1.0, "place": p + 1, "eigenvalue": 20.0 if p < n else 1.0}
            for step, n in numbers.items()
            for p in range(WIDTH)
        ]
        probes = []
        for step, cost in zip(numbers, costs, strict=True):
            probe_keys = {"step": step, "clusters": 1, "fitted_on": "training"}
            lost = cost + spread * random.normal()
            probes.append(probe_keys | {"adjustment": "none", "directions": 0, "score": 0.9})
            probes += [
                probe_keys
                | {"adjustment": "without_directions", "directions": d, "score": 0.9 - lost}
                for d in (1, 2, 3, 4, 6, 8, 12)
            ]
        return {"finetuning_spectra": spectra, "finetuning_probes": probes}

    return rows


def make_cases(claims: Mapping[str, Claim]) -> dict[str, ClaimCase]:
    """Return the simulations of the claims of all papers in the folder."""
    cases: dict[str, Callable[[Claim], ClaimCase]] = {}

    def add(name: str) -> Callable[[Callable[[Claim], ClaimCase]], None]:
        return lambda make: cases.update({name: make})

    blocks = np.linspace(0, 1, BLOCKS)
    sizes = ["pythia-70m", "pythia-160m", "pythia-410m", "pythia-1.4b", "pythia-6.9b", "pythia-12b"]

    @add("decoders_peak_in_the_middle")
    def _(claim: Claim) -> ClaimCase:
        truth = {(name, "anisotropy"): add_step(OPT_125M) for name in DECODERS}
        null = make_profiles("anisotropy", lambda curve, name: 0.5 + 0.3 * curve, DECODERS, 0.005)
        return ClaimCase(
            make_published(truth, 0.001), null, "0.001, a bell of 0.016 as of OPT-125M"
        )

    @add("encoders_are_flatter")
    def _(claim: Claim) -> ClaimCase:
        names = [*DECODERS[:2], *ENCODERS[:2]]
        truth = {(n, "anisotropy"): add_step(0.5 + 0.48 * blocks) for n in names[:2]}
        truth |= {(n, "anisotropy"): add_step(np.full(BLOCKS, 0.2)) for n in names[2:]}

        def null(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
            common = 0.2 + 0.3 * trend(random, runs, BLOCKS)
            same = {(name, "anisotropy"): add_step(common) for name in names}
            return make_evidence(random, same, 0.005, runs)

        return ClaimCase(make_published(truth, 0.005), null, "0.005, 0.50 to 0.98 beside 0.20")

    @add("encoders_are_alike")
    def _(claim: Claim) -> ClaimCase:
        truth = {
            (n, "anisotropy"): add_step(0.15 + 0.03 * place + 0.1 * blocks)
            for place, n in enumerate(ENCODERS)
        }
        level = dict(zip(ENCODERS, (0.1, 0.3, 0.5), strict=True))
        null = make_profiles(
            "anisotropy", lambda curve, name: level[name] + 0.3 * curve, ENCODERS, 0.005
        )
        return ClaimCase(make_published(truth, 0.005), null, "0.005, levels 0.03 apart")

    @add("anisotropy_grows_then_settles")
    def _(claim: Claim) -> ClaimCase:
        truth = {(name, "anisotropy"): repeat_layers(GROWTH) for name in DECODERS}

        def null(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
            # Saturating curves grow too little to matter, or fall; drifting curves never settle.
            trends = share_trend(random, runs, trend, DECODERS, len(STEPS))
            height = random.uniform(-0.3, 0.04, size=(runs, 1))
            late = np.array(STEPS) / STEPS[-1]
            falls = {
                (n, "anisotropy"): repeat_layers(
                    0.3 + (height * curve if trend is saturate else 0.4 * late + 0.02 * curve)
                )
                for n, curve in trends.items()
            }
            return make_evidence(random, falls, 0.005, runs)

        return ClaimCase(make_published(truth, 0.005), null, "0.005, from 0.05 to 0.50")

    @add("dimension_rises_then_falls")
    def _(claim: Claim) -> ClaimCase:
        truth = {(name, "two_nn"): repeat_layers(TOP) for name in DECODERS}
        null = make_trainings(
            ["two_nn"], lambda curve, *_: 10 + 15 * np.maximum(curve, -0.5), DECODERS, 0.5
        )
        return ClaimCase(make_published(truth, 0.5), null, "0.5, 10, 30, then 20")

    @add("performance_improves_while_the_dimension_falls")
    def _(claim: Claim) -> ClaimCase:
        losses = [6, 5, 4.2, 3.8, 3.5, 3.3, 3.2, 3.1]
        effect = remove_trend(make_performance(lambda curve: np.array(TOP) + curve, losses, 0.5))
        null = make_performance(lambda curve: 10 + 15 * np.maximum(curve, -0.5), losses, 0.5)
        return ClaimCase(effect, null, "0.5, from 30 to 20 while the loss gains 0.7")

    @add("dimension_does_not_follow_the_warm_up")
    def _(claim: Claim) -> ClaimCase:
        apart = {"d0": 32.0, "d1": 1 / 0.5, "d2": 4.0, "d3": 0.25}
        effect = remove_trend(make_warm_ups(apart, 0.5))
        null = make_warm_ups(dict.fromkeys(DECODERS, 4.0), 0.5)
        return ClaimCase(effect, null, "0.5, peaks at multiples from 1/4 to 32")

    @add("tinyllama_is_above_bloom")
    def _(claim: Claim) -> ClaimCase:
        tiny, bloom = claim.models
        truth = {
            (tiny, "two_nn"): repeat_layers(np.multiply(1.3, TOP)),
            (bloom, "two_nn"): repeat_layers(TOP),
        }

        def null(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
            common = repeat_layers(10 + 15 * np.maximum(trend(random, runs, len(STEPS)), -0.5))
            return make_evidence(random, {(n, "two_nn"): common for n in (tiny, bloom)}, 0.5, runs)

        return ClaimCase(make_published(truth, 0.5), null, "0.5, 1.3 times as high")

    @add("estimators_agree")
    def _(claim: Claim) -> ClaimCase:
        truth = {(n, e): repeat_layers(TOP) for n in DECODERS for e in claim.estimators}
        null = make_trainings(
            claim.estimators,
            lambda curve, name, e: 20 * np.exp(0.5 * (curve if e != "mom" else -curve)),
            DECODERS,
            0.2,
        )
        return ClaimCase(make_published(truth, 0.2), null, "0.2, three such curves")

    @add("near_perfect_linearity")
    def _(claim: Claim) -> ClaimCase:
        functions = {"linearity": lambda curve, name: 0.99 + 0 * curve}
        low = {"linearity": lambda curve, name: 0.92 + 0.02 * curve}
        effect = remove_trend(make_linearity(claim, functions, 0.005))
        return ClaimCase(effect, make_linearity(claim, low, 0.005), "0.005, 0.99")

    @add("increments_are_less_linear")
    def _(claim: Claim) -> ClaimCase:
        values = {"linearity_increment": 0.6, "linearity": 0.99}
        functions = {e: (lambda curve, name, v=v: v + 0 * curve) for e, v in values.items()}
        same = {e: (lambda curve, name: 0.7 + 0.2 * curve) for e in values}
        effect = remove_trend(make_linearity(claim, functions, 0.01))
        return ClaimCase(effect, make_linearity(claim, same, 0.01), "0.01, 0.60 beside 0.99")

    @add("blocks_add_little")
    def _(claim: Claim) -> ClaimCase:
        values = {"block_norm_ratio": 0.15, "linearity": 0.99, "linearity_increment": 0.6}
        functions = {e: (lambda curve, name, v=v: v + 0 * curve) for e, v in values.items()}
        # Ratios and linearity share a trend over the blocks, and the residual connection adds nothing.
        null = {
            e: (lambda curve, name, v=v: v + 0.2 * curve)
            for e, v in zip(values, (0.2, 0.7, 0.7), strict=True)
        }
        effect = remove_trend(make_linearity(claim, functions, 0.01))
        return ClaimCase(
            effect, make_linearity(claim, null, 0.01), "0.01, 0.15, and 0.60 beside 0.99"
        )

    @add("decoders_alone")
    def _(claim: Claim) -> ClaimCase:
        functions = {"linearity": lambda c, name: (0.85 if "bert" in name else 0.99) + 0 * c}
        same = {"linearity": lambda c, name: 0.9 + 0.05 * c}
        effect = remove_trend(make_linearity(claim, functions, 0.01))
        return ClaimCase(effect, make_linearity(claim, same, 0.01), "0.01, 0.85 beside 0.99")

    @add("pretraining_lowers_linearity")
    def _(claim: Claim) -> ClaimCase:
        falls = np.array([0.95, 0.93, 0.9, 0.85, 0.8, 0.78, 0.76, 0.75])
        functions = {
            "linearity_increment": lambda curve, name: falls + 0 * curve,
            "linearity": lambda curve, name: 0.99 + 0 * curve,
        }
        rises = {
            "linearity_increment": lambda curve, name: 0.7 + 0.1 * curve,
            "linearity": lambda curve, name: 0.9 + 0.05 * curve,
        }
        effect = remove_trend(make_linearity(claim, functions, 0.01, "training"))
        null = make_linearity(claim, rises, 0.01, "training")
        return ClaimCase(effect, null, "0.01, from 0.95 to 0.75")

    @add("most_linear_blocks_can_go")
    def _(claim: Claim) -> ClaimCase:
        straight: Trend = lambda random, runs, number: np.tile(np.arange(number), (runs, 1))  # noqa: E731
        small, large = make_edits(claim, 1.05, 1.01), make_edits(claim, 1.3, 1.2)
        return ClaimCase(lambda r, n: small(r, n, straight), large, "none, costs of 5 and 1 %")

    @add("cosine_term_lowers_linearity")
    def _(claim: Claim) -> ClaimCase:
        effect = remove_trend(make_twins(-0.08, 0.01))
        return ClaimCase(effect, make_twins(0, 0.03), "0.01 of seeds, -0.08")

    @add("cosine_term_improves_performance")
    def _(claim: Claim) -> ClaimCase:
        effect = remove_trend(make_twin_losses(-0.11, 0.02))
        return ClaimCase(effect, make_twin_losses(0, 0.05), "0.02 of seeds, -0.11")

    @add("isotropic_large_models")
    def _(claim: Claim) -> ClaimCase:
        def isotropy(random: np.random.Generator, trend: np.ndarray) -> Mapping[str, Any]:
            return {"matrix_partition_isotropy": np.log(np.full(len(claim.models), 0.77))}

        def low(random: np.random.Generator, trend: np.ndarray) -> Mapping[str, Any]:
            return {"matrix_partition_isotropy": np.log(0.1 + 0.3 * np.clip(trend, 0, 1.3))}

        cosine = {"inter_window_cosine": 0.14}
        effect = remove_trend(make_weights(list(claim.models), isotropy, cosine))
        null = make_weights(list(claim.models), low, cosine)
        return ClaimCase(effect, null, "0.002, I of 0.77 and a cosine of 0.14")

    @add("anisotropic_small_models")
    def _(claim: Claim) -> ClaimCase:
        def isotropy(random: np.random.Generator, trend: np.ndarray) -> Mapping[str, Any]:
            return {"matrix_partition_isotropy": np.log([0.08, 0.3, 0.73, 0.77, 0.8, 0.82])}

        def alike(random: np.random.Generator, trend: np.ndarray) -> Mapping[str, Any]:
            values = 0.6 + 0.2 * np.clip(trend, 0, 1.5) + 0.02 * random.normal(size=len(trend))
            return {"matrix_partition_isotropy": np.log(values)}

        return ClaimCase(
            remove_trend(make_weights(sizes, isotropy)), make_weights(sizes, alike), "none"
        )

    @add("small_final_bias")
    def _(claim: Claim) -> ClaimCase:
        names = list(claim.models)

        def bias(random: np.random.Generator, trend: np.ndarray) -> Mapping[str, Any]:
            return {"bias_length": [20, 5, 8], "bias_to_gain": [0.5, 0.1, 0.1]}

        def alike(random: np.random.Generator, trend: np.ndarray) -> Mapping[str, Any]:
            factors = 1 + 0.05 * random.normal(size=(2, 3))
            return {"bias_length": 20 * factors[0] + 0.5 * trend, "bias_to_gain": 0.5 * factors[1]}

        return ClaimCase(
            remove_trend(make_weights(names, bias)), make_weights(names, alike), "none"
        )

    @add("final_norm_increases_isotropy")
    def _(claim: Claim) -> ClaimCase:
        values = dict(zip(claim.estimators, (0.14, 0.5), strict=True))
        functions = {e: (lambda curve, name, v=v: v + 0 * curve) for e, v in values.items()}
        same = {e: (lambda curve, name: 0.2 + 0.3 * curve) for e in values}

        def select_last(simulate: Null) -> Null:
            def simulate_last(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
                evidence = simulate(random, runs, trend)
                assert isinstance(evidence, Evidence)
                models = {n: EvidenceModel(n, "decoder", BLOCKS) for n in evidence.models}
                return Evidence(models, evidence.curves)

            return simulate_last

        effect = remove_trend(select_last(make_linearity(claim, functions, 0.002)))
        return ClaimCase(
            effect, select_last(make_linearity(claim, same, 0.002)), "0.002, from 0.5 to 0.14"
        )

    @add("isotropy_and_quality_of_the_smallest")
    def _(claim: Claim) -> ClaimCase:
        effect = remove_trend(
            make_development(
                claim.models[0],
                lambda random, curve: turn(curve, 0.3, 2.5),
                lambda random, curve: turn(curve, -0.2, -0.15),
                0.02,
            )
        )
        null = make_development(
            claim.models[0],
            lambda random, curve: random.choice([-1, 1]) * random.uniform(0.5, 2) * curve,
            lambda random, curve: 3.5 - random.uniform(0.1, 0.5) * curve,
            0.02,
        )
        return ClaimCase(effect, null, "0.02 of ln I, both turn at the middle", is_correlation=True)

    @add("anisotropic_models_do_not_develop_as_theorized")
    def _(claim: Claim) -> ClaimCase:
        effect = remove_trend(
            make_development(
                claim.models[0],
                lambda random, curve: turn(curve, 0.3, 2.5),
                lambda random, curve: 0 * curve,
                0.02,
            )
        )
        null = make_development(
            claim.models[0],
            lambda random, curve: -2.5 * curve,
            lambda random, curve: 0 * curve,
            0.02,
        )
        return ClaimCase(effect, null, "0.02 of ln I, a fall from the middle on")

    @add("finetuning_does_not_raise_isotropy")
    def _(claim: Claim) -> ClaimCase:
        falls = make_fine_tunings(change_isotropy(-3, 0.5))
        null = make_fine_tunings(change_isotropy(1, 0.1))
        return ClaimCase(remove_trend(falls), null, "0.5 of seeds, ln I falls by 1.5 to 3")

    @add("finetuning_changes_local_structure")
    def _(claim: Claim) -> ClaimCase:
        changes = make_fine_tunings(change_structure(-1.2, 0.05))
        null = make_fine_tunings(change_structure(0.05, 0.05))
        return ClaimCase(remove_trend(changes), null, "5 % of seeds, a change by 60 %")

    @add("finetuning_puts_the_task_into_elongated_directions")
    def _(claim: Claim) -> ClaimCase:
        grown = make_fine_tunings(change_directions(8, 24, (0.004, 0.13), 0.01))
        null = make_fine_tunings(change_directions(1, 3, (0.0, 0.05), 0.01))
        return ClaimCase(remove_trend(grown), null, "0.01 of seeds, 8 to 24 directions, cost 0.13")

    # Claims on the three phases, with the direction of a trend that contradicts them.
    signs = {
        "representations_collapse_at_first": 1,
        "dimensions_expand_then": -1,
        "variance_is_compressed_at_last": 1,
        "phases_come_in_this_order": 1,
        "decay_of_eigenvalues_mirrors_it": 1,
    }
    for name, sign in signs.items():

        @add(name)
        def _(claim: Claim, sign: int = sign) -> ClaimCase:
            up = 1 if claim.arguments["falls_first"] else -1
            functions = {claim.estimators[0]: np.power(PHASES, float(up))}
            effect = make_published(
                {(n, e): repeat_layers(v) for n in DECODERS for e, v in functions.items()},
                2 if up > 0 else 0.0003,
            )
            null = make_trainings(
                claim.estimators,
                lambda curve, *_: 60.0**up * np.exp(up * sign * 0.6 * curve),
                DECODERS,
                2 if up > 0 else 0.0003,
            )

            def select_last_layer(simulate: Simulation) -> Simulation:
                def simulate_last(random: np.random.Generator, runs: int) -> Evidence:
                    evidence = simulate(random, runs)
                    assert isinstance(evidence, Evidence)
                    models = {n: EvidenceModel(n, "decoder", LAYERS) for n in evidence.models}
                    return Evidence(models, evidence.curves)

                return simulate_last

            def draw_null(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
                evidence = select_last_layer(lambda r, n: null(r, n, trend))(random, runs)
                assert isinstance(evidence, Evidence)
                return evidence

            error = "2 % of 100, which falls to 60, rises to 90 and falls to 70"
            return ClaimCase(select_last_layer(effect), draw_null, error)

    return {name: make(claims[name]) for name, make in cases.items() if name in claims}


def count_verdicts(
    claim: Claim, evidence: Iterator[Evidence] | Evidence, runs: int
) -> dict[ClaimVerdict, int]:
    """Count the simulations that support and contradict a claim, in one array or one by one."""
    if isinstance(evidence, Evidence):
        units, families = group_units(claim, ClaimData(claim, evidence))
        decisions = decide(claim, units, families)
        both = np.logical_and.reduce(
            [np.broadcast_to(decision, runs) for decision in decisions.values()]
        )
        return {
            v: int((np.broadcast_to(decision, runs) & ~both).sum())
            for v, decision in decisions.items()
        }
    verdicts = [judge(claim, simulation).verdict for simulation in evidence]
    return {v: verdicts.count(v) for v in (ClaimVerdict.SUPPORTED, ClaimVerdict.CONTRADICTED)}


def measure_power(claim: Claim, case: ClaimCase, runs: int) -> dict[str, float]:
    """Return the shares of simulations: supported and contradicted at the effect, and wrong in each null."""
    random = np.random.default_rng(0)
    verdicts_at_effect = count_verdicts(claim, case.effect(random, runs), runs)
    shares = {
        "supported": verdicts_at_effect[ClaimVerdict.SUPPORTED] / runs,
        "contradicted": verdicts_at_effect[ClaimVerdict.CONTRADICTED] / runs,
    }
    for name, trend in TRENDS.items():
        verdicts = count_verdicts(claim, case.null(random, runs, trend), runs)
        wrong = verdicts[ClaimVerdict.SUPPORTED]
        wrong += verdicts[ClaimVerdict.CONTRADICTED] if case.is_correlation else 0
        shares[name] = wrong / runs
    return shares


def read_claims() -> dict[str, Claim]:
    """Read the claims of all papers."""
    papers = read_papers(Path(__file__).parents[1] / "workflow" / "papers")
    return {name: claim for paper in papers for name, claim in paper.claims.items()}


def main(runs: int = RUNS) -> None:
    """Print the table."""
    claims = read_claims()
    cases = make_cases(claims)
    print(
        "| claim | error and effect | supported | contradicted | wrong: saturating | wrong: drifting |"
    )
    print("| :-- | :-- | --: | --: | --: | --: |")
    for name, case in cases.items():
        shares = measure_power(claims[name], case, runs)
        cells = " | ".join(f"{100 * share:.0f} %" for share in shares.values())
        print(f"| `{name}` | {case.error} | {cells} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
