"""The blocks of a page, with the headings above them."""

import ast
import json
import re
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(
    r"^```(?P<language>[\w{}-]*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SHELL = ("", "sh", "bash", "console")


class Place(NamedTuple):
    """The page, the heading and the language of a block."""

    page: str
    heading: str
    language: str  # "shell" for all of SHELL


class Block(NamedTuple):
    place: Place
    text: str


def read_blocks(repository: Path, page: str) -> list[Block]:
    """Read all fenced blocks of a page in order, or the code and the printed output of a notebook."""
    if page.endswith(".ipynb"):
        return read_notebook(repository, page)
    text = (repository / page).read_text(encoding="utf-8")
    blocks, heading, end = [], "", 0
    for fence in FENCE.finditer(text):
        above = HEADING.findall(text[end : fence.start()])
        heading, end = above[-1] if above else heading, fence.end()
        language = "shell" if fence["language"] in SHELL else fence["language"]
        blocks.append(Block(Place(page, heading, language), fence["text"]))
    return blocks


def read_notebook(repository: Path, page: str) -> list[Block]:
    """Read the code of a notebook as one block, and its saved output as another block."""
    cells = json.loads((repository / page).read_text(encoding="utf-8"))["cells"]
    title = HEADING.findall("".join(cells[0]["source"]))[0]
    code_cells = [cell for cell in cells if cell["cell_type"] == "code"]
    lines = ["".join(cell["source"]).replace("%matplotlib inline\n", "") for cell in code_cells]
    outputs = [
        "".join(output["text"])
        for cell in code_cells
        for output in cell["outputs"]
        if output.get("name") == "stdout"
    ]
    code = "\n".join(lines)
    return [
        Block(Place(page, title, "python"), f"{code}\n"),
        Block(Place(page, title, "text"), "".join(outputs)),
    ]


def show_last_value(code: str) -> str:
    """Print the value of the last line, if it is an expression, as a notebook does."""
    tree = ast.parse(code)
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        name = ast.Name("print", ast.Load())
        tree.body[-1] = ast.Expr(ast.Call(name, [last.value], []))
    return ast.unparse(ast.fix_missing_locations(tree))
