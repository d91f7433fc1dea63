"""The digest of code covers everything that a script imports and that decides a number."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shape_of_learning import code_digest as identity
from shape_of_learning.code_digest import digest_code, list_files, list_imports

WORKFLOW = Path(__file__).parents[2] / "workflow"
FORMULA = '''
"""A formula."""
from shape_of_learning.low import two

from .beside import three


def double(x):
    """Twice."""
    return two() * x
'''
# A script, a module that it imports in a function, a module that this imports, and measures elsewhere.
FILES = {
    "scripts/do.py": "def main():\n    from shape_of_learning import formula\n",
    "shape_of_learning/formula.py": FORMULA,
    "shape_of_learning/low.py": "def two():\n    return 2\n",
    "shape_of_learning/beside.py": "def three():\n    return 3\n",
    "shape_of_learning/chosen.py": "x = 1\n",
    "elsewhere/other_measures/__init__.py": "",
    "elsewhere/other_measures/one.py": "def f(x):\n    return x\n",
    "elsewhere/other_measures/two.py": "y = 1\n",
}


@pytest.fixture
def digest(tmp_path, monkeypatch):
    """A function that edits the files (file -> old and new text) and returns the digest with further modules."""
    monkeypatch.setattr(identity, "WORKFLOW", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))

    def compute_digest(edits, *modules):
        for name, text in FILES.items():
            old, new = edits.get(name, ("", ""))
            assert old in text
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text.replace(old, new) if old else text)
        for function in (
            digest_code,
            identity._parse_file,
            identity._dump_syntax,
            identity.list_imports,
        ):
            function.cache_clear()
        return digest_code("do", *modules)

    yield compute_digest
    digest_code.cache_clear()


@pytest.mark.parametrize(
    ("file", "old", "new", "modules"),
    [
        ("shape_of_learning/formula.py", "* x", "* x + 0", []),
        ("shape_of_learning/low.py", "return 2", "return 3", []),
        ("shape_of_learning/beside.py", "return 3", "return 4", []),
        ("scripts/do.py", "main()", "main(x=1)", []),
        ("shape_of_learning/chosen.py", "x = 1", "x = 2", ["shape_of_learning.chosen"]),
        # All modules of another package count.
        ("elsewhere/other_measures/two.py", "y = 1", "y = 2", ["other_measures.one"]),
    ],
)
def test_an_edit_of_any_line_that_runs_changes_the_digest(digest, file, old, new, modules):
    edits = {file: (old, new)}
    assert digest(edits, *modules) != digest({}, *modules)
    assert not modules or digest(edits) == digest({}) != digest({}, *modules)


def test_a_public_name_of_the_library_stands_for_the_module_that_defines_it(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("from shape_of_learning import anisotropy, measure\n")
    homes = {"shape_of_learning.estimators.anisotropy", "shape_of_learning.one_model.in_python"}
    assert homes <= {*list_imports(file)}


@pytest.mark.parametrize("script", ["draw_figure", "measure"])
def test_reading_finds_the_files_that_python_loads(script):
    # The package's own __init__ imports nothing until an estimator is asked for.
    program = (
        f"import sys, {script}\n"
        "print(*(getattr(m, '__file__', None) or '' for m in list(sys.modules.values())), sep='\\n')"
    )
    path = os.pathsep.join([str(WORKFLOW), str(WORKFLOW / "scripts")])
    output = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    files = {Path(file) for file in output.splitlines() if file.startswith(str(WORKFLOW))}
    assert len(files) > 5
    assert {file for file in files if file.stem != "__init__"} <= {*list_files(f"scripts.{script}")}


@pytest.mark.parametrize(
    "script", ["dump_embeddings", "pretrain_model", "finetune_model", "clean_corpus"]
)
def test_scripts_that_make_hidden_states_do_not_depend_on_their_estimators(script):
    """After an edit of an estimator, kept hidden states are measured again, and no model is run again."""
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
