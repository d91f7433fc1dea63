"""Draw specification curves: the effects of a claim under all combinations of choices, above these choices.

Simonsohn, Simmons and Nelson, Specification curve analysis, Nature Human Behaviour 4 (2020).
"""

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shape_of_learning.claims.claim import (
    DECIDED,
    Claim,
    ClaimGrid,
    ClaimVerdict,
    format_choice,
    format_option,
)
from shape_of_learning.claims.criteria import find_only_bound
from shape_of_learning.claims.judgement import OTHER_SEEDS
from shape_of_learning.claims.specifications import SpecificationJudgements
from shape_of_learning.figures import marks
from shape_of_learning.figures.captions import format_counts, join_sentences
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.style import INK, TEXT_WIDTH
from shape_of_learning.metrics.registry import find_measure, list_measure_names
from shape_of_learning.words import enumerate_items

# Verdicts also differ in shape and in lightness.
LOOKS = {
    ClaimVerdict.SUPPORTED: {"color": "#01508a", "marker": "o"},
    ClaimVerdict.CONTRADICTED: {"color": "#d55e00", "marker": "v"},
    ClaimVerdict.UNDECIDED: {"color": "0.62", "marker": "s"},
    ClaimVerdict.OUTSIDE: {"color": "#ca9161", "marker": "x"},
    ClaimVerdict.NOT_MEASURED: {"color": "0.85", "marker": "."},
}
CURVE_HEIGHT, ROW_HEIGHT, TITLE_HEIGHT = 1.7, 0.115, 0.13  # inches
LABEL_WIDTH = 1.75  # inches for the names of options
SIZES = (1.2, 4)  # points: the smallest and the largest dot
MOST_DOTS = 130  # more specifications are strokes, since dots would overlap


def draw_specification_curve(
    grid: ClaimGrid, judgements: SpecificationJudgements, sample: str = ""
) -> Drawing:
    """Draw the estimates of a claim above their choices, or without estimates the choices and the reason.

    Parameters
    ----------
    grid : ClaimGrid
    judgements : mapping of tuple of str to Judgement
        The result of :func:`.judge_specifications`.
    sample : str
        The windows and the text of the run, for the last line.
    """
    table = _tabulate_specifications(grid, judgements)
    has_curve = bool(table["estimate"].notna().any())
    title = textwrap.wrap(grid.claim.sentence, 120) + ([f"With {grid.less}."] if grid.less else [])
    if not has_curve:
        title += textwrap.wrap(table["because"].iloc[0].replace("`", ""), 120)
    options = sum(map(len, grid.free_choices.values()))
    matrix_height = ROW_HEIGHT * (options + 0.6 * (len(grid.free_choices) - 1)) + 0.1
    above = TITLE_HEIGHT * len(title) + 0.28  # and the legend
    note = marks.wrap_sentences(
        _format_footnote(grid, judgements, table, sample),
        TEXT_WIDTH - 2 * marks.SIDE,
        marks.NOTE["fontsize"],
    )
    below = TITLE_HEIGHT * (note.count("\n") + 1) + 0.1
    curve_height = CURVE_HEIGHT if has_curve else 0.0
    height = above + curve_height + matrix_height + 0.1 + below
    figure = Figure(figsize=(TEXT_WIDTH, height))
    figure.set_layout_engine("none")  # labels of options stand in a column of their own
    left_edge = LABEL_WIDTH / TEXT_WIDTH
    width = 1 - (LABEL_WIDTH + 0.1) / TEXT_WIDTH
    matrix = figure.add_axes((left_edge, below / height, width, matrix_height / height))
    panels = [matrix]
    if has_curve:
        bottom = (below + 0.1 + matrix_height) / height
        panels.append(figure.add_axes((left_edge, bottom, width, curve_height / height)))
    reference = table[table["is_reference"] == "yes"]
    for axes in panels:
        if not grid.less:
            axes.axvline(reference["rank"].item(), color="0.85", linewidth=0.8, zorder=0)
        axes.set(xlim=(0.3, len(table) + 0.7), xticks=[])
    pitch = 72 * width * TEXT_WIDTH / len(table)  # points between neighbours, which must not touch
    size = float(np.clip(0.75 * pitch, *SIZES))
    if has_curve:
        _draw_curve(panels[1], table, grid.claim, size)
    handles = [
        marks.make_legend_handle(f"{verdict}: {count:,}", linestyle="", markersize=4, **look)
        for verdict, look in LOOKS.items()
        if (count := (table["verdict"] == verdict).sum())
    ]
    if has_curve and not grid.less:
        ring = {
            "markerfacecolor": "none",
            "markeredgecolor": INK,
            "markeredgewidth": 0.7,
            "zorder": 4,
        }
        _draw_dots(panels[1], reference, size + 3, marker="o", **ring)
        handles.append(
            marks.make_legend_handle("reference", linestyle="", marker="o", markersize=6, **ring)
        )
    _draw_matrix(matrix, table, grid, size)
    inches = figure.dpi_scale_trans
    figure.text(marks.SIDE, marks.SIDE, note, transform=inches, gid="footnote", **marks.NOTE)
    figure.text(0.01, 1 - 0.04 / height, "\n".join(title), va="top", fontsize=7.5, color=INK)
    top = 1 - (TITLE_HEIGHT * len(title) + 0.03) / height
    spaces = {"handletextpad": 0.1, "columnspacing": 1.2, "ncols": len(handles)}
    figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, top), **spaces)
    return Drawing(figure, table, _format_caption(grid, judgements, table))


