"""A figure of one's own is an entry and a function in a folder; nothing else of the checkout is touched."""

import csv

import yaml

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

from shape_of_learning.figures.averages import by_layer
from shape_of_learning.figures.drawn_rows import drawn_measurements
from shape_of_learning.figures.output import Drawing


def means(inputs, decimals):
    """Draw means by layer."""
    table = by_layer(drawn_measurements(inputs)).round({"mean": decimals})
    figure = Figure()
    figure.subplots().plot(table["layer"], table["mean"])
    return Drawing(figure, table, inputs.caption)
'''
CONFIGURATION = {
    "models": ["demo-decoder"],
    "corpus": {"source": "python_topics"},
    "measurement": {"estimators": ["anisotropy"]},
    "figures": {"throwaway_means": "all"},
}
COLUMNS = "model,role,revision,step,tokens,layer,depth,estimator,batch,n,n_unique,value"


def write_paper(checkout):
    folder = checkout.folder / "workflow" / "papers" / "throwaway"
    folder.mkdir()
    (folder / "paper.yaml").write_text(yaml.safe_dump(PAPER))
    (folder / "figures.py").write_text(FUNCTIONS)
    checkout.write("throwaway.yaml", CONFIGURATION)
    return "--configfile", "throwaway.yaml"


def test_a_figure_in_a_folder_is_planned_with_what_it_draws(checkout):
    chosen = write_paper(checkout)
    planned = checkout.planned("throwaway_means", *chosen)
    assert planned["draw_figure"] == planned["throwaway_means"] == 1
    said = checkout.snakemake("throwaway_means", *chosen, "--dry-run")
    assert "results/tables/last_checkpoint/demo-decoder/mle.csv" in said
    assert "last_checkpoint/demo-decoder/anisotropy.csv" not in said


def test_it_is_drawn_by_its_function_and_drawn_anew_when_that_changes(checkout):
    chosen = write_paper(checkout)
    table = checkout.folder / "results/tables/last_checkpoint/demo-decoder/mle.csv"
    table.parent.mkdir(parents=True)
    row = "demo-decoder,decoder,step128,128,9,0,0.0,mle,0,99,99,1.2345"
    table.write_text(f"{COLUMNS}\n{row}\n")
    alone = (
        "throwaway_means",
        *chosen,
        "--allowed-rules",
        "draw_figure",
        "throwaway_means",
        "--cores",
        "1",
    )
    checkout.snakemake(*alone)
    with (checkout.folder / "results/figures/throwaway_means.csv").open() as file:
        assert [row["mean"] for row in csv.DictReader(file)] == ["1.23"]
    functions = checkout.folder / "workflow/papers/throwaway/figures.py"
    functions.write_text(FUNCTIONS.replace("Draw means", "Draw the means"))
    assert "draw_figure" not in checkout.planned(*alone)
    functions.write_text(FUNCTIONS.replace('"mean"]', '"sd"]'))
    assert checkout.planned(*alone)["draw_figure"] == 1


def test_a_wrong_key_of_a_paper_is_one_sentence(checkout):
    chosen = write_paper(checkout)
    said = checkout.snakemake(
        *chosen, "--dry-run", "--config", "figures={throwaway_mean: all}", succeeds=False
    )
    assert "key `figures`: unknown key `throwaway_mean`; did you mean `throwaway_means`?" in said
    assert "Traceback" not in said
