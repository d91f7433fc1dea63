"""Words on the checkpoints that a figure leaves out or draws hollow."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from shape_of_learning.figures.captions import enumerated
from shape_of_learning.figures.inputs import DrawnModel
from shape_of_learning.figures.table_reader import Table

SHORTEST_RANGE = 4  # neighbours in the list of checkpoints; fewer are named one by one
MOST_NAMED = 6  # steps and ranges of one verdict
SOURCES = re.compile(r"\s*\((?:\s*https?://[^\s()]+)+\s*\)|\s*https?://\S+")


def omissions(
    verdicts: Table | None, models: Sequence[DrawnModel], *, sources: bool = True
) -> list[str]:
    """Say which checkpoints are left out and which are hollow, and why.

    Parameters
    ----------
    verdicts : Table or None
    models : sequence of DrawnModel
        Others are not mentioned.
    sources : bool
        Keep the addresses of web pages in the verdicts.

    Returns
    -------
    list of str
        Such as "Left out: Bloom-560M steps 500,000 (same weights as step 10000) and 600,000
        (broken).": a sentence on those left out and one on the hollow ones, if there are any. Steps
        with the same verdict are named together, four or more neighbours as a range.
    """
    if verdicts is None:
        return []
    rows = verdicts.rows.sort_values("step", kind="stable")
    if not sources:
        rows = rows.assign(verdict=rows["verdict"].map(without_sources))
    sentences = []
    for heading, shown in (("Left out", "no"), ("Hollow", "hollow")):
        parts = []
        for model in models:
            listed = rows[rows["model"] == model.name]
            chosen = (listed["shown"] == shown).to_numpy()
            if chosen.any():
                noun = "step" if chosen.sum() == 1 else "steps"
                parts.append(f"{model.label} {noun} {_by_verdict(listed, chosen)}")
        if parts:
            sentences.append(f"{heading}: {'; '.join(parts)}.")
    return sentences


def without_sources(verdict: str) -> str:
    """Drop web addresses, and the brackets around them; a verdict that is nothing else stays."""
    return SOURCES.sub("", verdict).strip(" :;,") or verdict


def _by_verdict(listed: pd.DataFrame, chosen: np.ndarray) -> str:
    """Steps of one model, each group with its verdict in brackets."""
    steps, verdicts = listed["step"].to_numpy(int), listed["verdict"].to_numpy(object)
    groups = []
    for verdict in dict.fromkeys(verdicts[chosen]):
        places = np.flatnonzero(chosen & (verdicts == verdict))
        text, is_shortened = _steps(steps, places)
        count = f"{len(places)} checkpoints: " if is_shortened else ""
        groups.append(f"{text} ({count}{verdict})")
    return enumerated(groups)


def _steps(steps: np.ndarray, places: np.ndarray) -> tuple[str, bool]:
    """Name the steps at ascending `places`; whether ranges stand for some of them.

    A range holds no checkpoint in between that is not meant, unless it says "with gaps".
    """
    named: list[str] = []
    shortened = False
    for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
        if len(run) >= SHORTEST_RANGE:
            named.append(f"{steps[run[0]]:,} to {steps[run[-1]]:,}")
            shortened = True
        else:
            named += [f"{steps[place]:,}" for place in run]
    if len(named) > MOST_NAMED:
        return f"{steps[places[0]]:,} to {steps[places[-1]]:,} with gaps", True
    return enumerated(named), shortened
