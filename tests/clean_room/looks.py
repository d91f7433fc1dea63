"""Check the content of outputs, with the standard library alone."""

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


def list_curves(rows: Sequence[Row]) -> dict[tuple[str, ...], list[tuple[int, float]]]:
    """List values by layer, for each measure, model, revision and selection."""
    curves = defaultdict(list)
    for row in rows:
        if row["layer"] and row["value"] and math.isfinite(float(row["value"])):
            key = tuple(row[name] for name in ("estimator", "model", "revision", "selection"))
            curves[key].append((int(row["layer"]), float(row["value"])))
    return {key: sorted(points) for key, points in curves.items()}


def look_at_table(path: Path, *, layers: int, measures: int) -> str:
    """Check that every measure has all blocks, and some measure the embeddings (a measure of blocks has no layer 0)."""
    rows = read_rows(path)
    layers_by_measure = defaultdict(list)
    for row in rows:
        layers_by_measure[row["estimator"]].append(row["layer"])
    assert len(layers_by_measure) >= measures, (
        f"{path} has the measures {sorted(layers_by_measure)}"
    )
    for measure, measure_layers in layers_by_measure.items():
        assert {*map(str, range(1, layers + 1))} <= {*measure_layers}, (
            f"{path}: {measure} has layers {measure_layers}"
        )
    assert "0" in {row["layer"] for row in rows}, f"{path} has no layer 0"
    rows_with_values = [row for row in rows if row["value"]]
    assert len(rows_with_values) > len(rows) / 2, f"{path}: most rows have no value"
    return (
        f"{path.name}: {len(rows)} rows, {len(layers_by_measure)} measures of layers 0 to {layers}"
    )


def look_at_json(path: Path, table: Path) -> str:
    """Check that the objects are the rows of the table, digit by digit."""
    objects, rows = json.loads(path.read_text(encoding="utf-8")), read_rows(table)
    assert len(objects) == len(rows), f"{path} has {len(objects)} objects, {table} {len(rows)} rows"
    for entry, row in zip(objects, rows, strict=True):
        value = entry["value"]
        number = float(row["value"]) if row["value"] else None
        assert (value, entry["estimator"]) == (number, row["estimator"]), f"{path}: {entry}, {row}"
    return f"{path.name}: {len(objects)} objects, equal to the rows of {table.name}"


def look_at_terminal(output: str, *, layers: int) -> str:
    """Check that the printed table has a line for each layer."""
    lines = [
        layer for layer in range(layers + 1) if re.search(rf"^ *{layer} +\S", output, re.MULTILINE)
    ]
    assert lines == [*range(layers + 1)], f"the terminal shows the layers {lines} alone"
    return f"terminal: a line for each of the layers 0 to {layers}"


def look_at_printed(output: str, expected_text: str) -> str:
    """Check that each line on a page is printed, with numbers that agree to a few hundredths.

    A line `...` stands for some lines, and at the end of a line `...` stands for further words.
    """
    printed_lines = [line.split() for line in output.splitlines()]
    lines = [line.split() for line in expected_text.splitlines() if line.strip(" .")]
    for words in lines:
        assert any(are_alike(words, printed_words) for printed_words in printed_lines), (
            f"not printed: {' '.join(words)}"
        )
    return f"terminal: all {len(lines)} lines that the page states"


def are_alike(words: Sequence[str], other_words: Sequence[str]) -> bool:
    """Return whether two lines have the same words, except for the last digits of numbers."""
    if words[-1] == "...":
        words, other_words = words[:-1], other_words[: len(words) - 1]
    if len(words) != len(other_words):
        return False
    for word, other in zip(words, other_words, strict=True):
        numbers, other_numbers = (re.findall(r"\d*\.?\d+", text) for text in (word, other))
        if re.sub(r"\d*\.?\d+", "#", word) != re.sub(r"\d*\.?\d+", "#", other):
            return False
        for a, b in zip(numbers, other_numbers, strict=True):
            if abs(float(a) - float(b)) > 0.02 + 0.1 * abs(float(a)):
                return False
    return True


def look_at_drawing(path: Path, table: Path) -> str:
    """Check that an SVG has a line through the values of each measure of the table."""
    lines = []
    for element in ElementTree.parse(path).iter():
        if element.tag.endswith("path"):
            points = POINT.findall(element.get("d", ""))
            lines.append([(float(x), float(y)) for x, y in points])
    drawn_measures, absent_measures = [], []
    for key, points in list_curves(read_rows(table)).items():
        values = [value for _, value in points]
        if len(points) > 2 and max(values) > min(values):
            goes_through = any(is_line_of(line, points) for line in lines)
            (drawn_measures if goes_through else absent_measures).append(key[0])
    assert not absent_measures, f"{path} has no line through the values of {absent_measures}"
    assert drawn_measures, f"{table} has no curve to look for"
    return (
        f"{path.name}: lines through the values of {len(drawn_measures)} measures of {table.name}"
    )


def is_line_of(line: Sequence[tuple[float, float]], points: Sequence[tuple[int, float]]) -> bool:
    """Return whether a line of a drawing goes through points, on linear or logarithmic axes."""
    if len(line) != len(points):
        return False
    x, y = zip(*line, strict=True)
    layers, values = zip(*points, strict=True)
    scales = [values, [*map(math.log, values)]] if min(values) > 0 else [values]
    return is_affine(x, layers) and any(is_affine(y, scale) for scale in scales)


def is_affine(sequence: Sequence[float], reference: Sequence[float]) -> bool:
    """Return whether two sequences differ only in origin and unit, to a thousandth of their range."""
    low, high = (
        min(range(len(reference)), key=reference.__getitem__),
        max(range(len(reference)), key=reference.__getitem__),
    )
    if sequence[low] == sequence[high]:
        return False
    unit = (sequence[high] - sequence[low]) / (reference[high] - reference[low])
    expected = [sequence[low] + unit * (value - reference[low]) for value in reference]
    bound = 1e-3 * abs(sequence[high] - sequence[low])
    return all(abs(a - b) <= bound for a, b in zip(sequence, expected, strict=True))


def look_at_explorer(page: Path, table: Path) -> str:
    """Check that every value of the table is in the page, rounded to six digits."""
    encoded_content = re.search(r'id="content">([^<]+)<', page.read_text(encoding="utf-8"))[1]
    content = json.loads(gzip.decompress(base64.b64decode(encoded_content)))
    values_by_series = defaultdict(set)
    for measure, model, _, rows in content["series"]:
        for row in rows:
            values_by_series[measure, model] |= {
                cell for cell in row if isinstance(cell, int | float)
            }
    values = 0
    for key, points in list_curves(read_rows(table)).items():
        for layer, value in points:
            where = f"{page}: {key[0]} of {key[1]} at layer {layer}"
            assert float(f"{value:.6g}") in values_by_series[key[:2]], f"{where} is not {value:.6g}"
            values += 1
    assert values, f"{table} has no value to compare with {page}"
    return f"{page.name}: all {values} values of {table.name}"


def look_at_comparison(path: Path) -> str:
    """Check that two different models have differences."""
    cells = [cell for row in read_rows(path) for cell in row.values()]
    numbers = [float(cell) for cell in cells if re.fullmatch(NUMBER, cell or "")]
    assert any(numbers), f"{path} has no difference"
    return f"{path.name}: {len(numbers)} numbers, not all of them 0"
