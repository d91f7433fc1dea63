"""The documentation site: `make docs`."""

import sys
from pathlib import Path
from typing import Any

from docutils.nodes import Element
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))

from shape_of_learning import __version__

project = "The shape of learning"
author = "the shape-of-learning developers"
release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the notebook has its outputs, which a test compares with a run
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["tables.css"]
html_title = f"{project} {release}"
html_copy_source = False
html_show_copyright = False
autodoc_typehints = "none"  # docstrings say shapes and dtypes, too
napoleon_google_docstring = False
# The page that `make demo` writes is a part of the site, if it has been run; .github/workflows/site.yml does.
EXPLORER = Path(__file__).resolve().parents[1] / "results/explorer.html"
html_extra_path = [str(EXPLORER)] if EXPLORER.is_file() else []
exclude_patterns = ["_build", ".ipynb_checkpoints"]
# Types in docstrings are words, such as "array_like, shape (n, d)".
nitpick_ignore_regex = [
    ("py:(class|exc)", ".*"),
    ("py:func", "combine_jackknife_values|read_matrix|_find_coarse_limit"),
]


def find_by_last_name(app: Sphinx, env: Any, node: Element, text: Element) -> Element | None:
    """Find a function that a docstring names in its module, though users import it from the package."""
    if node.get("refdomain") != "py" or node.get("refspecific"):
        return None
    node["refspecific"], name = True, node["reftarget"].rpartition(".")[2]
    kind, domain = node["reftype"], env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, kind, name, node, text)


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    if html_extra_path:
        app.tags.add("explorer")
    app.connect("missing-reference", find_by_last_name)
