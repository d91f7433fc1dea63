"""The template that shows a page of Markdown in a report, rendered as Snakemake does."""

import html
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils.core import publish_parts
from jinja2 import Environment

from shape_of_learning.claims.claim import Claim, ClaimVerdict, read_condition
from shape_of_learning.claims.judgement import Judgement
from shape_of_learning.claims.page import write_family, write_ledger, write_page

ABOVE, BELOW = read_condition({"above": 0.1}), read_condition({"below": 0.1})
TEMPLATE = Path(__file__).parents[2] / "workflow/report/page.rst"


def render_page(page: Path) -> str:
    """Render a page as a report does, without warnings of docutils."""
    template = Environment(trim_blocks=True, lstrip_blocks=True).from_string(TEMPLATE.read_text())
    files, output = [SimpleNamespace(path=page)], {"markdown": str(page)}
    text = template.render(files=files, snakemake=SimpleNamespace(output=output))
    body = publish_parts(text, writer="html4")["body"]
    assert "system-message" not in body
    return body


def test_all_characters_of_a_sentence_reach_the_report(tmp_path):
    words = 'p(x | y) of my_model_ is "high", low < 1 & |z| > 2'
    claim = Claim("a_claim", words, "figure 1", "mean_over_layers", ABOVE, BELOW, "all")
    page = tmp_path / "page.md"
    write_page(page, "A paper", [(claim, Judgement(ClaimVerdict.UNDECIDED, "Neither is shown."))])
    body = render_page(page)
    assert body.count("<td>") == 2
    assert html.unescape(re.sub("<[^>]*>", "", body)).count(words) == 2, "in the table and below"


def test_a_run_without_testable_claims_has_a_valid_page(tmp_path):
    ledger, page = tmp_path / "ledger.csv", tmp_path / "family.md"
    claim = Claim("a_claim", "Words.", "figure 1", "mean_over_layers", ABOVE, BELOW, "all")
    write_ledger(ledger, [(claim, Judgement(ClaimVerdict.NOT_MEASURED, "No model."))])
    write_family([ledger], tmp_path / "family.csv", page)
    assert "No verdict of this run could be tested" in render_page(page)


def test_claims_without_data_are_folded_into_one_line(tmp_path):
    page, no_data = tmp_path / "page.md", Judgement(ClaimVerdict.NOT_MEASURED, "No encoder.")
    names = ("judged", "waiting", "also_waiting")
    claims = [
        Claim(name, f"Words of {name}.", "figure 1", "mean_over_layers", ABOVE, BELOW, "all")
        for name in names
    ]
    write_page(
        page,
        "A paper",
        [
            (claims[0], Judgement(ClaimVerdict.UNDECIDED, "Why.")),
            *((c, no_data) for c in claims[1:]),
        ],
    )
    *visible_parts, folded_part = render_page(page).split("<details>")
    assert "waiting" not in "".join(visible_parts)
    summary, details = folded_part.split("</summary>")
    assert "2 claims" in summary
    inside, rest = details.split("</details>")
    assert inside.count("No encoder.") == 2
    assert not re.sub("<[^>]*>", "", rest).strip()


SCRIPT = "</script><script>alert(1)</script><!-- "
SNAKEFILE = """
from shape_of_learning.plan.jobs import escape_for_report
rule all:
    output: report("x.txt")
    params: models=escape_for_report([{"label": LABEL, "note": (LABEL,)}])
    script: "x.py"
"""


class ScriptCounter(HTMLParser):
    """Count the scripts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.number = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.number += tag == "script"


@pytest.mark.long
def test_a_script_in_a_label_stays_text_in_a_report_and_reaches_the_job(tmp_path):
    """The parameters of a job stand within a script of the page."""
    page = {}
    for name, label in (("plain", "a < b"), ("script", SCRIPT)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "Snakefile").write_text(SNAKEFILE.replace("LABEL", repr(label)))
        (folder / "x.py").write_text(
            "given = snakemake.params.models[0]['label']\nassert type(given) is str\n"
            "open(snakemake.output[0], 'w').write(given)\n"
        )
        for arguments in (("--cores", "1"), ("--report", "report.html")):
            subprocess.run(
                [sys.executable, "-m", "snakemake", "--quiet", "all", *arguments],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(TEMPLATE.parents[1])},
                check=True,
            )
        assert (folder / "x.txt").read_text() == label
        page[name] = (folder / "report.html").read_text()
    assert ScriptCounter(page["plain"]).number == ScriptCounter(page["script"]).number > 10
    assert "alert(1)" in page["script"]
    assert SCRIPT not in page["script"]
