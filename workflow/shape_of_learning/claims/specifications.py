"""The verdicts on a claim under every specification of its analysis, and the choices that flip the verdict."""

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
    select_good_rows,
)
from shape_of_learning.claims.judgement import Judgement, judge
from shape_of_learning.metrics.measure_entry import AFTER, BEFORE, ROW_CHOICES

VALUE_CHOICES = (*ROW_CHOICES, "last_layer")  # choices with a column in the tables of values
FLIP_COLUMNS = (
    "claim",
    "choice",
    "reference",
    "option",
    "verdict_of_reference",
    "verdict",
    "flips",
    "pairs",
    "flipped_pairs",
)
# Judgements by the options of a claim's choices; the first judgement is for the reference.
SpecificationJudgements = Mapping[tuple[str, ...], Judgement]


class MeasuredChoices:
    """The values of all models under all specifications.

    Parameters
    ----------
    models : iterable of EvidenceModel
        All models of the run.
    near_duplicate_limits : mapping of str to float or None
        As in :class:`.Evidence`.
    tables : iterable of Path
        Tables of the jobs that measured checkpoints.
    verdicts : iterable of Path
        ``tables/verdicts/{model}.csv``. If a model has verdicts, only its good checkpoints count.
    """

    def __init__(
        self,
        models: Iterable[EvidenceModel],
        near_duplicate_limits: Mapping[str, float | None],
        tables: Iterable[Path],
        verdicts: Iterable[Path],
    ):
        self._models = {model.name: model for model in models}
        self._near_duplicate_limits = near_duplicate_limits
        keys = ["model", "estimator", *VALUE_CHOICES]
        rows = select_good_rows(read_tables(tables, ["layer", *ROW_CHOICES]), read_tables(verdicts))
        if len(rows):
            # Only the last layer has a state before the final norm; the values of other layers hold for both.
            rows_before_norm = rows[rows["last_layer"] == AFTER].assign(last_layer=BEFORE)
            rows = pd.concat([rows, rows_before_norm]).drop_duplicates([*keys, "revision", "layer"])
        self._curves = group_curves(keys, rows)

    def make_evidence(
        self, specification: Mapping[str, str], substitutes: Mapping[str, str]
    ) -> Evidence:
        """Return the evidence under a specification.

        Parameters
        ----------
        specification : mapping
            An option of each choice.
        substitutes : mapping of str to str
            Estimator of the claim -> the estimator that takes its place; it may be missing in some models.
        """
        options = [specification[name] for name in VALUE_CHOICES]
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


def judge_specifications(grid: ClaimGrid, choices: MeasuredChoices) -> SpecificationJudgements:
    """Judge a claim under every combination of its choices; the first combination is the reference."""
    judgements = {}
    for specification in grid.list_specifications():
        claim = replace(
            grid.claim,
            average_over=specification["average_over"],
            other_estimators=(),
            robustness={},
        )
        judgements[tuple(specification.values())] = judge(
            claim, choices.make_evidence(specification, grid.choose_estimators(specification))
        )
    return judgements


def find_flips(grid: ClaimGrid, judgements: SpecificationJudgements) -> list[dict[str, Any]]:
    """Compare each option with the option of the reference, in the reference and in all other specifications.

    Parameters
    ----------
    grid : ClaimGrid
    judgements : mapping of tuple of str to Judgement
        From :func:`judge_specifications`.

    Returns
    -------
    list of dict
        Rows with `FLIP_COLUMNS`. ``flips`` says whether the verdict changes if only this choice of the reference
        changes, and is empty if either specification is not measured. ``pairs`` counts the measured pairs of
        specifications that differ in this choice only, and ``flipped_pairs`` the pairs with different verdicts.
    """
    rows = []
    for place, (choice, (reference, *alternatives)) in enumerate(grid.choices.items()):
        for option in alternatives:
            pairs = [
                (
                    judgement.verdict,
                    judgements[*options[:place], option, *options[place + 1 :]].verdict,
                )
                for options, judgement in judgements.items()
                if options[place] == reference
            ]
            single_change = pairs[0]  # the first specification is the reference
            measured_pairs = [pair for pair in pairs if ClaimVerdict.NOT_MEASURED not in pair]
            if ClaimVerdict.NOT_MEASURED in single_change:
                flips = ""
            else:
                flips = "no" if single_change[0] == single_change[1] else "yes"
            flip_count = sum(verdict != other_verdict for verdict, other_verdict in measured_pairs)
            cells = (
                grid.claim.name,
                choice,
                reference,
                option,
                *single_change,
                flips,
                len(measured_pairs),
                flip_count,
            )
            rows.append(dict(zip(FLIP_COLUMNS, cells, strict=True)))
    return rows


def format_flip_page(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the matrix of claims and choices in Markdown from the rows of :func:`find_flips`."""
    if not rows:
        return (
            "No claim to compare: the claims use other tables or models that the run does not have, or each of the "
            "`choices` has a single option.\n"
        )
    choices = list(dict.fromkeys(row["choice"] for row in rows))
    cells: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in rows:
        result = {"yes": f"**{row['verdict']}**", "no": "same", "": row["verdict"]}[row["flips"]]
        words = f"{row['option']}: {result} ({row['flipped_pairs']} of {row['pairs']})"
        claim_cells = cells.setdefault((row["claim"], row["verdict_of_reference"]), {})
        claim_cells.setdefault(row["choice"], []).append(words)
    lines = [
        "Each cell has the verdict if this choice alone changes and the other choices stay as in the reference. The "
        "brackets say how many of all pairs of specifications that differ in this choice alone have different "
        "verdicts. If the reference has fewer windows or checkpoints than the claim's page, its verdict is not the "
        "verdict on that page; the curve says so, and does not mark the reference with a ring. The reference is judged "
        "by the paper's estimator alone; if its values are suspect, the claim's page has the verdict of other "
        "estimators.",
        "",
        f"| claim | reference | {' | '.join(choices)} |",
        f"|{'---|' * (len(choices) + 2)}",
    ]
    for (claim, reference), results in cells.items():
        columns = ["<br>".join(results.get(choice, [])) for choice in choices]
        lines.append(f"| {' | '.join([claim, reference, *columns])} |")
    return "\n".join(lines) + "\n"