def _tabulate_specifications(grid: ClaimGrid, judgements: SpecificationJudgements) -> pd.DataFrame:
    """Make a table with a row per specification, by ascending estimate; rows without an estimate come last."""
    options = pd.DataFrame(list(judgements), columns=[*grid.choices])[[*grid.free_choices]]
    judgement_table = pd.DataFrame([vars(judgement) for judgement in judgements.values()])
    verdicts = judgement_table[["verdict", "estimate", "low", "high"]].assign(
        n=judgement_table["n"].map(";".join)
    )
    table = pd.concat([verdicts, options, judgement_table["because"]], axis=1)
    table.insert(0, "is_reference", np.where(table.index, "no", "yes"))
    table = table.sort_values("estimate", kind="stable", ignore_index=True)
    table.insert(0, "rank", table.index + 1)
    table.insert(0, "claim", grid.claim.name)
    return table


def _format_caption(
    grid: ClaimGrid, judgements: SpecificationJudgements, table: pd.DataFrame
) -> str:
    claim, counts = grid.claim, table["verdict"].value_counts()
    verdicts = enumerate_items(
        [f"{counts[verdict]:,} {verdict}" for verdict in LOOKS if verdict in counts]
    )
    return join_sentences(
        claim.sentence,
        f"All {len(table):,} combinations of choices: {verdicts}. {_describe_bars(grid, judgements)}",
        "The verdict on the page of claims is that of the run's own choices, with all windows and vectors."
        if grid.less
        else "Ring: the verdict on the page of claims"
        + (" without its other estimators." if claim.other_estimators else "."),
        "Without weights of plausibility, a curve of all choices is no verdict.",
    )


def _describe_bars(grid: ClaimGrid, judgements: SpecificationJudgements) -> str:
    """Say over which units intervals are taken."""
    units = "pairs" if grid.claim.statistic == "twins_less_originals" else "windows"
    numbers = (number for judgement in judgements.values() for number in judgement.numbers)
    if any(OTHER_SEEDS in number.unit for number in numbers):
        units = "seeds and windows"
    return f"Bars: 95 % intervals over {units}."


def _format_footnote(
    grid: ClaimGrid, judgements: SpecificationJudgements, table: pd.DataFrame, sample: str
) -> list[str]:
    """List the sentences below the choices: on bars and level lines, the text, and the number of vectors."""
    n = [float(n.replace(",", "")) for cell in table["n"] for n in cell.split(";") if n]
    vectors = f"; {format_counts(n)} vectors a batch" if n else ""
    text = f"Text: {sample}{vectors}." if sample else ""
    if table["estimate"].isna().all():
        return [text]
    return [f"{_describe_bars(grid, judgements)} Level lines: where the verdict changes.", text]


def _draw_curve(axes: Axes, table: pd.DataFrame, claim: Claim, size: float) -> None:
    """Draw effects by rank with their intervals."""
    bounds = {verdict: find_only_bound(claim.find_condition(verdict)) for verdict in DECIDED}
    bound = bounds[ClaimVerdict.SUPPORTED]
    if bound is None:
        axes.axhline(0, color="0.4", linewidth=0.6, zorder=1)
    for verdict, level in bounds.items() if bound else ():
        if level:
            axes.axhline(level[1], color=LOOKS[verdict]["color"], linewidth=0.6, zorder=1)
    words = textwrap.fill(claim.statistic.replace("_", " "), 24)
    if units := sorted(
        {find_measure(n).axis for n in claim.estimators if n in list_measure_names()}
    ):
        words += f"\n({textwrap.fill(', '.join(units), 24)})"
    axes.set_ylabel(words if bound else f"{words}:\ndistance to the bounds")
    axes.spines["bottom"].set_visible(False)
    for verdict, look in LOOKS.items():
        rows = table[(table["verdict"] == verdict) & table["estimate"].notna()]
        bars = {"color": look["color"], "linewidth": min(1, size / 3)}
        axes.vlines(rows["rank"], rows["low"], rows["high"], **bars)
        _draw_dots(axes, rows, size, **look)


def _draw_dots(axes: Axes, rows: pd.DataFrame, size: float, **look: Any) -> None:
    """Draw estimates by rank."""
    axes.plot(
        rows["rank"], rows["estimate"], markersize=size, **{"linestyle": "", "zorder": 3, **look}
    )


def _draw_matrix(axes: Axes, table: pd.DataFrame, grid: ClaimGrid, size: float) -> None:
    """Mark the options of each specification in the colour of its verdict."""
    mark: dict[str, Any] = {"marker": "o", "markeredgewidth": 0}
    if len(table) > MOST_DOTS:
        mark, size = {"marker": "|", "markeredgewidth": min(1, size / 2)}, 5.5
    labels, height = {}, 0.0
    for choice, options in grid.free_choices.items():
        axes.annotate(
            format_choice(choice),
            (-(LABEL_WIDTH - 0.08) * 72, height),
            xycoords=("axes points", "data"),
            va="center",
            fontweight="bold",
            fontsize=6,
            annotation_clip=False,
        )
        for option in options:
            axes.axhline(height, color="0.93", linewidth=0.4, zorder=0)
            rows = table[table[choice] == option]
            for verdict, look in LOOKS.items():
                ranks = rows.loc[rows["verdict"] == verdict, "rank"]
                places = [height] * len(ranks)
                # Smaller marks distinguish `not measured` from `undecided`, which is grey, too.
                mark["markersize"] = size / 2 if verdict == ClaimVerdict.NOT_MEASURED else size
                axes.plot(ranks, places, linestyle="", color=look["color"], **mark)
            labels[height] = format_option(choice, option)
            height += 1
        height += 0.6
    axes.set(ylim=(height - 1.1, -0.6))
    axes.set_yticks([*labels], [*labels.values()], fontsize=6)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
