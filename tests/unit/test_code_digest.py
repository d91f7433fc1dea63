"""The digest of code: of all that a script imports, and of nothing that decides no number."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shape_of_learning.plan import identity
from shape_of_learning.plan.identity import code, files_of

WORKFLOW = Path(__file__).parents[2] / "workflow"
FORMULA = '''
"""A formula."""
from shape_of_learning.low import two


def double(x):
    """Twice."""
    return two() * x
'''


@pytest.fixture
def house(tmp_path, monkeypatch) -> Path:
    """A script, a module that it imports within a function, and one that this imports."""
    for cached in (code, identity._tree, identity._syntax):
        cached.cache_clear()
    package = tmp_path / "shape_of_learning"
    package.mkdir()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/do.py").write_text(
        "def main():\n    from shape_of_learning import formula\n"
    )
    (package / "formula.py").write_text(FORMULA)
    (package / "low.py").write_text("def two():\n    return 2\n")
    (package / "chosen.py").write_text("x = 1\n")
    monkeypatch.setattr(identity, "WORKFLOW", tmp_path)
    return package


def digest(*modules: str) -> str:
    for cached in (code, identity._tree, identity._syntax):
        cached.cache_clear()
    return code("do", *modules)


def edit(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def test_words_and_layout_are_no_part_of_it(house):
    before = digest()
    edit(house / "formula.py", '"""Twice."""', '"""Doubles a number."""\n    # A comment.\n')
    edit(house / "formula.py", "two() * x", "(two()\n            * x)")
    assert digest() == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("formula.py", "* x", "* x + 0"),
        ("low.py", "return 2", "return 3"),
        ("../scripts/do.py", "main()", "main(x=1)"),
    ],
)
def test_an_edit_of_anything_that_runs_changes_it(house, file, old, new):
    before = digest()
    edit(house / file, old, new)
    assert digest() != before


def test_what_is_chosen_by_name_counts_where_it_is_chosen(house):
    alone, chosen = digest(), digest("shape_of_learning.chosen")
    assert alone != chosen
    edit(house / "chosen.py", "x = 1", "x = 2")
    assert digest() == alone
    assert digest("shape_of_learning.chosen") != chosen


def test_a_measure_of_another_package_counts_with_all_its_modules(house, monkeypatch):
    other = house.parent / "elsewhere" / "other_measures"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    (other / "one.py").write_text("def f(x):\n    return x\n")
    (other / "two.py").write_text("y = 1\n")
    monkeypatch.syspath_prepend(str(other.parent))
    before = digest("other_measures.one")
    assert before != digest()
    edit(other / "two.py", "y = 1", "y = 2")
    assert digest("other_measures.one") != before


@pytest.mark.parametrize("script", ["draw_figure", "measure"])
def test_what_python_loads_is_found_by_reading(script):
    # The package's own __init__ imports nothing until an estimator is asked for.
    program = (
        f"import sys, {script}\n"
        "print(*(getattr(m, '__file__', None) or '' for m in list(sys.modules.values())), sep='\\n')"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(WORKFLOW), str(WORKFLOW / "scripts")])},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    loaded = {Path(file) for file in said.splitlines() if file.startswith(str(WORKFLOW))}
    found = set(files_of(f"scripts.{script}"))
    assert len(loaded) > 5
    assert {file for file in loaded if file.stem != "__init__"} <= found
