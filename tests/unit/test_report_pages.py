"""A page of Markdown in a report: the template that shows it, rendered as Snakemake does."""

import html
import re
from pathlib import Path
from types import SimpleNamespace

from docutils.core import publish_parts
from jinja2 import Environment

from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.judging import Judgement
from shape_of_learning.claims.ledger import write_page

TEMPLATE = Path(__file__).parents[2] / "workflow/report/page.rst"


def test_every_sign_of_a_sentence_reaches_the_report(tmp_path):
    words = 'p(x | y) of my_model_ is "high", low < 1 & |z| > 2'
    is_above, is_below = {"of": "a_part", "above": 0.1}, {"of": "a_part", "below": 0.1}
    rule = {"supported": is_above, "contradicted": is_below}
    claim = Claim("a_claim", words, "figure 1", "mean_over_layers", rule, "all")
    page = tmp_path / "page.md"
    write_page(page, "A paper", [(claim, Judgement("undecided", "Neither is shown."))])
    template = Environment(trim_blocks=True, lstrip_blocks=True).from_string(TEMPLATE.read_text())
    files, output = [SimpleNamespace(path=page)], {"markdown": str(page)}
    text = template.render(files=files, snakemake=SimpleNamespace(output=output))
    shown = publish_parts(text, writer="html4")["body"]
    assert "system-message" not in shown
    assert shown.count("<td>") == 5
    assert html.unescape(re.sub("<[^>]*>", "", shown)).count(words) == 2, "in the table and below"
