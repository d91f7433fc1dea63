"""Sentences with numbers on the main findings in the estimates of checkpoints."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from shape_of_learning.files import parse_cell
from shape_of_learning.metrics.suspects import FEW_WINDOWS, REASONS, Reason, read_reasons
from shape_of_learning.words import enumerate_items, format_range

Row = Mapping[str, Any]
ANISOTROPY, WITHOUT_MASSIVE = "anisotropy", "anisotropy_without_massive_tokens"
MEAN, MEDIAN = "mada", "mada_median"
DIMENSIONS = {
    MEDIAN: "the median of MADA",
    MEAN: "MADA",
    "mom": "MOM",
    "mle": "MLE",
    "two_nn": "TwoNN",
}  # estimators that copies and a few vectors disturb least come first
TAIL = 1.5  # the mean of local dimensions over their median; 1.08 in a cloud that has the same dimension everywhere
ANISOTROPIC = 0.5  # from this anisotropy on, one direction has most of the variance
PLATEAU = 0.05  # the largest distance below the peak
MOST_TOGETHER = 2  # models in a sentence on dimensions
MOST_RUNS = 3  # runs of consecutive blocks in a sentence


class Curves(NamedTuple):
    """The values of one checkpoint: its label, the rows of each measure by layer, and layers without a value."""

    label: str
    rows: Mapping[str, Mapping[int, Row]]
    undefined_layers: Mapping[str, Sequence[int]]

    def select_blocks(self, measure: str) -> dict[int, Row]:
        """Return the rows of the blocks, by block; layer 0, the embeddings, is not a block."""
        return {layer: row for layer, row in self.rows.get(measure, {}).items() if layer >= 1}

    def list_undefined_blocks(self, measure: str) -> list[int]:
        """Return the blocks in which a measure has no value."""
        return [layer for layer in self.undefined_layers.get(measure, ()) if layer >= 1]

    @property
    def sample_size(self) -> str:
        """The number of windows, as words for a sentence; empty if it is unknown."""
        numbers = {
            round(number)
            for rows_by_layer in self.rows.values()
            for row in rows_by_layer.values()
            if math.isfinite(number := parse_cell(row.get("windows")))
        }
        return f", {max(numbers)} windows" if numbers else ""


def find_sentences(label: str, rows: Iterable[Row]) -> list[str]:
    """Describe the findings in the blocks of a checkpoint.

    Parameters
    ----------
    label : str
        The printed name of the model.
    rows : iterable of mapping
        Rows of ``tables/estimates.csv``, with cells as numbers or text; rows without a layer are ignored.

    Returns
    -------
    list of str
        At most one sentence on anisotropy and one on the intrinsic dimension.
    """
    curves = _read_curves(label, rows)
    return [
        sentence for sentence in (_say_anisotropy(curves), _say_dimension([curves])) if sentence
    ]


class NamedCheckpoint(NamedTuple):
    """A checkpoint: the names of model and revision in tables, and the printed name of the model."""

    model: str
    label: str
    revision: str


class FindingsJob(NamedTuple):
    """The job that writes the findings in some checkpoints."""

    checkpoints: tuple[NamedCheckpoint, ...]


def find_all_sentences(rows: Iterable[Row], checkpoints: Sequence[NamedCheckpoint]) -> list[str]:
    """Describe the findings in several models: first the anisotropy of each model, then their dimensions.

    Parameters
    ----------
    rows : iterable of mapping
        Rows as for :func:`find_sentences`, of any checkpoints.
    checkpoints : sequence of NamedCheckpoint
        A checkpoint of each model.
    """
    rows_by_checkpoint: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        rows_by_checkpoint.setdefault((row["model"], row["revision"]), []).append(row)
    curves = [
        _read_curves(label, rows_by_checkpoint.get((model, revision), []))
        for model, label, revision in checkpoints
    ]
    together = [curves] if len(curves) <= MOST_TOGETHER else [[curve] for curve in curves]
    sentences = [*map(_say_anisotropy, curves), *map(_say_dimension, together)]
    return [sentence for sentence in sentences if sentence]


def _read_curves(label: str, rows: Iterable[Row]) -> Curves:
    rows_by_measure: dict[str, dict[int, Row]] = {}
    undefined_layers: dict[str, list[int]] = {}
    for row in rows:
        layer, value = parse_cell(row["layer"]), parse_cell(row["value"])
        if math.isfinite(layer) and math.isfinite(value):
            rows_by_measure.setdefault(str(row["estimator"]), {})[int(layer)] = row
        elif math.isfinite(layer):
            undefined_layers.setdefault(str(row["estimator"]), []).append(int(layer))
    return Curves(label, rows_by_measure, undefined_layers)


def _say_anisotropy(curves: Curves) -> str:
    rows = curves.select_blocks(ANISOTROPY)
    if not rows:
        return ""
    begin = f"{curves.label}{curves.sample_size}: "
    values = _read_values(rows)
    anisotropic_blocks = [layer for layer, value in values.items() if value >= ANISOTROPIC]
    if not anisotropic_blocks:
        sentence = f"no block is anisotropic ({ANISOTROPIC:g} or more); {_say_highest(rows)}"
        massive_clause = _say_without_massive(curves, find_highest_blocks(rows))
        return f"{begin}{sentence}{massive_clause}{_say_undefined_anisotropy(curves)}."
    plateau = _find_layers_around(values, max(values, key=values.__getitem__))
    where = f" in {name_blocks(plateau)}" if plateau != anisotropic_blocks else ""
    plateau_words = f"({format_range((values[layer] for layer in plateau), '.2f')}{where})"
    is_everywhere = len(anisotropic_blocks) == len(rows) > 1
    is_everywhere &= not curves.list_undefined_blocks(ANISOTROPY)
    blocks = f"all {len(rows)} blocks" if is_everywhere else name_blocks(anisotropic_blocks)
    sentence = f"anisotropy is {ANISOTROPIC:g} or more in {blocks} {plateau_words}"
    massive_clause = _say_without_massive(curves, anisotropic_blocks)
    return f"{begin}{sentence}{massive_clause}{_say_undefined_anisotropy(curves)}."


def _say_undefined_anisotropy(curves: Curves) -> str:
    """Name the blocks in which anisotropy is undefined, for example because hidden states are NaN."""
    blocks = curves.list_undefined_blocks(ANISOTROPY)
    return f"; undefined in {name_blocks(blocks)}" if blocks else ""


def _say_highest(rows: Mapping[int, Row]) -> str:
    """Describe the highest anisotropy, and name its blocks if intervals distinguish them from other blocks."""
    values = _read_values(rows)
    top = find_highest_blocks(rows)
    if len(top) == len(rows):
        return f"anisotropy is {format_range(values.values(), '.2f')}"
    return f"the highest anisotropy is {format_range((values[layer] for layer in top), '.2f')}, in {name_blocks(top)}"


def _say_without_massive(curves: Curves, layers: Sequence[int]) -> str:
    """Describe the anisotropy of blocks without massive tokens, and the share of these tokens."""
    rows_without = curves.select_blocks(WITHOUT_MASSIVE)
    compared_blocks = [layer for layer in layers if layer in rows_without]
    if not compared_blocks:
        return ""
    if _has_none_massive(curves):
        return "; no block has massive tokens"
    values_without = {layer: parse_cell(rows_without[layer]["value"]) for layer in compared_blocks}
    begin = f"; without the tokens that are massive in any layer{_say_share(curves, compared_blocks)} it is"
    anisotropic_blocks = [layer for layer, value in values_without.items() if value >= ANISOTROPIC]
    still_clause = (
        f", still {ANISOTROPIC:g} or more in {name_blocks(anisotropic_blocks)}"
        if anisotropic_blocks
        else ""
    )
    runs = _split_runs(compared_blocks)
    ranges = [format_range((values_without[layer] for layer in run), ".2f") for run in runs]
    if len(set(ranges)) == 1 or len(runs) > MOST_RUNS:
        return f"{begin} {format_range(values_without.values(), '.2f')} there{still_clause}"
    parts = [
        f"{run_range} in {name_blocks(run)}" for run_range, run in zip(ranges, runs, strict=True)
    ]
    return f"{begin} {enumerate_items(parts)}{still_clause}"


def _say_share(curves: Curves, layers: Iterable[int]) -> str:
    """Describe the share of massive vectors; empty if it is unknown.

    The share is the same in all layers, except in tables of earlier versions.
    """
    rows = curves.select_blocks(ANISOTROPY)
    rows_without = curves.select_blocks(WITHOUT_MASSIVE)
    shares = [
        1 - parse_cell(rows_without[layer]["n"]) / parse_cell(rows[layer]["n"]) for layer in layers
    ]
    # A batch without massive tokens may be larger if the text is divided into fewer batches.
    if not all(0 <= share < 0.5 for share in shares):
        return ""
    return f" ({format_range((100 * share for share in shares), '.1f')} % of the vectors)"


def _has_none_massive(curves: Curves) -> bool:
    """Return whether no vector of any block is massive, so that values with and without massive tokens are equal."""
    rows = curves.select_blocks(ANISOTROPY)
    rows_without = curves.select_blocks(WITHOUT_MASSIVE)
    return bool(rows_without) and all(
        layer in rows
        and all(parse_cell(row[key]) == parse_cell(rows[layer][key]) for key in ("value", "n"))
        for layer, row in rows_without.items()
    )


def _say_dimension(models: Sequence[Curves]) -> str:
    measure = next(
        (name for name in DIMENSIONS if any(model.select_blocks(name) for model in models)), None
    )
    if measure is None:
        return ""
    parts = [_say_dimension_of(model, measure) for model in models if model.select_blocks(measure)]
    doubted_measures = [name for name in DIMENSIONS if not (name == MEAN and measure == MEDIAN)]
    doubts = [_say_tail(models), *(_say_doubts(models, name) for name in doubted_measures)]
    sentence = f"Among blocks, the intrinsic dimension by {DIMENSIONS[measure]} is {enumerate_items(parts)}"
    return f"{'; '.join(filter(None, [sentence, *doubts]))}."


def _say_tail(models: Sequence[Curves]) -> str:
    """Describe the mean of MADA in blocks in which a few vectors raise it far above the median."""
    parts = []
    for curves in models:
        means = _read_values(curves.select_blocks(MEAN))
        medians = _read_values(curves.select_blocks(MEDIAN))
        raised_blocks = [n for n in means if n in medians and means[n] > TAIL * medians[n]]
        if raised_blocks:
            range_of_means = format_range((means[n] for n in raised_blocks), ".0f")
            raised_share = f"{len(raised_blocks)} of {len(means)} blocks of {curves.label}"
            parts.append(f"{raised_share} ({range_of_means})")
    if not parts:
        return ""
    return f"its mean, which a few vectors raise, is more than {TAIL:g} times as high in {enumerate_items(parts)}"


def _say_dimension_of(curves: Curves, measure: str) -> str:
    """Describe a model's dimension, and name its highest blocks if intervals distinguish them from other blocks.

    Suspect values do not count unless all values are suspect.
    """
    rows = curves.select_blocks(measure)
    reliable_rows = {layer: row for layer, row in rows.items() if not _read_doubts(row)} or rows
    values = _read_values(reliable_rows)
    top = find_highest_blocks(reliable_rows)
    highest = format_range((values[layer] for layer in top), ".0f")
    undefined_blocks = curves.list_undefined_blocks(measure)
    details = []
    if (last := max([*rows, *undefined_blocks])) in values and last not in top:
        details.append(f"{values[last]:.0f} in the last")
    embeddings = curves.rows[measure].get(0)
    if embeddings and not _read_doubts(embeddings):
        details.append(f"{parse_cell(embeddings['value']):.0f} in the embeddings")
    if undefined_blocks:
        details.append(f"undefined in {name_blocks(undefined_blocks)}")
    if len(top) == len(reliable_rows):
        bracket = f" ({', '.join(details)})" if details else ""
        is_everywhere = len(top) == len(rows) and not undefined_blocks
        where = "all blocks" if is_everywhere else name_blocks(top)
        return f"{highest} in {where} of {curves.label}{bracket}"
    bracket = "; ".join(filter(None, (highest, ", ".join(details))))
    return f"highest in {name_blocks(top)} of {curves.label} ({bracket})"


def _say_doubts(models: Sequence[Curves], measure: str) -> str:
    """Count the blocks in which a measure is suspect, and name the causes."""
    counts: list[str] = []
    reasons: set[Reason] = set()
    for curves in models:
        rows = curves.select_blocks(measure)
        block_reasons = [_read_doubts(row) for row in rows.values() if _read_doubts(row)]
        reasons.update(reason for row_reasons in block_reasons for reason in row_reasons)
        if block_reasons:
            share = "all" if len(block_reasons) == len(rows) else f"{len(block_reasons)} of"
            blocks = f"{share} {len(rows)} blocks" if len(rows) > 1 else "the only block"
            counts.append(blocks + (f" of {curves.label}" if len(models) > 1 else ""))
    if not counts:
        return ""
    where = " and ".join(counts)
    causes = ", ".join(reason.cause for reason in REASONS.values() if reason in reasons)
    return f"{DIMENSIONS[measure]} is suspect in {where} ({causes})"


def _read_doubts(row: Row) -> list[Reason]:
    cell = row.get("reason")
    reasons = read_reasons(cell) if isinstance(cell, str) else []
    return [reason for reason in reasons if reason is not FEW_WINDOWS]


def find_highest_blocks(rows: Mapping[int, Row]) -> list[int]:
    """List the block with the highest value and all blocks whose intervals overlap with its interval.

    Without intervals, all blocks are listed.
    """
    values = _read_values(rows)
    peak = max(values, key=values.__getitem__)
    peak_low = parse_cell(rows[peak].get("low"))
    return [n for n, row in rows.items() if n == peak or not parse_cell(row.get("high")) < peak_low]


def _find_layers_around(values: Mapping[int, float], peak: int) -> list[int]:
    """List the consecutive layers around a peak whose values are nearly as high."""
    layers = [peak]
    for step in (-1, 1):
        layer = peak + step
        while values.get(layer, -math.inf) >= max(values[peak] - PLATEAU, ANISOTROPIC):
            layers.append(layer)
            layer += step
    return sorted(layers)


def name_blocks(layers: Sequence[int]) -> str:
    """Name blocks, with runs of consecutive blocks as "first to last".

    Examples
    --------
    >>> name_blocks([3, 4, 5, 8, 12, 13])
    'blocks 3 to 5, 8, 12 and 13'
    """
    names: list[str] = []
    for run in _split_runs(layers):
        names += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(layer) for layer in run]
    return f"block{'s' * (len(layers) > 1)} {enumerate_items(names)}"


def _split_runs(layers: Iterable[int]) -> list[list[int]]:
    """Split layers into runs of consecutive layers."""
    runs: list[list[int]] = []
    for layer in sorted(layers):
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return runs


def _read_values(rows: Mapping[int, Row]) -> dict[int, float]:
    return {layer: parse_cell(row["value"]) for layer, row in rows.items()}
