"""The notebook runs, and its file holds the output of a run."""

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
LAST_DIGITS = 0.03  # printed numbers are rounded, and a training differs by machine


def read_text(cell: NotebookNode) -> str:
    """Return the text that a cell prints or returns, without the standard error."""
    parts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream" and output.name == "stdout":
            parts.append(output.text)
        elif "data" in output and "image/png" not in output.data:
            parts.append(output.data["text/plain"])
    return "".join(parts)


def read_pictures(cell: NotebookNode) -> list[np.ndarray]:
    images = [
        o.data["image/png"] for o in cell.get("outputs", []) if "image/png" in o.get("data", {})
    ]
    return [
        np.asarray(PIL.Image.open(BytesIO(base64.b64decode(png))).convert("RGB")) for png in images
    ]


@pytest.fixture(scope="module")
def notebook() -> NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


def test_running_the_notebook_reproduces_its_saved_output(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parents[2] / "workflow"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    new_notebook = nbformat.from_dict(notebook)
    NotebookClient(
        new_notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    pictures_count = 0
    for saved_cell, new_cell in zip(
        nbformat.read(NOTEBOOK, as_version=4).cells, new_notebook.cells, strict=True
    ):
        words = [NUMBER.sub("#", read_text(cell)).split() for cell in (saved_cell, new_cell)]
        assert words[0] == words[1], saved_cell.source
        numbers = [
            [float(n) for n in NUMBER.findall(read_text(cell))] for cell in (saved_cell, new_cell)
        ]
        np.testing.assert_allclose(*numbers, rtol=LAST_DIGITS, atol=LAST_DIGITS)
        shapes = [
            [picture.shape for picture in read_pictures(cell)] for cell in (saved_cell, new_cell)
        ]
        assert shapes[0] == shapes[1]
        for picture in read_pictures(saved_cell):
            is_coloured = np.ptp(picture.astype(int), axis=2) > 60
            assert is_coloured.mean() > 1e-3, "nothing is drawn"
            pictures_count += 1
    assert pictures_count == 1


def test_the_saved_notebook_holds_numbers_and_no_errors(notebook):
    printed_text = "".join(read_text(cell) for cell in notebook.cells)
    assert len(NUMBER.findall(printed_text)) > 40
    assert not any(
        o.output_type == "error" for cell in notebook.cells for o in cell.get("outputs", [])
    )
