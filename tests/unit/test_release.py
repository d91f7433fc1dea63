"""The files that a release is made of say the same."""

import re
from importlib import import_module
from pathlib import Path

import yaml

import shape_of_learning

REPOSITORY = Path(__file__).parents[2]


def test_one_version_is_named_everywhere():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    changes = (REPOSITORY / "CHANGELOG.md").read_text()
    readme = (REPOSITORY / "README.md").read_text()
    assert citation["version"] == shape_of_learning.__version__
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == shape_of_learning.__version__
    assert set(re.findall(r"v(\d+\.\d+\.\d+)", readme)) <= {shape_of_learning.__version__}


def test_the_clean_room_names_no_block_that_the_pages_have_lost(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "tests/clean_room")
    run = import_module("run")
    assert {block.place.page for block in run.read_all()} == {*run.PAGES}


def test_links_of_the_pages_lead_somewhere():
    pages = [
        *REPOSITORY.glob("*.md"),
        *REPOSITORY.glob("docs/**/*.md"),
        REPOSITORY / "config/README.md",
    ]
    dead = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert not dead
