"""Sentences of captions and footnotes about the drawn tables, and numbers as words."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd

from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.tables import lacks_interval, read_visible_reasons
from shape_of_learning.metrics.tidy import GROUPS, have_few_windows
from shape_of_learning.words import enumerate_items, format_range


class Signs(NamedTuple):
    """The words of a footnote for the marks of defined and of undefined values."""

    value_mark: str
    undefined_mark: str


LINES = Signs("Lines", "Gaps, with a stroke at the lower edge")
CELLS = Signs("Colours", "Grey with a stroke")
SUSPECT, NOT_OK, NO_INTERVAL = "Open rings", "Open diamonds", "Crosses"
# With this many times as many vectors per dimension, a score changes by hundredths (docs/explanation/statistics.md).
UNLIKE_WIDTHS = 1.5
SCALES_DIFFER = "Panels differ in scale."
LN_I = "ln I"
# Definitions of letters on axes.
DEFINITIONS = {
    LN_I: "I is the least partition function Z(a) over the greatest, over directions a; Z(a) is the sum of "
    "exp(a x) over vectors x. ln I is 0 where vectors are isotropic.",
    "|b|": "b is the bias of the final norm.",
    "|b| / |g|": "g is its gain.",
}
MOST_STEPS = 6  # longer lists of steps with one verdict give the first and the last only


def format_short(number: float) -> str:
    """Write three digits and a suffix, such as 143k or 3T; 1024 stays as it is."""
    if 1000 < number < 10_000 and number % 10:
        return f"{number:.0f}"
    number = float(f"{number:.3g}")  # 999,999 is 1M
    for size, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{suffix}"
    return f"{number:.3g}"


def describe_estimates(table: pd.DataFrame, signs: Signs = LINES, bands: bool = True) -> str:
    """Say whether drawn values are means over batches or of all vectors together, and what bands are.

    Parameters
    ----------
    table : pandas.DataFrame
        A table of :mod:`shape_of_learning.figures.tables`.
    signs : Signs
        The marks of values.
    bands : bool
        Whether the figure has bands.
    """
    defined_rows = table[table["value"].notna()]
    if defined_rows.empty:
        return "No value is defined."
    units = "batches" if "layer" in table else "layers and batches"
    vectors = f"{format_counts(defined_rows['n'])} vectors"
    has_batches = defined_rows["batch_sd"].notna().any()
    words = f"mean over {units} of {vectors}" if has_batches else f"all {vectors} together"
    has_bands = bands and defined_rows["low"].notna().any()
    return f"{signs.value_mark}: {words}{'; bands: 95 % intervals' if has_bands else ''}."


def format_footnote(
    inputs: FigureInputs, table: pd.DataFrame, signs: Signs = LINES, *, bands: bool = True
) -> list[str]:
    """List the sentences below the panels: omissions, marks, missing values and intervals, the sample, bands.

    The parameters are those of :func:`describe_estimates`.
    """
    has_bands = bands and signs is LINES and table["low"].notna().any()
    sample = describe_sample(inputs, count_vectors(inputs, table))
    return [
        *describe_omissions(inputs),
        *describe_marks(inputs, table),
        describe_undefined(table, signs),
        describe_missing_intervals(inputs, table) if signs is LINES else "",
        describe_widths(inputs),
        *define_quantities(inputs),
        join_sentences(sample, _describe_bands(table) if has_bands else ""),
    ]


def _describe_bands(table: pd.DataFrame) -> str:
    """Explain bands, and the bars that replace a band where both neighbours of a point have no interval."""
    keys = ["model", "estimator", *(["revision"] if "layer" in table else [])]
    has_interval = table["low"].notna()
    lines = has_interval.groupby([table[key] for key in keys])
    has_neighbour = lines.shift(1, fill_value=False) | lines.shift(-1, fill_value=False)
    is_in_line = lines.transform("size") > 1
    has_bars = (has_interval & ~has_neighbour & is_in_line).any()
    return f"Bands: 95 % intervals{', bars where both neighbours have none' if has_bars else ''}."


def define_quantities(inputs: FigureInputs) -> list[str]:
    """Define the letters on the axes of the drawn measures."""
    axes = {measure.axis for measure in inputs.measures}
    return [sentence for axis, sentence in DEFINITIONS.items() if axis in axes]


def describe_sample(inputs: FigureInputs, vectors: str = "") -> str:
    """Name the windows and the text of a figure, and its number of vectors or tokens."""
    parts = [part for part in (inputs.sample, vectors) if part]
    return f"Text: {'; '.join(parts)}." if inputs.sample else ""


def count_vectors(inputs: FigureInputs, table: pd.DataFrame) -> str:
    """Return the number of vectors in a batch, by measure if measures differ; empty if it is unknown."""
    if not table["n"].notna().any():
        return ""
    labels_by_number: dict[str, list[str]] = {}
    for measure in inputs.measures:
        rows = table[table["estimator"] == measure.name]
        if rows["n"].notna().any():
            suffix = " a batch" if rows["batch_sd"].notna().any() else ""
            number = f"{format_counts(rows['n'])} vectors{suffix}"
            labels_by_number.setdefault(number, []).append(measure.label)
    if len(labels_by_number) < 2:
        suffix = " a batch" if table["batch_sd"].notna().any() else ""
        return f"{format_counts(table['n'])} vectors{suffix}"
    parts = (f"{number} ({', '.join(labels)})" for number, labels in labels_by_number.items())
    return "; ".join(parts)


def describe_missing_intervals(inputs: FigureInputs, table: pd.DataFrame) -> str:
    """Count the values without an interval, with the reasons: first values with a cross, then whole measures."""
    bare = table[lacks_interval(table)]
    is_crossed = bare["bare"].astype(bool)
    kinds = ((f"{NO_INTERVAL}: no", bare[is_crossed]), ("No", bare[~is_crossed]))
    return join_sentences(
        *(
            f"{sign} interval for {_count_values(len(rows), len(table))} ({_list_interval_gaps(inputs, rows)})."
            for sign, rows in kinds
            if len(rows)
        )
    )


def _count_values(number: int, total: int) -> str:
    return f"{number:,} of {total:,} values" if number < total else "any value"


def _list_interval_gaps(inputs: FigureInputs, bare: pd.DataFrame) -> str:
    """List the reasons for which values have no interval."""
    labels = {
        measure.name: measure.label
        for measure in inputs.measures
        if not measure.conditions.has_interval
    }
    lacks_coverage = bare["estimator"].isin(labels)
    lacks_groups = ~lacks_coverage & (bare["windows"] < GROUPS)
    is_decided_by_few = have_few_windows(bare["effective_windows"], bare["windows"])
    is_decided_by_few = is_decided_by_few.fillna(value=False).astype(bool)
    is_decided_by_few = ~lacks_coverage & ~lacks_groups & is_decided_by_few
    is_undefined_without_a_group = ~(lacks_coverage | lacks_groups | is_decided_by_few)
    names = set(bare["estimator"])
    words = enumerate_items([labels[name] for name in labels if name in names] or [""])
    reasons = {
        f"of {words}, whose coverage is not established": lacks_coverage,
        f"fewer than {GROUPS} windows": lacks_groups,
        "few windows decide": is_decided_by_few,
        "undefined without some group of windows": is_undefined_without_a_group,
    }
    return "; ".join(reason for reason, applies in reasons.items() if applies.any())


def describe_undefined(table: pd.DataFrame, signs: Signs = LINES) -> str:
    """Count the undefined or infinite values in one sentence; empty if there are none."""
    values = table["value"].to_numpy("float64")
    count = int((~np.isfinite(values)).sum())
    kinds = "undefined or infinite" if np.isinf(values).any() else "undefined"
    return f"{signs.undefined_mark}: {kinds} ({count:,} of {len(table):,} values)." if count else ""


def describe_marks(inputs: FigureInputs, table: pd.DataFrame) -> list[str]:
    """Describe averages without some layers, which do not compare with other averages, then suspect values."""
    uneven, suspect = [], []
    is_averaged = "layers" in table
    for measure in inputs.measures:
        rows = table[(table["estimator"] == measure.name) & table["value"].notna()]
        column, layers = "marked", None
        if is_averaged:
            column, layers = "suspect_layers", rows["layers"]
            parts = _count_by_model(rows, "layers_left_out", layers + rows["layers_left_out"])
            left_out = "is undefined in some layers, which are left out of the average"
            uneven += [f"{measure.label} {left_out}: {parts}."] if parts else []
        if parts := _count_by_model(rows, column, layers):
            reasons = chain.from_iterable(map(read_visible_reasons, rows["reason"].dropna()))
            sentences = dict.fromkeys(reason.sentence for reason in reasons)
            words = "; ".join(sentences) or "layers are suspect"
            if (rows[column] > 0).all():
                parts = {1: "in its only value", 2: "in both values"}.get(
                    len(rows), f"in all {len(rows):,} values"
                )
            suspect.append(f"{SUSPECT}: {measure.label} {parts}: {words}.")
    return [*uneven, *suspect]


def describe_widths(inputs: FigureInputs) -> str:
    """Warn if models differ so much in vectors per dimension that scores of fits do not compare; else return ``""``."""
    measures = [measure.name for measure in inputs.measures if measure.depends_on_width]
    if not measures:
        return ""
    rows = inputs.tables["estimates"]
    n = rows[rows["estimator"].isin(measures)].groupby("model")["n"].max()
    ratios = {m.label: n[m.name] / m.width for m in inputs.models if m.name in n and m.width}
    if not ratios or max(ratios.values()) <= UNLIKE_WIDTHS * min(ratios.values()):
        return ""
    ends = [
        f"{ratio:.2g} ({label})"
        for label, ratio in sorted(ratios.items(), key=lambda item: item[1])
    ]
    return (
        f"Linearity depends on the number of vectors per dimension, from {ends[0]} to {ends[-1]}, so do not "
        "compare these models."
    )


def _count_by_model(rows: pd.DataFrame, column: str, layers: pd.Series | None) -> str:
    """Count the marked layers of each model, or its marked averages and the most marked layers in one average."""
    parts = []
    for label, model_rows in rows.groupby("label", sort=False):
        marks = model_rows[column]
        if not marks.any():
            continue
        if layers is not None:
            part = f"at {(marks > 0).sum():,} of {len(marks):,} points"
            part += f", in up to {marks.max()} of {layers[marks.idxmax()]} layers"
        else:
            part = f"in {count_blocks(model_rows['layer'], marks > 0, model_rows['revision'].nunique())}"
        parts.append(f"of {label} {part}")
    return "; ".join(parts)


def count_blocks(layers: pd.Series, marks: pd.Series, steps: int = 1) -> str:
    """Count the marked blocks, or their values at several steps; name layer 0, the embeddings, apart."""
    is_block = layers >= 1
    number, total = (marks & is_block).sum(), is_block.sum()
    counts = [f"{number:,} of {total:,} blocks"] if number else []
    if number and steps > 1:
        share = f"all {total:,}" if number == total else f"{number:,} of {total:,}"
        counts = [f"{share} values ({layers[is_block].nunique():,} blocks, {steps:,} steps)"]
    if (marks & ~is_block).any():
        counts.append("the embeddings (layer 0)")
    return " and ".join(counts)


def describe_omissions(inputs: FigureInputs) -> list[str]:
    """List the omitted and the marked checkpoints with the reasons.

    Steps with the same verdict are listed together; long lists give the first and the last step only.
    """
    if inputs.verdicts is None:
        return [inputs.note]
    rows = inputs.verdicts.sort_values("step", kind="stable")
    sentences = [inputs.note]
    for heading, state in (("Left out", "no"), (NOT_OK, "hollow")):
        parts = []
        for model in inputs.models:
            model_rows = rows[rows["model"] == model.name]
            is_shown = model_rows["shown"] == state
            if is_shown.any():
                parts.append(f"{model.label} {_list_by_verdict(model_rows, is_shown)}")
        if parts:
            sentences.append(f"{heading}: {'; '.join(parts)}.")
    return sentences


def _list_by_verdict(table: pd.DataFrame, is_listed: pd.Series) -> str:
    """List steps of one model in groups of the same verdict, with the verdict in brackets."""
    noun = "steps " if is_listed.sum() > 1 else "step "
    groups = []
    for verdict, rows in table[is_listed].groupby("short_verdict", sort=False):
        steps, reason = rows["step"], verdict
        if steps.isna().any():  # the only checkpoint of a model without steps
            return f"({verdict})"
        words = enumerate_items([f"{step:,}" for step in steps])
        if len(steps) > MOST_STEPS:
            first, last = steps.iloc[0], steps.iloc[-1]
            total = table["step"].between(first, last).sum()
            words = f"{first:,} to {last:,}"
            reason = f"{len(steps):,} of {total:,} checkpoints: {verdict}"
        groups.append(f"{words} ({reason})")
    return noun + enumerate_items(groups)


def join_sentences(*sentences: str) -> str:
    """Join the sentences that are not empty."""
    return " ".join(sentence for sentence in sentences if sentence)


def escape_markup(words: str) -> str:
    """Escape the marks of Markdown and reStructuredText.

    The result is one line, since lines of reStructuredText can begin with directives.
    """
    return re.sub(r"([\\`*_{}\[\]<>&#|~])", r"\\\1", " ".join(words.split()))


def format_markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]], words: int) -> str:
    """Write a table whose first `words` columns are left-aligned text and whose other columns are numbers."""
    sides = [":--"] * words + ["--:"] * (len(heading) - words)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heading, sides, *rows))


def format_counts(values: Iterable[float]) -> str:
    """Write whole numbers as '4,096', or as '4,096 to 4,700' if they differ; write 'no' without numbers."""
    numbers = pd.Series(values).dropna()
    return "no" if numbers.empty else format_range(numbers, ",.0f")
