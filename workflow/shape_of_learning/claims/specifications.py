"""A claim under every specification of its analysis, and which choice flips the verdict."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from shape_of_learning.claims.claim import ClaimGrid, ClaimVerdict, EvidenceModel
from shape_of_learning.claims.evidence import (
    Evidence,
    LayerValues,
    group_curves,
    read_tables,
    select_sound_rows,
)
from shape_of_learning.claims.judgement import Judgement, judge
from shape_of_learning.metrics.measure_entry import AFTER, BEFORE, ROW_CHOICES

SPECIFIED = (*ROW_CHOICES, "last_layer")  # choices with a column in the tables of values
FLIP_COLUMNS = (
    *("claim", "choice", "reference", "option", "verdict_of_reference", "verdict", "flips"),
    *("pairs", "flipped_pairs"),
)
# Judgements by the options of a claim's choices; the first judgement is that of the reference.
Specified = Mapping[tuple[str, ...], Judgement]


class MeasuredChoices:
    """Values of all models for all specifications.

    Parameters
    ----------
    models : iterable of EvidenceModel
        All models of the run.
    near_duplicate_limits : mapping of str to float or None
        As in :class:`.Evidence`.
    measured : iterable of Path
        Tables of the jobs that measured checkpoints.
    verdicts : iterable of Path
        ``tables/verdicts/{model}.csv``: of a model that has one, only sound checkpoints count.
    """

    def __init__(
        self,
        models: Iterable[EvidenceModel],
        near_duplicate_limits: Mapping[str, float | None],
        measured: Iterable[Path],
        verdicts: Iterable[Path],
    ):
        self._models = {model.name: model for model in models}
        self._near_duplicate_limits = near_duplicate_limits
        keys = ["model", "estimator", *SPECIFIED]
        rows = select_sound_rows(
            read_tables(measured, ["layer", *ROW_CHOICES]), read_tables(verdicts)
        )
        if len(rows):
            # Only the last layer has a state before the final norm; the other layers are the same.
            others = rows[rows["last_layer"] == AFTER].assign(last_layer=BEFORE)
            rows = pd.concat([rows, others]).drop_duplicates([*keys, "revision", "layer"])
        self._curves = group_curves(keys, rows)

    def make_evidence(
        self, specification: Mapping[str, str], substitutes: Mapping[str, str]
    ) -> Evidence:
        """Return the evidence under one specification.

        Parameters
        ----------
        specification : mapping
            An option of each choice.
        substitutes : mapping of str to str
            By the name that claims use, the estimator that is taken; where it is not measured, nothing is.
        """
        options = [specification[name] for name in SPECIFIED]
        curves: dict[tuple[str, ...], LayerValues] = {
            (model, name): self._curves[model, other, *options]
            for name, other in substitutes.items()
            for model in self._models
            if (model, other, *options) in self._curves
        }
        limits = {
            n: self._near_duplicate_limits[o]
            for n, o in substitutes.items()
            if o in self._near_duplicate_limits
        }
        return Evidence(self._models, curves, near_duplicate_limits=limits)


def judge_specifications(grid: ClaimGrid, measured: MeasuredChoices) -> Specified:
    """Judge a claim under every combination of its choices; the first one is the reference."""
    judged = {}
    for specification in grid.list_specifications():
        claim = replace(
            grid.claim,
            average_over=specification["average_over"],
            other_estimators=(),
            robustness={},
        )
        judged[tuple(specification.values())] = judge(
            claim, measured.make_evidence(specification, grid.choose_estimators(specification))
        )
    return judged


def find_flips(grid: ClaimGrid, judged: Specified) -> list[dict[str, Any]]:
    """Compare each option with the reference option, with all other choices as in the reference, and in all pairs.

    Parameters
    ----------
    grid : ClaimGrid
    judged : mapping of tuple of str to Judgement
        From :func:`judge_specifications`.

    Returns
    -------
    list of dict
        Rows with `FLIP_COLUMNS`: ``flips`` says whether the verdict changes if only this choice changes, and is empty
        if one of the two specifications is not measured; ``pairs`` counts measured pairs of specifications that differ
        in this choice only, and ``flipped_pairs`` counts the pairs with different verdicts.
    """
    rows = []
    for place, (choice, (own, *others)) in enumerate(grid.choices.items()):
        for option in others:
            pairs = [
                (judgement.verdict, judged[*options[:place], option, *options[place + 1 :]].verdict)
                for options, judgement in judged.items()
                if options[place] == own
            ]
            alone = pairs[0]  # as the first specification is the reference
            measured = [pair for pair in pairs if ClaimVerdict.NOT_MEASURED not in pair]
            flips = (
                ""
                if ClaimVerdict.NOT_MEASURED in alone
                else "no"
                if alone[0] == alone[1]
                else "yes"
            )
            flipped = sum(one != other for one, other in measured)
            cells = (grid.claim.name, choice, own, option, *alone, flips, len(measured), flipped)
            rows.append(dict(zip(FLIP_COLUMNS, cells, strict=True)))
    return rows


def write_flip_page(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the matrix of claims and choices as Markdown, from rows of :func:`find_flips`."""
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
        "Each cell has the verdict if this choice alone changes and the rest stays as in the reference. In "
        "brackets: of all pairs of specifications that differ in this choice alone, how many have different "
        "verdicts. If the reference has fewer windows or checkpoints than the claim's page, its verdict is not "
        "the one on that page; the curve says so, and has no ring for that one. The reference is judged by the "
        "paper's estimator alone; where that is suspect, the claim's page has the verdict of others.",
        "",
        f"| claim | reference | {' | '.join(choices)} |",
        f"|{'---|' * (len(choices) + 2)}",
    ]
    for of_claim, results in cells.items():
        columns = ["<br>".join(results.get(choice, [])) for choice in choices]
        lines.append(f"| {' | '.join([*of_claim, *columns])} |")
    return "\n".join(lines) + "\n"
