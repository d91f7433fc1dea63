"""What stands out in the estimates of checkpoints, in sentences with numbers."""

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
}  # first those that copies and a few vectors disturb least
TAIL = 1.5  # the mean of local dimensions over their median; in a cloud of one dimension it is 1.08
ANISOTROPIC = 0.5  # from which on one direction has most of the variance
PLATEAU = 0.05  # below the peak
MOST_TOGETHER = 2  # models whose dimensions one sentence can hold
MOST_RUNS = 3  # of consecutive blocks that one sentence tells apart


class Curves(NamedTuple):
    """The values of one checkpoint: its label, the rows of each measure by layer, and layers without a value."""

    label: str
    rows: Mapping[str, Mapping[int, Row]]
    undefined: Mapping[str, Sequence[int]]

    def blocks(self, measure: str) -> dict[int, Row]:
        """Return the rows of the blocks; the embeddings, layer 0, are none."""
        return {layer: row for layer, row in self.rows.get(measure, {}).items() if layer >= 1}

    def undefined_blocks(self, measure: str) -> list[int]:
        """Return the blocks in which a measure has no value."""
        return [layer for layer in self.undefined.get(measure, ()) if layer >= 1]

    @property
    def windows(self) -> str:
        """How many windows were measured, as a sentence says it."""
        numbers = {
            round(number)
            for of_measure in self.rows.values()
            for row in of_measure.values()
            if math.isfinite(number := parse_cell(row.get("windows")))
        }
        return f", {max(numbers)} windows" if numbers else ""


def find_sentences(label: str, rows: Iterable[Row]) -> list[str]:
    """Say what stands out in the blocks of one checkpoint.

    Parameters
    ----------
    label : str
        What the model is called.
    rows : iterable of mapping
        Of ``tables/estimates.csv``, with numbers or text; rows without a layer are passed over.

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
    """A checkpoint on which sentences are written: names in tables, and the printed name of the model."""

    model: str
    label: str
    revision: str


class FindingsJob(NamedTuple):
    """The checkpoints whose findings are written."""

    checkpoints: tuple[NamedCheckpoint, ...]


def find_all_sentences(rows: Iterable[Row], checkpoints: Sequence[NamedCheckpoint]) -> list[str]:
    """Say what stands out in several models: first the anisotropy of each model, then their dimensions.

    Parameters
    ----------
    rows : iterable of mapping
        As of :func:`find_sentences`, of any checkpoints.
    checkpoints : sequence of NamedCheckpoint
        One of each model.
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
    found: dict[str, dict[int, Row]] = {}
    undefined: dict[str, list[int]] = {}
    for row in rows:
        layer, value = parse_cell(row["layer"]), parse_cell(row["value"])
        if math.isfinite(layer) and math.isfinite(value):
            found.setdefault(str(row["estimator"]), {})[int(layer)] = row
        elif math.isfinite(layer):
            undefined.setdefault(str(row["estimator"]), []).append(int(layer))
    return Curves(label, found, undefined)


def _say_anisotropy(curves: Curves) -> str:
    rows = curves.blocks(ANISOTROPY)
    if not rows:
        return ""
    begin = f"{curves.label}{curves.windows}: "
    values = _values(rows)
    high = [layer for layer, value in values.items() if value >= ANISOTROPIC]
    if not high:
        sentence = f"no block is anisotropic ({ANISOTROPIC:g} or more); {_say_highest(rows)}"
        without = _say_without_massive(curves, find_highest_blocks(rows))
        return f"{begin}{sentence}{without}{_say_undefined_anisotropy(curves)}."
    plateau = _find_layers_around(values, max(values, key=values.__getitem__))
    where = f" in {name_blocks(plateau)}" if plateau != high else ""
    inside = f"({format_range((values[layer] for layer in plateau), '.2f')}{where})"
    blocks = f"all {len(rows)} blocks" if len(high) == len(rows) else name_blocks(high)
    sentence = f"anisotropy is {ANISOTROPIC:g} or more in {blocks} {inside}"
    return (
        f"{begin}{sentence}{_say_without_massive(curves, high)}{_say_undefined_anisotropy(curves)}."
    )


def _say_undefined_anisotropy(curves: Curves) -> str:
    """Say in which blocks anisotropy is undefined, as of NaN in their hidden states."""
    blocks = curves.undefined_blocks(ANISOTROPY)
    return f"; undefined in {name_blocks(blocks)}" if blocks else ""


def _say_highest(rows: Mapping[int, Row]) -> str:
    """Say how high anisotropy is, and where, if its intervals tell some blocks from the others."""
    values = _values(rows)
    top = find_highest_blocks(rows)
    if len(top) == len(rows):
        return f"anisotropy is {format_range(values.values(), '.2f')}"
    return f"the highest anisotropy is {format_range((values[layer] for layer in top), '.2f')}, in {name_blocks(top)}"


def _say_without_massive(curves: Curves, layers: Sequence[int]) -> str:
    """Say what is left of the anisotropy of blocks without massive tokens, and how many these are."""
    without = curves.blocks(WITHOUT_MASSIVE)
    known = [layer for layer in layers if layer in without]
    if not known:
        return ""
    if _has_none_massive(curves):
        return "; no block has massive tokens"
    left = {layer: parse_cell(without[layer]["value"]) for layer in known}
    begin = f"; without the tokens that are massive in any layer{_say_share(curves, known)} it is"
    still = [layer for layer, value in left.items() if value >= ANISOTROPIC]
    also = f", still {ANISOTROPIC:g} or more in {name_blocks(still)}" if still else ""
    runs = _split_runs(known)
    ranges = [format_range((left[layer] for layer in run), ".2f") for run in runs]
    if len(set(ranges)) == 1 or len(runs) > MOST_RUNS:
        return f"{begin} {format_range(left.values(), '.2f')} there{also}"
    parts = [f"{of_run} in {name_blocks(run)}" for of_run, run in zip(ranges, runs, strict=True)]
    return f"{begin} {enumerate_items(parts)}{also}"


