"""A claim under every specification of its analysis, and which choice flips the verdict."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any

from shape_of_learning.claims.choices import (
    AFTER,
    LAST_LAYERS,
    ROW_CHOICES,
    ClaimChoices,
    Rows,
    Specification,
    specifications,
)
from shape_of_learning.claims.evidence import (
    Evidence,
    EvidenceModel,
    by_step,
    read_layers,
    read_tables,
)
from shape_of_learning.claims.judging import NOT_MEASURED, Judgement, judge

FLIP_COLUMNS = (
    *("claim", "choice", "reference", "option", "verdict_of_reference", "verdict", "flips"),
    *("pairs", "flipped_pairs"),
)


class MeasuredChoices:
    """Values of all models for all specifications.

    Parameters
    ----------
    models : sequence of mapping
        Of each model of the run what :class:`.EvidenceModel` holds.
    suspect_above : mapping of str to float
        As in :class:`.Evidence`.
    measured : iterable of Path
        Tables of the jobs that measured checkpoints.
    verdicts : iterable of Path
        ``tables/verdicts/{model}.csv``: of a model that has one, only sound checkpoints count.
    """

    def __init__(
        self,
        models: Sequence[Mapping[str, Any]],
        suspect_above: Mapping[str, float],
        measured: Iterable[Path],
        verdicts: Iterable[Path],
    ):
        _, is_sound = read_tables(verdicts)
        self._known = Evidence(
            {each["name"]: EvidenceModel(**each) for each in models}, suspect_above=suspect_above
        )
        layers = read_layers(measured, ("last_layer", "model", "estimator", *ROW_CHOICES), is_sound)
        self._values = {}
        for after, *key in layers:
            for last_layer in LAST_LAYERS if after == AFTER else ():
                # Of the state before the final norm, there is the last layer alone.
                own = layers.get((last_layer, *key), {})
                whole = {name: of | own.get(name, {}) for name, of in layers[after, *key].items()}
                self._values[last_layer, *key] = by_step(whole)

    def evidence(self, rows: Rows, last_layer: str, estimators: Iterable[str]) -> Evidence:
        """The evidence under one specification; where an estimator is not measured, there is none of it."""
        values = {
            (model, estimator): self._values[key]
            for estimator in estimators
            for model in self._known.models
            if (key := (last_layer, model, estimator, *astuple(rows))) in self._values
        }
        return replace(self._known, values=values)


@dataclass(frozen=True)
class Specified:
    """One specification, and what it says of the claim."""

    specification: Specification
    judgement: Judgement


def judged_specifications(of: ClaimChoices, measured: MeasuredChoices) -> list[Specified]:
    """Judge a claim under every combination of its choices; the first one is the reference."""
    judged = []
    for each in specifications(of.choices):
        instead = of.estimators(each)
        evidence = measured.evidence(
            of.rows.with_options(each), each.get("last_layer", of.last_layer), instead.values()
        ).with_estimators(instead)
        layers = each.get("average_over", of.claim.average_over)
        judged.append(Specified(each, judge(replace(of.claim, average_over=layers), evidence)))
    return judged


def flips(of: ClaimChoices, judged: Sequence[Specified]) -> list[tuple[object, ...]]:
    """Compare each option with that of the reference: all other choices as in it, and in all pairs.

    Parameters
    ----------
    of : ClaimChoices
    judged : sequence of Specified
        From :func:`judged_specifications`.

    Returns
    -------
    list of tuple
        Rows with `FLIP_COLUMNS`: ``flips`` is whether the verdict changes if nothing but this choice does,
        empty where one of the two is not measured; ``pairs`` counts pairs of specifications that differ in
        nothing else and are both measured, and ``flipped_pairs`` those with different verdicts.
    """
    verdicts = {frozenset(s.specification.items()): s.judgement.verdict for s in judged}
    reference = judged[0].specification
    rows: list[tuple[object, ...]] = []
    for choice in of.choices:
        own, *others = choice.options
        for option in others:
            pairs = []
            for each in judged:
                if each.specification[choice.name] == own:
                    other = {**each.specification, choice.name: option}
                    both = each.judgement.verdict, verdicts[frozenset(other.items())]
                    pairs.append((each.specification == reference, both))
            alone = next(both for is_reference, both in pairs if is_reference)
            measured = [both for _, both in pairs if NOT_MEASURED not in both]
            rows.append(
                (
                    *(of.claim.name, choice.name, own, option, *alone),
                    "" if NOT_MEASURED in alone else _yes(alone[0] != alone[1]),
                    *(len(measured), sum(a != b for a, b in measured)),
                )
            )
    return rows


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def specification_rows(of: ClaimChoices, judged: Sequence[Specified]) -> list[dict[str, object]]:
    """One row per specification, by ascending estimate and those without one last, as a figure draws them."""

    def effect(each: Specified) -> tuple[bool, float]:
        return isnan(each.judgement.estimate), each.judgement.estimate

    return [
        {
            "claim": of.claim.name,
            "rank": rank,
            "is_reference": _yes(each is judged[0]),
            "verdict": each.judgement.verdict,
            **{key: getattr(each.judgement, key) for key in ("estimate", "low", "high")},
            "n": ";".join(each.judgement.n),
            **each.specification,
            "because": each.judgement.because,
        }
        for rank, each in enumerate(sorted(judged, key=effect), 1)
    ]


def flip_page(rows: Sequence[Sequence[object]]) -> str:
    """Write the matrix of claims and choices as Markdown, from rows of :func:`flips`."""
    if not rows:
        return (
            "No claim to compare: those of the run are on other tables or on models that it does not have, "
            "or `choices` has one option each.\n"
        )
    named = [dict(zip(FLIP_COLUMNS, row, strict=True)) for row in rows]
    claims = list(dict.fromkeys(row["claim"] for row in named))
    choices = list(dict.fromkeys(row["choice"] for row in named))
    lines = [
        "What a choice alone does to a verdict, everything else as in the reference; in brackets, in how "
        "many of all pairs of specifications that differ in nothing else the verdict differs. The captions "
        "of the curves say what the reference is: with fewer windows or checkpoints than the run, its "
        "verdict may be another than the run's own.",
        "",
        f"| claim | reference | {' | '.join(map(str, choices))} |",
        f"|{'---|' * (len(choices) + 2)}",
    ]
    for claim in claims:
        own = [row for row in named if row["claim"] == claim]
        cells = [_cell([row for row in own if row["choice"] == choice]) for choice in choices]
        lines.append(f"| {claim} | {own[0]['verdict_of_reference']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(rows: Sequence[Mapping[str, object]]) -> str:
    if not rows:
        return ""
    words = []
    for row in rows:
        verdict = str(row["verdict"])
        result = {"yes": f"**{verdict}**", "no": "same", "": verdict}[str(row["flips"])]
        words.append(f"{row['option']}: {result} ({row['flipped_pairs']} of {row['pairs']})")
    return "<br>".join(words)
