"""How often each claim is decided at the effect that its paper shows, and how often where it is false.

    PYTHONPATH=workflow python -m benchmarks.claims 300

prints the table of docs/explanation/statistics.md. A row is a claim as it is written. *Supported* is how often it is at
the published effect, or about it where a figure has no numbers, with the standard error of a layer that is given.
*Wrong* is how often it is supported where its sentence is false and everything shares a trend, over the layers or over
the steps: one that saturates, or one that drifts. Of a correlation that is none, each verdict is wrong. A null that
saturates has another speed each time, one that drifts another wobble.
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
SHARED = 0.5  # of the variance of a group's error, by layers, steps and models
LAYERS, BLOCKS, WIDTH = 8, 12, 40
STEPS = [50, 100, 200, 400, 800, 1600, 3200, 6400]
WARM_UP = 400
DECODERS, ENCODERS = ["d0", "d1", "d2", "d3"], ["e0", "e1", "e2"]
OPT_125M = [.979, .987, .995, .9951, .9948, .9934, .9914, .9887, .9834, .974, .960]  # fmt: skip
GROWTH, TOP = [.05, .1, .3, .45, .5, .52, .5, .5], [10, 14, 20, 30, 26, 24, 22, 20]  # fmt: skip
PHASES = [100, 80, 60, 70, 90, 85, 75, 70]
WOBBLE = 0.05  # of a drift, from step to step
OWN = 0.1  # of a trend, which a model does not share

Truth = Mapping[tuple[str, str], Any]
Trend = Callable[[np.random.Generator, int, int], np.ndarray]
Simulation = Callable[[np.random.Generator, int], Iterator[Evidence] | Evidence]
Null = Callable[[np.random.Generator, int, Trend], Iterator[Evidence] | Evidence]


class Case(NamedTuple):
    """A claim with its published effect and its null; a correlation that is none may be decided neither way."""

    published: Simulation
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
    shared = random.normal(size=(runs, 1, 1, GROUPS))
    curves, known = {}, {}
    for (model, estimator), values in truth.items():
        values = np.asarray(values, float)
        shape = values.shape[-2:]
        own = random.normal(size=(runs, *shape, GROUPS))
        errors = np.sqrt(GROUPS) * noise * (SHARED**0.5 * shared + (1 - SHARED) ** 0.5 * own)
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
        # One block more, whose output is after the final norm.
        known[model] = EvidenceModel(model, role, shape[1] + 1, warmup_steps=WARM_UP, **kind)
    return Evidence({**known, **(models or {})}, curves, tables or {})


def at_last(profile: Any) -> np.ndarray:
    """Return a profile over layers, of all runs or one per run, as that of a single step."""
    return np.asarray(profile, float)[..., None, :]


def in_all_layers(curve: Any) -> np.ndarray:
    """Return a curve over steps, of all runs or one per run, as that of each layer."""
    return np.repeat(np.asarray(curve, float)[..., None], LAYERS, axis=-1)


def share_trend(
    random: np.random.Generator, runs: int, trend: Trend, names: Sequence[str], number: int
) -> dict[str, np.ndarray]:
    """Return a curve of each name: a trend that all share, and a tenth of a trend of its own."""
    common = trend(random, runs, number)
    return {name: common + OWN * trend(random, runs, number) for name in names}


def make_profiles(
    estimator: str, of: Callable[[np.ndarray, str], np.ndarray], names: Sequence[str], noise: float
) -> Null:
    """Return a null of profiles over blocks, each made of a shared trend."""

    def null(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
        trends = share_trend(random, runs, trend, names, BLOCKS)
        truth = {(name, estimator): at_last(of(curve, name)) for name, curve in trends.items()}
        return make_evidence(random, truth, noise, runs)

    return null


def make_trainings(
    estimators: Sequence[str],
    of: Callable[[np.ndarray, str, str], np.ndarray],
    names: Sequence[str],
    noise: float,
) -> Null:
    """Return a null of curves over steps, each made of a shared trend."""

    def null(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
        trends = share_trend(random, runs, trend, names, len(STEPS))
        truth = {
            (name, estimator): in_all_layers(of(curve, name, estimator))
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


def of_warm_ups(multiples: Mapping[str, float], noise: float) -> Null:
    """Return curves of trainings with different warm-ups, on top of a trend."""

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
        trends = share_trend(random, runs, trend, DECODERS, len(STEPS))
        truth = {
            (name, "two_nn"): in_all_layers(
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


def of_performance(dimension: Any, loss: Any, noise: float) -> Null:
    """Return curves of a dimension beside one loss, each as a function of a trend."""

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
        trends = share_trend(random, runs, trend, DECODERS, len(STEPS))
        rows = [
            {"model": name, "revision": f"step{step}", "shown": "yes", "loss": value}
            for name in DECODERS
            for step, value in zip(STEPS, loss, strict=True)
        ]
        truth = {(n, "two_nn"): in_all_layers(dimension(of)) for n, of in trends.items()}
        tables = {"verdicts": pd.DataFrame(rows)}
        return make_evidence(random, truth, noise, runs, tables=tables)

    return simulate


def without_trend(null: Null) -> Simulation:
    """Return a simulation whose trends are nothing."""
    flat: Trend = lambda random, runs, number: np.zeros((runs, number))  # noqa: E731
    return lambda random, runs: null(random, runs, flat)


def of_linearity(claim: Claim, of: Mapping[str, Any], noise: float, shape: str = "last") -> Null:
    """Return values of the claim's models by estimator, each a function of a trend over blocks or steps."""

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
        number = BLOCKS if shape == "last" else len(STEPS)
        trends = share_trend(random, runs, trend, list(claim.models), number)
        place = at_last if shape == "last" else in_all_layers
        truth = {
            (name, estimator): place(values(curve, name))
            for name, curve in trends.items()
            for estimator, values in of.items()
        }
        return make_evidence(random, truth, noise, runs)

    return simulate