def _say_share(curves: Curves, layers: Iterable[int]) -> str:
    """Say which share of the vectors is massive; nothing if it is not known.

    It is the same in all layers, except in tables of earlier versions.
    """
    rows, without = curves.blocks(ANISOTROPY), curves.blocks(WITHOUT_MASSIVE)
    shares = [
        1 - parse_cell(without[layer]["n"]) / parse_cell(rows[layer]["n"]) for layer in layers
    ]
    # A batch without them may be larger where the text is divided into fewer batches.
    if not all(0 <= share < 0.5 for share in shares):
        return ""
    return f" ({format_range((100 * share for share in shares), '.1f')} % of the vectors)"


def _has_none_massive(curves: Curves) -> bool:
    """Return whether no vector of any block is massive, so that it is as if they were left out."""
    rows, without = curves.blocks(ANISOTROPY), curves.blocks(WITHOUT_MASSIVE)
    return bool(without) and all(
        layer in rows
        and all(parse_cell(row[key]) == parse_cell(rows[layer][key]) for key in ("value", "n"))
        for layer, row in without.items()
    )


def _say_dimension(models: Sequence[Curves]) -> str:
    measure = next(
        (name for name in DIMENSIONS if any(model.blocks(name) for model in models)), None
    )
    if measure is None:
        return ""
    parts = [_say_dimension_of(model, measure) for model in models if model.blocks(measure)]
    others = [name for name in DIMENSIONS if not (name == MEAN and measure == MEDIAN)]
    doubts = filter(None, [_say_tail(models), *(_say_doubts(models, name) for name in others)])
    sentence = f"Among blocks, the intrinsic dimension by {DIMENSIONS[measure]} is {enumerate_items(parts)}"
    return f"{'; '.join([sentence, *doubts])}."


def _say_tail(models: Sequence[Curves]) -> str:
    """Say what the mean of MADA is where a few vectors raise it far above the median."""
    parts = []
    for curves in models:
        means, medians = _values(curves.blocks(MEAN)), _values(curves.blocks(MEDIAN))
        raised = [n for n in means if n in medians and means[n] > TAIL * medians[n]]
        if raised:
            range_of_means = format_range((means[n] for n in raised), ".0f")
            where = f"{len(raised)} of {len(means)} blocks of {curves.label}"
            parts.append(f"{where} ({range_of_means})")
    if not parts:
        return ""
    return f"its mean, which a few vectors raise, is more than {TAIL:g} times as high in {enumerate_items(parts)}"


def _say_dimension_of(curves: Curves, measure: str) -> str:
    """Say where it is highest, if its intervals tell some blocks from the others, of values that are not suspect."""
    rows = curves.blocks(measure)
    sound = {layer: row for layer, row in rows.items() if not _read_doubts(row)} or rows
    values, top = _values(sound), find_highest_blocks(sound)
    highest = format_range((values[layer] for layer in top), ".0f")
    undefined = curves.undefined_blocks(measure)
    beside = []
    if (last := max([*rows, *undefined])) in values and last not in top:
        beside.append(f"{values[last]:.0f} in the last")
    embeddings = curves.rows[measure].get(0)
    if embeddings and not _read_doubts(embeddings):
        beside.append(f"{parse_cell(embeddings['value']):.0f} in the embeddings")
    if undefined:
        beside.append(f"undefined in {name_blocks(undefined)}")
    if len(top) == len(sound):
        inside = f" ({', '.join(beside)})" if beside else ""
        return f"{highest} in all blocks of {curves.label}{inside}"
    inside = "; ".join(filter(None, (highest, ", ".join(beside))))
    return f"highest in {name_blocks(top)} of {curves.label} ({inside})"


def _say_doubts(models: Sequence[Curves], measure: str) -> str:
    """Say in how many blocks a measure is suspect, and why."""
    counts: list[str] = []
    reasons: set[Reason] = set()
    for curves in models:
        rows = curves.blocks(measure)
        suspect = [_read_doubts(row) for row in rows.values() if _read_doubts(row)]
        reasons.update(reason for found in suspect for reason in found)
        if suspect:
            share = "all" if len(suspect) == len(rows) else f"{len(suspect)} of"
            whose = f" of {curves.label}" if len(models) > 1 else ""
            counts.append(f"{share} {len(rows)} blocks{whose}")
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
    """List the block with the highest value, and those that its interval does not tell from it.

    Without intervals nothing tells blocks apart, so that all are listed.
    """
    values = _values(rows)
    peak = max(values, key=values.__getitem__)
    least = parse_cell(rows[peak].get("low"))
    return [n for n, row in rows.items() if n == peak or not parse_cell(row.get("high")) < least]


def _find_layers_around(values: Mapping[int, float], peak: int) -> list[int]:
    """List the layers around a peak without a gap whose values are nearly as high."""
    found = [peak]
    for step in (-1, 1):
        layer = peak + step
        while values.get(layer, -math.inf) >= max(values[peak] - PLATEAU, ANISOTROPIC):
            found.append(layer)
            layer += step
    return sorted(found)


def name_blocks(layers: Sequence[int]) -> str:
    """Name blocks, those without a gap by the first and the last.

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
    """Split layers where there is a gap."""
    runs: list[list[int]] = []
    for layer in sorted(layers):
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return runs


def _values(rows: Mapping[int, Row]) -> dict[int, float]:
    return {layer: parse_cell(row["value"]) for layer, row in rows.items()}
