"""Specification curves: a claim under every combination of choices, by effect, and the choices below.

Simonsohn, Simmons and Nelson, Specification curve analysis, Nature Human Behaviour 4 (2020).
"""

import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shape_of_learning.claims.choices import Choices, ClaimChoices, Rows
from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.judging import (
    CONTRADICTED,
    NOT_MEASURED,
    SUPPORTED,
    UNDECIDED,
    VERDICTS,
)
from shape_of_learning.claims.rules import in_words, only_bound
from shape_of_learning.claims.specifications import Specified, specification_rows
from shape_of_learning.figures import captions
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.style import INK, TEXT_WIDTH

# Told apart by shape and by lightness, too.
LOOKS = {
    SUPPORTED: {"color": "#01508a", "marker": "o"},
    CONTRADICTED: {"color": "#d55e00", "marker": "v"},
    UNDECIDED: {"color": "0.62", "marker": "s"},
    NOT_MEASURED: {"color": "0.85", "marker": "s"},
}
CURVE_HEIGHT, ROW_HEIGHT, TITLE_HEIGHT = 1.7, 0.115, 0.13  # inches
LABEL_WIDTH = 1.75  # inches, of the names of options
BY_NUMBERS = "By the numbers alone"  # begins why a verdict is undecided that these would decide
OF_WINDOWS = "from leaving out each of 16 groups of windows"
OVER_PAIRS = "of means over pairs of one seed each"
MOST_DOTS = 130  # beyond, dots would run into each other and become strokes


def specification_curve(
    of: ClaimChoices, judged: Sequence[Specified], protocol: Mapping[str, Any]
) -> Drawing:
    """Draw one claim.

    Parameters
    ----------
    of : ClaimChoices
    judged : sequence of Specified
        From :func:`.judged_specifications`.
    protocol : mapping
        What the caption says of the sample: `windows`, `window_characters`, `source`, `batch_vectors`, and
        `checkpoints`, at how many a long training is measured.
    """
    rows, choices = specification_rows(of, judged), of.choices
    bound, axis = _axis(of.claim)
    estimators = set(of.decided_by.values())
    table = pd.DataFrame(rows)
    title = textwrap.wrap(of.claim.sentence, 120)
    number = sum(map(len, choices.values()))
    matrix_height = ROW_HEIGHT * (number + 0.6 * (len(choices) - 1)) + 0.1
    above = TITLE_HEIGHT * len(title) + 0.28  # and the legend
    figure = Figure(figsize=(TEXT_WIDTH, above + CURVE_HEIGHT + matrix_height + 0.2))
    figure.set_layout_engine("none")  # labels of options stand in a column of their own
    width, height = figure.get_size_inches()
    left, across = LABEL_WIDTH / width, 1 - (LABEL_WIDTH + 0.1) / width
    matrix = figure.add_axes((left, 0.06 / height, across, matrix_height / height))
    curve = figure.add_axes(
        (left, 0.16 / height + matrix_height / height, across, CURVE_HEIGHT / height)
    )
    handles = _draw_curve(curve, table, axis, bound)
    _draw_matrix(matrix, table, choices, estimators)
    figure.text(0.01, 1 - 0.04 / height, "\n".join(title), va="top", fontsize=7.5, color=INK)
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0, 1 - (TITLE_HEIGHT * len(title) + 0.03) / height),
        ncols=len(handles),
        handletextpad=0.1,
        columnspacing=1.2,
    )
    return Drawing(figure, table, _caption(of, judged, table, protocol))


def _axis(claim: Claim) -> tuple[float, str]:
    """Where the rule decides, and what the effect is, as :class:`.Judgement` has it."""
    words = textwrap.fill(claim.statistic.replace("_", " "), 24)
    bound = only_bound(claim.rule[SUPPORTED])
    return (0, f"{words}:\ndistance to the bounds") if bound is None else (bound[1], words)


def _caption(
    of: ClaimChoices,
    judged: Sequence[Specified],
    table: pd.DataFrame,
    protocol: Mapping[str, Any],
) -> str:
    counts = [(verdict, int((table["verdict"] == verdict).sum())) for verdict in VERDICTS]
    measured = table[table["estimate"].notna()]
    effects = measured[["estimate", "low", "high"]].map("{:.6g}".format)
    different = len(effects.drop_duplicates())
    models = sorted({name for each in judged for name in each.judgement.models})
    at = {
        "last": "at the last checkpoint",
        "training": f"at up to {protocol['checkpoints']} checkpoints, spread evenly by rank",
    }[of.claim.checkpoints]
    fixed = [
        f"{name.replace('_', ' ')} {of.reference[name]}"
        for name, usual in asdict(Rows()).items()
        if name not in of.choices and of.reference[name] != usual
    ]
    sizes = [float(n) for each in judged for n in each.judgement.n]
    n = captions.range_of(sizes) if sizes else "no"
    of_twins = of.claim.statistic == "twins_less_originals"
    estimators = set(of.decided_by.values())
    reference = [
        f"{name.replace('_', ' ')} {option if name in estimators else option.replace('_', ' ')}"
        for name, option in judged[0].specification.items()
    ]
    return captions.caption(
        f"{of.claim.sentence} ({of.claim.where}.)",
        f"The claim under {len(table):,} specifications, every combination of the choices below, by "
        f"effect: {captions.enumerated([f'{number:,} {verdict}' for verdict, number in counts if number])}.",
        f"Some choices change nothing: there are {different:,} different effects."
        if different < len(measured)
        else "",
        f"Effect: {of.claim.statistic} of {captions.enumerated(list(of.claim.estimators))}, or of what "
        f"stands for it; bars: 95 % intervals {OVER_PAIRS if of_twins else OF_WINDOWS}; line: bound of the "
        "rule.",
        *(
            f"{each.capitalize()}: {in_words(of.claim.rule[each]).replace('`', '')}."
            for each in (SUPPORTED, CONTRADICTED)
        ),
        f"Models: {captions.enumerated(models)}, {at}." if models else "",
        f"{protocol['windows']} windows of {protocol['window_characters']} characters of "
        f"{protocol['source']}, or a share of them; batches of {n} vectors."
        if sizes
        else "",
        f"All with {captions.enumerated(fixed)}." if fixed else "",
        "Hollow: decided by the numbers alone, but some are beyond the conditions of their estimator."
        if table["because"].str.startswith(BY_NUMBERS).any()
        else "",
        "Specifications share windows and models, so that they are not independent tests.",
        f"Reference: {', '.join(reference)}.",
    )


