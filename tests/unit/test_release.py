"""The files that a release is made of say the same."""

import re
from pathlib import Path

import yaml

import shape_of_learning
from shape_of_learning.plan.papers import figures_of, read_papers

REPOSITORY = Path(__file__).parents[2]


def test_one_version_is_named_everywhere():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    changes = (REPOSITORY / "CHANGELOG.md").read_text()
    readme = (REPOSITORY / "README.md").read_text()
    assert citation["version"] == shape_of_learning.__version__
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == shape_of_learning.__version__
    assert set(re.findall(r"v(\d+\.\d+\.\d+)", readme)) <= {shape_of_learning.__version__}


def test_the_showcase_says_of_each_figure_what_it_shows():
    page = (REPOSITORY / "docs/showcase.md").read_text()
    drawn = yaml.safe_load((REPOSITORY / "config/showcase.yaml").read_text())["figures"]
    sentences = yaml.safe_load((REPOSITORY / "docs/showcase.yaml").read_text())["figures"]
    papers = read_papers(REPOSITORY / "workflow/papers")
    for name in drawn.keys() & set(figures_of(papers)):
        assert f"](showcase/{name}.png)\n\n{sentences[name]}" in page
    assert "![](" not in page
    files = [REPOSITORY / "docs/showcase.md", *(REPOSITORY / "docs/showcase").iterdir()]
    assert sum(file.stat().st_size for file in files) < 3e6


def test_links_of_the_pages_lead_somewhere():
    pages = [
        *REPOSITORY.glob("*.md"),
        *REPOSITORY.glob("docs/*.md"),
        REPOSITORY / "config/README.md",
    ]
    dead = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert not dead
