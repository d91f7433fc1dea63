"""A claim under every specification of its analysis, and which choice flips the verdict."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd

from shape_of_learning.claims.choices import ClaimChoices, Specification, specifications
from shape_of_learning.claims.evidence import (
    Curve,
    Evidence,
    EvidenceModel,
    curves_by,
    read_tables,
    sound,
)
from shape_of_learning.claims.judging import NOT_MEASURED, Judgement, judge
from shape_of_learning.metrics.measure_entry import AFTER, BEFORE, ROW_CHOICES

KEYS = ("model", "estimator", *ROW_CHOICES)
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
        self._models = {each["name"]: EvidenceModel(**each) for each in models}
        self._suspect_above = suspect_above
        rows = sound(read_tables(measured, ["layer", *ROW_CHOICES]), read_tables(verdicts))
        self._curves: dict[str, dict[tuple[str, ...], Curve]] = {AFTER: {}, BEFORE: {}}
        if rows.empty:
            return
        is_after = rows["last_layer"] == AFTER
        # Of the state before the final norm, there is the last layer alone.
        before = pd.concat([rows[is_after], rows[~is_after]])
        before = before.drop_duplicates([*KEYS, "revision", "layer"], keep="last")
        self._curves = {AFTER: curves_by(KEYS, rows[is_after]), BEFORE: curves_by(KEYS, before)}

    def evidence(self, specification: Specification, instead: Mapping[str, str]) -> Evidence:
        """The evidence under one specification.

        Parameters
        ----------
        specification : mapping
            An option of each choice.
        instead : mapping of str to str
            By the name that claims use, the estimator that is taken; where it is not measured, nothing is.
        """
        rows = [specification[name] for name in ROW_CHOICES]
        measured = self._curves[specification["last_layer"]]
        curves: dict[tuple[str, ...], Curve] = {
            (model, name): measured[model, other, *rows]
            for name, other in instead.items()
            for model in self._models
            if (model, other, *rows) in measured
        }
        limits = {name: self._suspect_above.get(other, 1) for name, other in instead.items()}
        return Evidence(self._models, curves, suspect_above=limits)


@dataclass(frozen=True)
class Specified:
    """One specification, and what it says of the claim."""

    specification: Specification
    judgement: Judgement


def judged_specifications(of: ClaimChoices, measured: MeasuredChoices) -> list[Specified]:
    """Judge a claim under every combination of its choices; the first one is the reference."""
    judged = []
    for each in specifications(of.choices):
        whole = {**of.reference, **each}
        claim = replace(of.claim, average_over=whole["average_over"])
        evidence = measured.evidence(whole, of.estimators(each))
        judged.append(Specified(each, judge(claim, evidence)))
    return judged


def flips(of: ClaimChoices, judged: Sequence[Specified]) -> list[dict[str, Any]]:
    """Compare each option with that of the reference: all other choices as in it, and in all pairs.

    Parameters
    ----------
    of : ClaimChoices
    judged : sequence of Specified
        From :func:`judged_specifications`.

    Returns
    -------
    list of dict
        Rows with `FLIP_COLUMNS`: ``flips`` is whether the verdict changes if nothing but this choice does,
        empty where one of the two is not measured; ``pairs`` counts pairs of specifications that differ in
        nothing else and are both measured, and ``flipped_pairs`` those with different verdicts.
    """
    verdicts = {tuple(each.specification.values()): each.judgement.verdict for each in judged}
    rows = []
    for place, (choice, (own, *others)) in enumerate(of.choices.items()):
        for option in others:
            pairs = [
                (verdict, verdicts[*options[:place], option, *options[place + 1 :]])
                for options, verdict in verdicts.items()
                if options[place] == own
            ]
            alone = pairs[0]  # as the first specification is the reference
            measured = [pair for pair in pairs if NOT_MEASURED not in pair]
            flips = "" if NOT_MEASURED in alone else _yes(alone[0] != alone[1])
            flipped = sum(one != other for one, other in measured)
            cells = (of.claim.name, choice, own, option, *alone, flips, len(measured), flipped)
            rows.append(dict(zip(FLIP_COLUMNS, cells, strict=True)))
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


def flip_page(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the matrix of claims and choices as Markdown, from rows of :func:`flips`."""
    if not rows:
        return (
            "No claim to compare: those of the run are on other tables or on models that it does not have, "
            "or `choices` has one option each.\n"
        )
    choices = list(dict.fromkeys(row["choice"] for row in rows))
    cells: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in rows:
        result = {"yes": f"**{row['verdict']}**", "no": "same", "": row["verdict"]}[row["flips"]]
        words = f"{row['option']}: {result} ({row['flipped_pairs']} of {row['pairs']})"
        of_claim = cells.setdefault((row["claim"], row["verdict_of_reference"]), {})
        of_claim.setdefault(row["choice"], []).append(words)
    lines = [
        "What a choice alone does to a verdict, everything else as in the reference; in brackets, in how "
        "many of all pairs of specifications that differ in nothing else the verdict differs. The captions "
        "of the curves say what the reference is: with fewer windows or checkpoints than the run, its "
        "verdict may be another than the run's own.",
        "",
        f"| claim | reference | {' | '.join(choices)} |",
        f"|{'---|' * (len(choices) + 2)}",
    ]
    for of_claim, said in cells.items():
        each = ["<br>".join(said.get(choice, [])) for choice in choices]
        lines.append(f"| {' | '.join([*of_claim, *each])} |")
    return "\n".join(lines) + "\n"