def _draw_curve(axes: Axes, table: pd.DataFrame, axis: str, bound: float) -> list[Line2D]:
    number = len(table)
    axes.axhline(bound, color="0.4", linewidth=0.6, zorder=1)
    size = _dot_size(axes, number)
    handles = []
    for verdict in VERDICTS:
        own = table[table["verdict"] == verdict]
        if own.empty:
            continue
        look = LOOKS[verdict]
        known = own[own["estimate"].notna()]
        axes.vlines(
            known["rank"],
            known["low"],
            known["high"],
            color=look["color"],
            linewidth=min(1, size / 3),
        )
        axes.plot(known["rank"], known["estimate"], linestyle="", markersize=size, zorder=3, **look)
        label = f"{verdict}: {len(own):,}"
        handles.append(Line2D([], [], linestyle="", markersize=4, label=label, **look))
        beyond = known[known["because"].str.startswith(BY_NUMBERS)]
        if not beyond.empty:
            hollow = {"linestyle": "", "markerfacecolor": "white", "markeredgewidth": 0.6, **look}
            hollow["markeredgecolor"] = look["color"]
            axes.plot(beyond["rank"], beyond["estimate"], markersize=size, zorder=4, **hollow)
            handles.append(Line2D([], [], markersize=4, label="(conditions not met)", **hollow))
    reference = _reference(table)
    handles.append(_mark_reference(axes, reference["rank"], reference["estimate"], size))
    axes.set(xlim=(0.3, number + 0.7), xticks=[], ylabel=axis)
    if table["estimate"].isna().all():
        reason = textwrap.fill(table["because"].iloc[0], 90)
        axes.text(0.5, 0.6, reason, transform=axes.transAxes, ha="center")
        axes.set_yticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    return handles


def _reference(table: pd.DataFrame) -> pd.Series:
    return table[table["is_reference"] == "yes"].iloc[0]


def _mark_reference(axes: Axes, rank: int, estimate: float, size: float) -> Line2D:
    axes.axvline(rank, color="0.85", linewidth=0.8, zorder=0)
    ring = {"markerfacecolor": "none", "markeredgecolor": INK, "markeredgewidth": 0.7}
    if not np.isnan(estimate):
        axes.plot([rank], [estimate], marker="o", markersize=size + 3, zorder=4, **ring)
    return Line2D([], [], linestyle="", marker="o", markersize=6, label="reference", **ring)


def _draw_matrix(
    axes: Axes, table: pd.DataFrame, choices: Choices, estimators: Collection[str]
) -> None:
    number, height = len(table), 0.0
    size = _dot_size(axes, number)
    marker = "o" if number <= MOST_DOTS else "|"
    places, labels = [], []
    axes.axvline(_reference(table)["rank"], color="0.85", linewidth=0.8, zorder=0)
    for choice, options in choices.items():
        first = height
        for option in options:
            axes.axhline(height, color="0.93", linewidth=0.4, zorder=0)
            for verdict in VERDICTS:
                own = table[(table[choice] == option) & (table["verdict"] == verdict)]
                colour = LOOKS[verdict]["color"]
                axes.plot(
                    *(own["rank"], np.full(len(own), height)),
                    **{"linestyle": "", "marker": marker, "color": colour},
                    markersize=size if marker == "o" else 5.5,
                    markeredgewidth=0 if marker == "o" else min(1, size / 2),
                )
            places.append(height)
            labels.append(option if choice in estimators else option.replace("_", " "))
            height += 1
        axes.annotate(
            choice if choice in options else choice.replace("_", " "),
            (-(LABEL_WIDTH - 0.08) * 72, first),
            xycoords=("axes points", "data"),
            va="center",
            fontweight="bold",
            fontsize=6,
            annotation_clip=False,
        )
        height += 0.6
    axes.set(xlim=(0.3, number + 0.7), ylim=(height - 1.1, -0.6), xticks=[])
    axes.set_yticks(places, labels, fontsize=6)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _dot_size(axes: Axes, number: int) -> float:
    """Points across, so that neighbours do not touch."""
    width = axes.get_position().width * axes.figure.get_size_inches()[0] * 72
    return float(np.clip(0.75 * width / max(number, 1), 1.2, 4))
