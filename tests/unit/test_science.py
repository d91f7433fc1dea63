"""Which edits of the library are edits of what computes a result."""

import pytest

from shape_of_learning.plan import science as module

FORMULA = '''"""A formula."""
from library.part import half


def value():
    """Two."""
    return half() * 2  # twice
'''
FILES = {
    "scripts/measure.py": "from library.formula import value\nfrom library.storage.files import write\n",
    "library/__init__.py": "",
    "library/formula.py": FORMULA,
    "library/part.py": "def half():\n    return 1\n",
    "library/other.py": "third = 3\n",
    "library/storage/__init__.py": "",
    "library/storage/files.py": "from library.other import third\n\n\ndef write():\n    return third\n",
}


@pytest.fixture
def digest(tmp_path, monkeypatch):
    """Return the digest of a small library in which some text is another."""
    monkeypatch.setattr(module, "PACKAGE", tmp_path / "library")
    monkeypatch.setattr(module, "SCRIPTS", tmp_path / "scripts")

    def after(file="library/other.py", old="", new="", more=()):
        for name, content in FILES.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content.replace(old, new) if name == file and old else content)
        for cached in (module.science, module._module):
            cached.cache_clear()
        return module.science("measure", *more)

    return after


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("library/formula.py", "# twice", "# doubled"),
        ("library/formula.py", '"""Two."""', '"""Two, as a number."""'),
        ("library/formula.py", '    """Two."""\n', ""),
        ("library/formula.py", "half() * 2", "(half() * 2)"),
        ("library/storage/files.py", "return third", "return third + 1"),
        ("library/other.py", "3", "4"),  # only what writes files imports it
        ("scripts/measure.py", "import value", "import value as number"),
    ],
)
def test_an_edit_that_changes_no_result(digest, file, old, new):
    before = digest()
    assert digest(file, old, new) == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("library/formula.py", "* 2", "* 3"),
        ("library/part.py", "return 1", "return 2"),  # imported by what is imported
    ],
)
def test_an_edit_that_changes_results(digest, file, old, new):
    before = digest()
    assert digest(file, old, new) != before


def test_a_module_that_is_chosen_at_run_time_counts(digest):
    assert digest(more=["other"]) != digest()
    assert digest("library/other.py", "3", "4", more=["other"]) != digest(more=["other"])
