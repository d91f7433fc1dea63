"""The digest of code: of all that a script imports, and of nothing that decides no number."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shape_of_learning import code_digest as identity
from shape_of_learning.code_digest import digest_code, list_files

WORKFLOW = Path(__file__).parents[2] / "workflow"
FORMULA = '''
"""A formula."""
from shape_of_learning.low import two


def double(x):
    """Twice."""
    return two() * x
'''
# A script, a module that it imports within a function, one that this imports, and measures elsewhere.
FILES = {
    "scripts/do.py": "def main():\n    from shape_of_learning import formula\n",
    "shape_of_learning/formula.py": FORMULA,
    "shape_of_learning/low.py": "def two():\n    return 2\n",
    "shape_of_learning/chosen.py": "x = 1\n",
    "elsewhere/other_measures/__init__.py": "",
    "elsewhere/other_measures/one.py": "def f(x):\n    return x\n",
    "elsewhere/other_measures/two.py": "y = 1\n",
}


@pytest.fixture
def digest(tmp_path, monkeypatch):
    """The digest after some edits of these files, file -> text before and after, with chosen modules."""
    monkeypatch.setattr(identity, "WORKFLOW", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))

    def of(edits, *modules):
        for name, text in FILES.items():
            before, after = edits.get(name, ("", ""))
            assert before in text
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text.replace(before, after) if before else text)
        for cached in (
            digest_code,
            identity._parse_file,
            identity._dump_syntax,
            identity.list_imports,
        ):
            cached.cache_clear()
        return digest_code("do", *modules)

    yield of
    digest_code.cache_clear()


@pytest.mark.parametrize(
    ("file", "before", "after", "modules"),
    [
        ("shape_of_learning/formula.py", "* x", "* x + 0", []),
        ("shape_of_learning/low.py", "return 2", "return 3", []),
        ("scripts/do.py", "main()", "main(x=1)", []),
        ("shape_of_learning/chosen.py", "x = 1", "x = 2", ["shape_of_learning.chosen"]),
        # Of another package all modules count.
        ("elsewhere/other_measures/two.py", "y = 1", "y = 2", ["other_measures.one"]),
    ],
)
def test_an_edit_of_anything_that_runs_changes_it(digest, file, before, after, modules):
    edited = {file: (before, after)}
    assert digest(edited, *modules) != digest({}, *modules)
    assert not modules or digest(edited) == digest({}) != digest({}, *modules)


@pytest.mark.parametrize("script", ["draw_figure", "measure"])
def test_what_python_loads_is_found_by_reading(script):
    # The package's own __init__ imports nothing until an estimator is asked for.
    program = (
        f"import sys, {script}\n"
        "print(*(getattr(m, '__file__', None) or '' for m in list(sys.modules.values())), sep='\\n')"
    )
    path = os.pathsep.join([str(WORKFLOW), str(WORKFLOW / "scripts")])
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    loaded = {Path(file) for file in said.splitlines() if file.startswith(str(WORKFLOW))}
    assert len(loaded) > 5
    assert {file for file in loaded if file.stem != "__init__"} <= {
        *list_files(f"scripts.{script}")
    }


@pytest.mark.parametrize(
    "script", ["dump_embeddings", "pretrain_model", "finetune_model", "clean_corpus"]
)
def test_an_estimator_of_hidden_states_is_no_part_of_what_they_come_from(script):
    """An edit of it measures again what is kept, and runs no model again."""
    files = list_files(f"scripts.{script}")
    assert len(files) > 5
    estimators = {file.stem for file in files if file.parent.name == "estimators"}
    assert not estimators & {
        "anisotropy",
        "cosine",
        "dimension",
        "linearity",
        "neighbours",
        "spread",
    }
