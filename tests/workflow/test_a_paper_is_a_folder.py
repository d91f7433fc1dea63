"""A figure of one's own is an entry and a function in a folder; nothing else of the checkout is touched."""

import yaml

from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS

PAPER = {
    "title": "A throw-away paper",
    "citation": "Nobody",
    "prefix": "throwaway_",
    "figures": {
        "means": {
            "draw": "means",
            "estimators": ["mle"],
            "checkpoints": "last",
            "options": {"decimals": 2},
            "caption": "{measures} of {models}.",
        }
    },
}
CLAIM = {
    "sentence": "Dimension is high.",
    "where": "abstract",
    "statistic": "mean_over_layers",
    "estimators": ["anisotropy", "mle", "mom"],
    "models": "decoders",
    "rule": {
        "supported": {"in": "all", "holds": {"of": "mle", "above": 9}},
        "contradicted": {"in": "all", "holds": {"of": "mle", "below": 9}},
    },
}
FUNCTIONS = '''
"""The figures of a throw-away paper."""

from matplotlib.figure import Figure

from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.tables import by_layer


def means(inputs, decimals):
    """Draw means by layer."""
    table = by_layer(inputs).round({"value": decimals})
    figure = Figure()
    figure.subplots().plot(table["layer"], table["value"])
    return Drawing(figure, table, inputs.caption)
'''
CONFIGURATION = {
    "models": ["demo-decoder"],
    "corpus": {"source": "python_topics"},
    "measurement": {"estimators": ["anisotropy"]},
    "figures": {"throwaway_means": "all"},
}


def write_paper(checkout):
    folder = checkout.folder / "workflow" / "papers" / "throwaway"
    folder.mkdir()
    (folder / "paper.yaml").write_text(yaml.safe_dump(PAPER))
    (folder / "figures.py").write_text(FUNCTIONS)
    checkout.write("throwaway.yaml", CONFIGURATION)
    return "--configfile", "throwaway.yaml"


def test_it_is_drawn_by_its_function_and_drawn_anew_when_that_changes(checkout):
    chosen = write_paper(checkout)
    table = checkout.folder / "results/tables/estimates/demo-decoder.csv"
    table.parent.mkdir(parents=True)
    row = "demo-decoder,decoder,step128,128,9,0,0.0,mle,all,1.2345,,,,,99,99,,9"
    table.write_text(f"{','.join(ESTIMATE_COLUMNS)}\n{row}\n")
    alone = ("throwaway_means", *chosen, "--allowed-rules", "draw_figure", "throwaway_means")
    alone += ("--cores", "1")
    checkout.snakemake(*alone)
    drawn = checkout.rows("results/figures/throwaway_means.csv")
    assert [row["value"] for row in drawn] == ["1.23"]
    functions = checkout.folder / "workflow/papers/throwaway/figures.py"
    functions.write_text(FUNCTIONS.replace("Draw means", "Draw the means"))
    assert "draw_figure" not in checkout.planned(*alone)
    functions.write_text(FUNCTIONS.replace('"value"]', '"batch_sd"]'))
    assert checkout.planned(*alone)["draw_figure"] == 1


def write_claim(checkout, **changes):
    chosen = write_paper(checkout)
    file = checkout.folder / "workflow/papers/throwaway/claims.yaml"
    file.write_text(yaml.safe_dump({"high": CLAIM | changes}))
    return chosen


def test_a_claim_asks_for_no_measurement_that_the_run_does_not_make(checkout):
    said = checkout.snakemake("claims", *write_claim(checkout), "--dry-run")
    assert "results/claims/throwaway.csv" in said
    assert "results/tables/left_out/demo-decoder.csv" in said
    assert "demo-decoder/mom" not in said
