"""The blocks of a page, as they are written, with the heading above them."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(
    r"^```(?P<language>[\w{}-]*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SHELL = ("", "sh", "bash", "console")


class Place(NamedTuple):
    """Where a block stands, and what kind it is of."""

    page: str
    heading: str
    language: str  # "shell" for all of SHELL


class Block(NamedTuple):
    place: Place
    text: str


def read_blocks(repository: Path, page: str) -> list[Block]:
    """Read all fenced blocks of a page in their order."""
    text = (repository / page).read_text(encoding="utf-8")
    blocks, heading, end = [], "", 0
    for fence in FENCE.finditer(text):
        above = HEADING.findall(text[end : fence.start()])
        heading, end = above[-1] if above else heading, fence.end()
        language = "shell" if fence["language"] in SHELL else fence["language"]
        blocks.append(Block(Place(page, heading, language), fence["text"]))
    return blocks


def show_last_value(code: str) -> str:
    """Print the value of the last line, if it is an expression, as a notebook does."""
    tree = ast.parse(code)
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        name = ast.Name("print", ast.Load())
        tree.body[-1] = ast.Expr(ast.Call(name, [last.value], []))
    return ast.unparse(ast.fix_missing_locations(tree))
