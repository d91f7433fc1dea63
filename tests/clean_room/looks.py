"""What must be in an output: its numbers, and not only its name. Standard library alone."""

import base64
import csv
import gzip
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

Row = dict[str, str]
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
POINT = re.compile(rf"[ML] ({NUMBER}) ({NUMBER})")


def read_rows(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def curves_of(rows: Sequence[Row]) -> dict[tuple[str, ...], list[tuple[int, float]]]:
    """Values by layer, by measure, model, revision and selection."""
    curves = defaultdict(list)
    for row in rows:
        if row["layer"] and row["value"] and math.isfinite(float(row["value"])):
            key = tuple(row[name] for name in ("estimator", "model", "revision", "selection"))
            curves[key].append((int(row["layer"]), float(row["value"])))
    return {key: sorted(points) for key, points in curves.items()}


def look_at_table(path: Path, *, layers: int, measures: int) -> str:
    """Every measure must have every block, and some the embeddings; a measure of blocks has no layer 0."""
    rows = read_rows(path)
    by_measure = defaultdict(list)
    for row in rows:
        by_measure[row["estimator"]].append(row["layer"])
    assert len(by_measure) >= measures, f"{path} has the measures {sorted(by_measure)}"
    for measure, found in by_measure.items():
        assert {*map(str, range(1, layers + 1))} <= {*found}, (
            f"{path}: {measure} has layers {found}"
        )
    assert "0" in {row["layer"] for row in rows}, f"{path} has no layer 0"
    with_values = [row for row in rows if row["value"]]
    assert len(with_values) > len(rows) / 2, f"{path}: most rows have no value"
    return f"{path.name}: {len(rows)} rows, {len(by_measure)} measures of layers 0 to {layers}"


def look_at_json(path: Path, table: Path) -> str:
    """The objects must be the rows of the table, digit by digit."""
    objects, rows = json.loads(path.read_text(encoding="utf-8")), read_rows(table)
    assert len(objects) == len(rows), f"{path} has {len(objects)} objects, {table} {len(rows)} rows"
    for entry, row in zip(objects, rows, strict=True):
        value = entry["value"]
        number = float(row["value"]) if row["value"] else None
        assert (value, entry["estimator"]) == (number, row["estimator"]), f"{path}: {entry}, {row}"
    return f"{path.name}: {len(objects)} objects, equal to the rows of {table.name}"


def look_at_terminal(said: str, *, layers: int) -> str:
    """The printed table must have a line for each layer."""
    lines = [
        layer for layer in range(layers + 1) if re.search(rf"^ *{layer} +\S", said, re.MULTILINE)
    ]
    assert lines == [*range(layers + 1)], f"the terminal shows the layers {lines} alone"
    return f"terminal: a line for each of the layers 0 to {layers}"


def look_at_printed(said: str, stated: str) -> str:
    """Each line that a page states must be printed, its numbers to a few hundredths.

    A line `...` stands for some lines, and at the end of a line `...` stands for what follows.
    """
    printed = [line.split() for line in said.splitlines()]
    lines = [line.split() for line in stated.splitlines() if line.strip(" .")]
    for words in lines:
        assert any(are_alike(words, others) for others in printed), (
            f"not printed: {' '.join(words)}"
        )
    return f"terminal: all {len(lines)} lines that the page states"


def are_alike(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two lines have the same words, but for the last digits of numbers."""
    if words[-1] == "...":
        words, others = words[:-1], others[: len(words) - 1]
    if len(words) != len(others):
        return False
    for word, other in zip(words, others, strict=True):
        one, two = (re.findall(r"\d*\.?\d+", text) for text in (word, other))
        if re.sub(r"\d*\.?\d+", "#", word) != re.sub(r"\d*\.?\d+", "#", other):
            return False
        for a, b in zip(one, two, strict=True):
            if abs(float(a) - float(b)) > 0.02 + 0.1 * abs(float(a)):
                return False
    return True


def look_at_drawing(path: Path, table: Path) -> str:
    """An SVG must have a line through the values of each measure of the table."""
    lines = []
    for element in ElementTree.parse(path).iter():
        if element.tag.endswith("path"):
            points = POINT.findall(element.get("d", ""))
            lines.append([(float(x), float(y)) for x, y in points])
    drawn, absent = [], []
    for key, points in curves_of(read_rows(table)).items():
        values = [value for _, value in points]
        if len(points) > 2 and max(values) > min(values):
            goes_through = any(is_line_of(line, points) for line in lines)
            (drawn if goes_through else absent).append(key[0])
    assert not absent, f"{path} has no line through the values of {absent}"
    assert drawn, f"{table} has no curve to look for"
    return f"{path.name}: lines through the values of {len(drawn)} measures of {table.name}"


def is_line_of(line: Sequence[tuple[float, float]], points: Sequence[tuple[int, float]]) -> bool:
    """Whether a line of a drawing goes through points, on axes that are linear or logarithmic."""
    if len(line) != len(points):
        return False
    across, up = zip(*line, strict=True)
    layers, values = zip(*points, strict=True)
    scales = [values, [*map(math.log, values)]] if min(values) > 0 else [values]
    return is_affine(across, layers) and any(is_affine(up, scale) for scale in scales)


def is_affine(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two sequences are the same but for an origin and a unit, to a thousandth of their range."""
    low, high = (
        min(range(len(other)), key=other.__getitem__),
        max(range(len(other)), key=other.__getitem__),
    )
    if one[low] == one[high]:
        return False
    unit = (one[high] - one[low]) / (other[high] - other[low])
    expected = [one[low] + unit * (value - other[low]) for value in other]
    bound = 1e-3 * abs(one[high] - one[low])
    return all(abs(a - b) <= bound for a, b in zip(one, expected, strict=True))


def look_at_explorer(page: Path, table: Path) -> str:
    """Every value of the table must be in the page, rounded to six digits."""
    packed = re.search(r'id="content">([^<]+)<', page.read_text(encoding="utf-8"))[1]
    content = json.loads(gzip.decompress(base64.b64decode(packed)))
    held = defaultdict(set)
    for measure, model, _, rows in content["series"]:
        for row in rows:
            held[measure, model] |= {cell for cell in row if isinstance(cell, int | float)}
    values = 0
    for key, points in curves_of(read_rows(table)).items():
        for layer, value in points:
            where = f"{page}: {key[0]} of {key[1]} at layer {layer}"
            assert float(f"{value:.6g}") in held[key[:2]], f"{where} is not {value:.6g}"
            values += 1
    assert values, f"{table} has no value to compare with {page}"
    return f"{page.name}: all {values} values of {table.name}"


def look_at_comparison(path: Path) -> str:
    """Two models that differ must have differences."""
    cells = [cell for row in read_rows(path) for cell in row.values()]
    numbers = [float(cell) for cell in cells if re.fullmatch(NUMBER, cell or "")]
    assert any(numbers), f"{path} has no difference"
    return f"{path.name}: {len(numbers)} numbers, not all of them 0"
