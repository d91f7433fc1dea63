"""The notebook runs, and its file holds what it prints and draws."""

import base64
import re
from io import BytesIO
from pathlib import Path

import nbformat
import numpy as np
import PIL.Image
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

pytestmark = pytest.mark.long

NOTEBOOK = Path(__file__).parents[2] / "docs/tutorial/notebook.ipynb"
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")
LAST_DIGITS = 0.03  # of printed numbers, and of a training on another machine


def texts(cell: NotebookNode) -> str:
    """All that a cell prints or returns as text, without what goes to the standard error."""
    parts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream" and output.name == "stdout":
            parts.append(output.text)
        elif "data" in output and "image/png" not in output.data:
            parts.append(output.data["text/plain"])
    return "".join(parts)


def pictures(cell: NotebookNode) -> list[np.ndarray]:
    of_cell = [
        o.data["image/png"] for o in cell.get("outputs", []) if "image/png" in o.get("data", {})
    ]
    return [
        np.asarray(PIL.Image.open(BytesIO(base64.b64decode(png))).convert("RGB")) for png in of_cell
    ]


@pytest.fixture(scope="module")
def kept() -> NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


def test_a_run_gives_what_the_file_holds(kept, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parents[2] / "workflow"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    again = nbformat.from_dict(kept)
    NotebookClient(again, timeout=900, resources={"metadata": {"path": str(tmp_path)}}).execute()
    drawn = 0
    for before, after in zip(nbformat.read(NOTEBOOK, as_version=4).cells, again.cells, strict=True):
        words = [NUMBER.sub("#", texts(cell)).split() for cell in (before, after)]
        assert words[0] == words[1], before.source
        numbers = [[float(n) for n in NUMBER.findall(texts(cell))] for cell in (before, after)]
        np.testing.assert_allclose(*numbers, rtol=LAST_DIGITS, atol=LAST_DIGITS)
        shapes = [[picture.shape for picture in pictures(cell)] for cell in (before, after)]
        assert shapes[0] == shapes[1]
        for picture in pictures(before):
            coloured = np.ptp(picture.astype(int), axis=2) > 60
            assert coloured.mean() > 1e-3, "nothing is drawn"
            drawn += 1
    assert drawn == 1


def test_its_numbers_are_there(kept):
    printed = "".join(texts(cell) for cell in kept.cells)
    assert len(NUMBER.findall(printed)) > 40
    assert not any(o.output_type == "error" for cell in kept.cells for o in cell.get("outputs", []))