def of_twins(change: float, spread: float) -> Null:
    """Return twins and originals of three seeds, which differ by a change and by chance."""

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
        trends = share_trend(random, runs, trend, DECODERS[:3], BLOCKS)
        truth: dict[tuple[str, str], np.ndarray] = {}
        for name, curve in trends.items():
            original = 0.8 - 0.1 * curve
            chance = spread * random.normal(size=(runs, 1))
            truth[name, "linearity_increment"] = at_last(original)
            truth[f"twin-{name}", "linearity_increment"] = at_last(original + change + chance)
        return make_evidence(random, truth, 0.002, runs)

    return simulate


def of_twin_losses(change: float, spread: float) -> Null:
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


def of_edits(claim: Claim, dropped: float, replaced: float) -> Null:
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
                for kind, cost in (("dropped", dropped), ("replaced", replaced))
                for k in range(7)
            ]  # fmt: skip
            yield Evidence(models, tables={"edits": pd.DataFrame(rows)})

    return simulate


def of_weights(
    names: Sequence[str],
    of: Callable[[np.random.Generator, np.ndarray], Mapping[str, Any]],
    cosine: Any = None,
) -> Null:
    """Return measures of the weights of models in the order of their sizes, along which a trend runs."""

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Iterator[Evidence]:
        for _ in range(runs):
            sizes = trend(random, 1, len(names))[0]
            rows = [
                {"model": name, "revision": "main", "step": 9, "estimator": estimator, "value": value,
                 "matrix": "final_norm" if "bias" in estimator else "output"}
                for estimator, values in of(random, sizes).items()
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


def of_development(
    name: str, isotropy: Callable[..., np.ndarray], loss: Callable[..., np.ndarray], noise: float
) -> Null:
    """Return ln I and the loss of 21 steps of one training, each a function of a trend of its own."""
    steps = [0, *(7000 * place for place in range(1, 21)), 143000]

    def simulate(random: np.random.Generator, runs: int, trend: Trend) -> Iterator[Evidence]:
        models = {name: EvidenceModel(name, "decoder", 6, last_step=143000)}
        for _ in range(runs):
            own = trend(random, 2, len(steps) - 1)
            values = isotropy(random, own[0]) + noise * random.normal(size=len(own[0]))
            losses = loss(random, own[1]) + noise / 10 * random.normal(size=len(own[0]))
            at = {"model": name, "matrix": "output", "estimator": "matrix_partition_isotropy"}
            weights = [
                at | {"revision": f"step{s}", "step": s, "value": v}
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


def of_fine_tunings(
    rows_of: Callable[[np.random.Generator, float], Mapping[str, list[dict[str, Any]]]],
) -> Null:
    """Return tables of four fine-tunings of three seeds, before and after; a trend tells how far each has come."""

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
                for kind, rows in rows_of(random, float(share)).items():
                    at = {"model": name, "layer": 2, "sample": "x"}
                    tables.setdefault(kind, []).extend(
                        at | {"revision": f"s{row['step']}"} | row for row in rows
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
        of = {"share_between_token_types": 0.4, "share_between_frequency_bands": 0.1}
        return {
            "finetuning_structure": [
                {"step": step, "quantity": quantity, "value": value}
                for quantity, start in of.items()
                for step, value in (
                    (0, start),
                    (9, start * (1 + types * (0.5 + share / 2) + spread * random.normal())),
                )
            ]
        }

    return rows


def change_directions(before: int, after: int, costs: tuple[float, float], spread: float) -> Any:
    """Return rows of spectra and of probes before and after, of a small width."""

    def rows(random: np.random.Generator, share: float) -> dict[str, list[dict[str, Any]]]:
        numbers = {0: before, 9: max(0, after + int(random.integers(-1, 2)))}
        spectra = [
            {"step": step, "median": 1.0, "place": p + 1, "eigenvalue": 20.0 if p < n else 1.0}
            for step, n in numbers.items()
            for p in range(WIDTH)
        ]
        probes = []
        for step, cost in zip(numbers, costs, strict=True):
            at = {"step": step, "clusters": 1, "fitted_on": "training"}
            lost = cost + spread * random.normal()
            probes.append(at | {"adjustment": "none", "directions": 0, "score": 0.9})
            probes += [
                at | {"adjustment": "without_directions", "directions": d, "score": 0.9 - lost}
                for d in (1, 2, 3, 4, 6, 8, 12)
            ]
        return {"finetuning_spectra": spectra, "finetuning_probes": probes}

    return rows


def make_cases(claims: Mapping[str, Claim]) -> dict[str, Case]:
    """Return the simulations of the claims of the papers that there are."""
    cases: dict[str, Callable[[Claim], Case]] = {}

    def add(name: str) -> Callable[[Callable[[Claim], Case]], None]:
        return lambda make: cases.update({name: make})

    blocks = np.linspace(0, 1, BLOCKS)
    sizes = ["pythia-70m", "pythia-160m", "pythia-410m", "pythia-1.4b", "pythia-6.9b", "pythia-12b"]

    @add("decoders_peak_in_the_middle")
    def _(claim: Claim) -> Case:
        truth = {(name, "anisotropy"): at_last(OPT_125M) for name in DECODERS}
        null = make_profiles("anisotropy", lambda curve, name: 0.5 + 0.3 * curve, DECODERS, 0.005)
        return Case(make_published(truth, 0.001), null, "0.001, a bell of 0.016 as of OPT-125M")

    @add("encoders_are_flatter")
    def _(claim: Claim) -> Case:
        names = [*DECODERS[:2], *ENCODERS[:2]]
        truth = {(n, "anisotropy"): at_last(0.5 + 0.48 * blocks) for n in names[:2]}
        truth |= {(n, "anisotropy"): at_last(np.full(BLOCKS, 0.2)) for n in names[2:]}

        def null(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
            common = 0.2 + 0.3 * trend(random, runs, BLOCKS)
            same = {(name, "anisotropy"): at_last(common) for name in names}
            return make_evidence(random, same, 0.005, runs)

        return Case(make_published(truth, 0.005), null, "0.005, 0.50 to 0.98 beside 0.20")

    @add("encoders_are_alike")
    def _(claim: Claim) -> Case:
        truth = {
            (n, "anisotropy"): at_last(0.15 + 0.03 * place + 0.1 * blocks)
            for place, n in enumerate(ENCODERS)
        }
        level = dict(zip(ENCODERS, (0.1, 0.3, 0.5), strict=True))
        null = make_profiles(
            "anisotropy", lambda curve, name: level[name] + 0.3 * curve, ENCODERS, 0.005
        )
        return Case(make_published(truth, 0.005), null, "0.005, levels 0.03 apart")

    @add("anisotropy_grows_then_settles")
    def _(claim: Claim) -> Case:
        truth = {(name, "anisotropy"): in_all_layers(GROWTH) for name in DECODERS}

        def null(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
            # What saturates grows by less than matters, or falls; what drifts never settles.
            trends = share_trend(random, runs, trend, DECODERS, len(STEPS))
            height = random.uniform(-0.3, 0.04, size=(runs, 1))
            late = np.array(STEPS) / STEPS[-1]
            falls = {
                (n, "anisotropy"): in_all_layers(
                    0.3 + (height * of if trend is saturate else 0.4 * late + 0.02 * of)
                )
                for n, of in trends.items()
            }
            return make_evidence(random, falls, 0.005, runs)

        return Case(make_published(truth, 0.005), null, "0.005, from 0.05 to 0.50")

    @add("dimension_rises_then_falls")
    def _(claim: Claim) -> Case:
        truth = {(name, "two_nn"): in_all_layers(TOP) for name in DECODERS}
        null = make_trainings(
            ["two_nn"], lambda curve, *_: 10 + 15 * np.maximum(curve, -0.5), DECODERS, 0.5
        )
        return Case(make_published(truth, 0.5), null, "0.5, 10, 30, then 20")

    @add("performance_improves_while_the_dimension_falls")
    def _(claim: Claim) -> Case:
        losses = [6, 5, 4.2, 3.8, 3.5, 3.3, 3.2, 3.1]
        published = without_trend(of_performance(lambda of: np.array(TOP) + of, losses, 0.5))
        null = of_performance(lambda of: 10 + 15 * np.maximum(of, -0.5), losses, 0.5)
        return Case(published, null, "0.5, from 30 to 20 while the loss gains 0.7")

    @add("dimension_does_not_follow_the_warm_up")
    def _(claim: Claim) -> Case:
        apart = {"d0": 32.0, "d1": 1 / 0.5, "d2": 4.0, "d3": 0.25}
        published = without_trend(of_warm_ups(apart, 0.5))
        null = of_warm_ups(dict.fromkeys(DECODERS, 4.0), 0.5)
        return Case(published, null, "0.5, peaks at multiples from 1/4 to 32")

    @add("tinyllama_is_above_bloom")
    def _(claim: Claim) -> Case:
        tiny, bloom = claim.models
        truth = {
            (tiny, "two_nn"): in_all_layers(np.multiply(1.3, TOP)),
            (bloom, "two_nn"): in_all_layers(TOP),
        }

        def null(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
            common = in_all_layers(10 + 15 * np.maximum(trend(random, runs, len(STEPS)), -0.5))
            return make_evidence(random, {(n, "two_nn"): common for n in (tiny, bloom)}, 0.5, runs)

        return Case(make_published(truth, 0.5), null, "0.5, 1.3 times as high")

    @add("estimators_agree")
    def _(claim: Claim) -> Case:
        truth = {(n, e): in_all_layers(TOP) for n in DECODERS for e in claim.estimators}
        null = make_trainings(
            claim.estimators,
            lambda curve, name, e: 20 * np.exp(0.5 * (curve if e != "mom" else -curve)),
            DECODERS,
            0.2,
        )
        return Case(make_published(truth, 0.2), null, "0.2, three such curves")

    @add("near_perfect_linearity")
    def _(claim: Claim) -> Case:
        of = {"linearity": lambda curve, name: 0.99 + 0 * curve}
        low = {"linearity": lambda curve, name: 0.92 + 0.02 * curve}
        published = without_trend(of_linearity(claim, of, 0.005))
        return Case(published, of_linearity(claim, low, 0.005), "0.005, 0.99")

    @add("increments_are_less_linear")
    def _(claim: Claim) -> Case:
        values = {"linearity_increment": 0.6, "linearity": 0.99}
        of = {e: (lambda curve, name, v=v: v + 0 * curve) for e, v in values.items()}
        same = {e: (lambda curve, name: 0.7 + 0.2 * curve) for e in values}
        published = without_trend(of_linearity(claim, of, 0.01))
        return Case(published, of_linearity(claim, same, 0.01), "0.01, 0.60 beside 0.99")

    @add("blocks_add_little")
    def _(claim: Claim) -> Case:
        values = {"block_norm_ratio": 0.15, "linearity": 0.99, "linearity_increment": 0.6}
        of = {e: (lambda curve, name, v=v: v + 0 * curve) for e, v in values.items()}
        # Ratios and linearity share a trend over the blocks, and the residual connection adds nothing.
        null = {
            e: (lambda curve, name, v=v: v + 0.2 * curve)
            for e, v in zip(values, (0.2, 0.7, 0.7), strict=True)
        }
        published = without_trend(of_linearity(claim, of, 0.01))
        return Case(published, of_linearity(claim, null, 0.01), "0.01, 0.15, and 0.60 beside 0.99")

    @add("decoders_alone")
    def _(claim: Claim) -> Case:
        of = {"linearity": lambda c, name: (0.85 if "bert" in name else 0.99) + 0 * c}
        same = {"linearity": lambda c, name: 0.9 + 0.05 * c}
        published = without_trend(of_linearity(claim, of, 0.01))
        return Case(published, of_linearity(claim, same, 0.01), "0.01, 0.85 beside 0.99")

    @add("pretraining_lowers_linearity")
    def _(claim: Claim) -> Case:
        falls = np.array([0.95, 0.93, 0.9, 0.85, 0.8, 0.78, 0.76, 0.75])
        of = {
            "linearity_increment": lambda curve, name: falls + 0 * curve,
            "linearity": lambda curve, name: 0.99 + 0 * curve,
        }
        rises = {
            "linearity_increment": lambda curve, name: 0.7 + 0.1 * curve,
            "linearity": lambda curve, name: 0.9 + 0.05 * curve,
        }
        published = without_trend(of_linearity(claim, of, 0.01, "training"))
        null = of_linearity(claim, rises, 0.01, "training")
        return Case(published, null, "0.01, from 0.95 to 0.75")

    @add("most_linear_blocks_can_go")
    def _(claim: Claim) -> Case:
        straight: Trend = lambda random, runs, number: np.tile(np.arange(number), (runs, 1))  # noqa: E731
        small, large = of_edits(claim, 1.05, 1.01), of_edits(claim, 1.3, 1.2)
        return Case(lambda r, n: small(r, n, straight), large, "none, costs of 5 and 1 %")

    @add("cosine_term_lowers_linearity")
    def _(claim: Claim) -> Case:
        published = without_trend(of_twins(-0.08, 0.01))
        return Case(published, of_twins(0, 0.03), "0.01 of seeds, -0.08")

    @add("cosine_term_improves_performance")
    def _(claim: Claim) -> Case:
        published = without_trend(of_twin_losses(-0.11, 0.02))
        return Case(published, of_twin_losses(0, 0.05), "0.02 of seeds, -0.11")

    @add("isotropic_large_models")
    def _(claim: Claim) -> Case:
        def isotropy(random: np.random.Generator, trend: np.ndarray) -> Mapping[str, Any]:
            return {"matrix_partition_isotropy": np.log(np.full(len(claim.models), 0.77))}

        def low(random: np.random.Generator, trend: np.ndarray) -> Mapping[str, Any]:
            return {"matrix_partition_isotropy": np.log(0.1 + 0.3 * np.clip(trend, 0, 1.3))}

        cosine = {"inter_window_cosine": 0.14}
        published = without_trend(of_weights(list(claim.models), isotropy, cosine))
        null = of_weights(list(claim.models), low, cosine)
        return Case(published, null, "0.002, I of 0.77 and a cosine of 0.14")

    @add("anisotropic_small_models")
    def _(claim: Claim) -> Case:
        def isotropy(random: np.random.Generator, trend: np.ndarray) -> Mapping[str, Any]:
            return {"matrix_partition_isotropy": np.log([0.08, 0.3, 0.73, 0.77, 0.8, 0.82])}

        def alike(random: np.random.Generator, trend: np.ndarray) -> Mapping[str, Any]:
            values = 0.6 + 0.2 * np.clip(trend, 0, 1.5) + 0.02 * random.normal(size=len(trend))
            return {"matrix_partition_isotropy": np.log(values)}

        return Case(without_trend(of_weights(sizes, isotropy)), of_weights(sizes, alike), "none")

    @add("small_final_bias")
    def _(claim: Claim) -> Case:
        names = list(claim.models)

        def bias(random: np.random.Generator, trend: np.ndarray) -> Mapping[str, Any]:
            return {"bias_length": [20, 5, 8], "bias_to_gain": [0.5, 0.1, 0.1]}

        def alike(random: np.random.Generator, trend: np.ndarray) -> Mapping[str, Any]:
            of = 1 + 0.05 * random.normal(size=(2, 3))
            return {"bias_length": 20 * of[0] + 0.5 * trend, "bias_to_gain": 0.5 * of[1]}

        return Case(without_trend(of_weights(names, bias)), of_weights(names, alike), "none")

    @add("final_norm_increases_isotropy")
    def _(claim: Claim) -> Case:
        values = dict(zip(claim.estimators, (0.14, 0.5), strict=True))
        of = {e: (lambda curve, name, v=v: v + 0 * curve) for e, v in values.items()}
        same = {e: (lambda curve, name: 0.2 + 0.3 * curve) for e in values}

        def as_last(simulate: Null) -> Null:
            def simulated(random: np.random.Generator, runs: int, trend: Trend) -> Evidence:
                evidence = simulate(random, runs, trend)
                assert isinstance(evidence, Evidence)
                models = {n: EvidenceModel(n, "decoder", BLOCKS) for n in evidence.models}
                return Evidence(models, evidence.curves)

            return simulated

        published = without_trend(as_last(of_linearity(claim, of, 0.002)))
        return Case(published, as_last(of_linearity(claim, same, 0.002)), "0.002, from 0.5 to 0.14")

    @add("isotropy_and_quality_of_the_smallest")
    def _(claim: Claim) -> Case:
        published = without_trend(
            of_development(
                claim.models[0],
                lambda random, curve: turn(curve, 0.3, 2.5),
                lambda random, curve: turn(curve, -0.2, -0.15),
                0.02,
            )
        )
        null = of_development(
            claim.models[0],
            lambda random, curve: random.choice([-1, 1]) * random.uniform(0.5, 2) * curve,
            lambda random, curve: 3.5 - random.uniform(0.1, 0.5) * curve,
            0.02,
        )
        return Case(published, null, "0.02 of ln I, both turn at the middle", is_correlation=True)

    @add("anisotropic_models_do_not_develop_as_theorized")
    def _(claim: Claim) -> Case:
        published = without_trend(
            of_development(
                claim.models[0],
                lambda random, curve: turn(curve, 0.3, 2.5),
                lambda random, curve: 0 * curve,
                0.02,
            )
        )
        null = of_development(
            claim.models[0],
            lambda random, curve: -2.5 * curve,
            lambda random, curve: 0 * curve,
            0.02,
        )
        return Case(published, null, "0.02 of ln I, a fall from the middle on")

    @add("finetuning_does_not_raise_isotropy")
    def _(claim: Claim) -> Case:
        falls = of_fine_tunings(change_isotropy(-3, 0.5))
        null = of_fine_tunings(change_isotropy(1, 0.1))
        return Case(without_trend(falls), null, "0.5 of seeds, ln I falls by 1.5 to 3")

    @add("finetuning_changes_local_structure")
    def _(claim: Claim) -> Case:
        changes = of_fine_tunings(change_structure(-1.2, 0.05))
        null = of_fine_tunings(change_structure(0.05, 0.05))
        return Case(without_trend(changes), null, "5 % of seeds, a change by 60 %")

    @add("finetuning_puts_the_task_into_elongated_directions")
    def _(claim: Claim) -> Case:
        grown = of_fine_tunings(change_directions(8, 24, (0.004, 0.13), 0.01))
        null = of_fine_tunings(change_directions(1, 3, (0.0, 0.05), 0.01))
        return Case(without_trend(grown), null, "0.01 of seeds, 8 to 24 directions, cost 0.13")

    # Of the three phases: which of them a claim is on, and whether a trend upwards or downwards has none of it.
    without = {
        "representations_collapse_at_first": 1,
        "dimensions_expand_then": -1,
        "variance_is_compressed_at_last": 1,
        "phases_come_in_this_order": 1,
        "decay_of_eigenvalues_mirrors_it": 1,
    }
    for name, sign in without.items():

        @add(name)
        def _(claim: Claim, sign: int = sign) -> Case:
            up = 1 if claim.arguments["falls_first"] else -1
            of = {claim.estimators[0]: np.power(PHASES, float(up))}
            published = make_published(
                {(n, e): in_all_layers(v) for n in DECODERS for e, v in of.items()},
                2 if up > 0 else 0.0003,
            )
            null = make_trainings(
                claim.estimators,
                lambda curve, *_: 60.0**up * np.exp(up * sign * 0.6 * curve),
                DECODERS,
                2 if up > 0 else 0.0003,
            )

            def of_last_layer(simulate: Simulation) -> Simulation:
                def simulated(random: np.random.Generator, runs: int) -> Evidence:
                    evidence = simulate(random, runs)
                    assert isinstance(evidence, Evidence)
                    models = {n: EvidenceModel(n, "decoder", LAYERS) for n in evidence.models}
                    return Evidence(models, evidence.curves)

                return simulated

            def null_of_last_layer(
                random: np.random.Generator, runs: int, trend: Trend
            ) -> Evidence:
                evidence = of_last_layer(lambda r, n: null(r, n, trend))(random, runs)
                assert isinstance(evidence, Evidence)
                return evidence

            error = "2 % of 100, which falls to 60, rises to 90 and falls to 70"
            return Case(of_last_layer(published), null_of_last_layer, error)

    return {name: make(claims[name]) for name, make in cases.items() if name in claims}


def count_verdicts(
    claim: Claim, evidence: Iterator[Evidence] | Evidence, runs: int
) -> dict[ClaimVerdict, int]:
    """Count how often a claim is supported and contradicted, of simulations in one array or one by one."""
    if isinstance(evidence, Evidence):
        units, families = group_units(claim, ClaimData(claim, evidence))
        shown = decide(claim, units, families)
        both = np.logical_and.reduce([np.broadcast_to(of, runs) for of in shown.values()])
        return {v: int((np.broadcast_to(of, runs) & ~both).sum()) for v, of in shown.items()}
    verdicts = [judge(claim, one).verdict for one in evidence]
    return {v: verdicts.count(v) for v in (ClaimVerdict.SUPPORTED, ClaimVerdict.CONTRADICTED)}


def measure_power(claim: Claim, case: Case, runs: int) -> dict[str, float]:
    """Return the shares of simulations: supported and contradicted at the effect, decided wrongly in each null."""
    random = np.random.default_rng(0)
    at_effect = count_verdicts(claim, case.published(random, runs), runs)
    shares = {
        "supported": at_effect[ClaimVerdict.SUPPORTED] / runs,
        "contradicted": at_effect[ClaimVerdict.CONTRADICTED] / runs,
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
