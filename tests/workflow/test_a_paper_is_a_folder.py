"""A user's figure is an entry and a function in a folder; no other file of the checkout changes."""

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
FUNCTIONS = '''
"""The figures of a throw-away paper."""

from matplotlib.figure import Figure

from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.tables import select_layers


def means(inputs, decimals):
    """Draw means by layer."""
    table = select_layers(inputs).round({"value": decimals})
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


def test_a_figure_is_drawn_by_its_function_and_again_when_that_changes(checkout):
    functions = checkout.folder / "workflow/papers/throwaway/figures.py"
    functions.parent.mkdir()
    functions.write_text(FUNCTIONS)
    checkout.write("workflow/papers/throwaway/paper.yaml", PAPER)
    checkout.write("throwaway.yaml", CONFIGURATION)
    table = checkout.folder / "results/tables/estimates/demo-decoder.csv"
    table.parent.mkdir(parents=True)
    row = "demo-decoder,decoder,step128,128,9,0,0.0,mle,all,1.2345,,,,,99,99,,9"
    table.write_text(f"{','.join(ESTIMATE_COLUMNS)}\n{row}\n")
    arguments = ("throwaway_means", "--configfile", "throwaway.yaml", "--cores", "1")
    arguments += ("--allowed-rules", "draw_figure", "throwaway_means")
    checkout.snakemake(*arguments)
    rows = checkout.read_rows("results/figures/throwaway_means.csv")
    assert [row["value"] for row in rows] == ["1.23"]
    functions.write_text(FUNCTIONS.replace("Draw means", "Draw the means"))
    assert "draw_figure" not in checkout.plan_jobs(*arguments)
    functions.write_text(FUNCTIONS.replace('"value"]', '"batch_sd"]'))
    assert checkout.plan_jobs(*arguments)["draw_figure"] == 1
