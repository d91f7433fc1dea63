"""All results in one page.

REQUIRED INPUTS: the table of estimates, others of which it shows curves, the verdicts on checkpoints and on claims.
OUTPUTS:
    <results>/explorer.html     one file, to be opened by a browser as it is
STEPS: draw_explorer, and the target `explorer`.
"""

from shape_of_learning.explorer.content import KINDS, VERDICTS
from shape_of_learning.explorer.explorer_page import digest_of_page

EXPLORER = "<results>/explorer.html"


def explorer_description(wildcards):
    """What the page says that tables do not."""
    keys = ("name", "label", "axis", "description", "suspect_above")
    measures = CONFIGURATION.measures.values()
    windows, characters = (setting("sampling", key) for key in ("windows", "window_characters"))
    sample = f"{windows} windows of {characters} characters of {setting('corpus', 'source')}"
    return {
        "models": [{"name": name, "label": MODELS[name].label} for name in CONFIGURATION.models],
        "measures": [{key: getattr(measure, key) for key in keys} for measure in measures],
        "papers": [explored_paper(paper) for paper in PAPERS if is_explored(paper)],
        "claimed": {
            paper: {name: explored_claim(claim) for name, claim in claims.items()}
            for paper, claims in CONFIGURATION.claims.items()
        },
        "notes": [f"{sample}. n is the mean number of vectors of a batch."],
    }


def is_explored(paper):
    return paper.name in CONFIGURATION.claims or set(paper.figures) & set(CONFIGURATION.figures)


def explored_paper(paper):
    """The models, measures and further tables that the figures of a paper show."""
    drawn = [name for name in paper.figures if name in CONFIGURATION.figures]
    models = {model for name in drawn for model in CONFIGURATION.figures[name]}
    figures = [FIGURES[name] for name in drawn]
    measures = {name for figure in figures for name in figure.estimators}
    tables = {kind for figure in figures for kind in figure.reads if not figure.estimators}
    if any(figure.needs_training_steps for figure in figures):
        tables.add(VERDICTS)  # they have the losses
    return {
        "name": paper.name,
        "title": paper.title,
        "models": [name for name in CONFIGURATION.models if name in models],
        "measures": [name for name in CONFIGURATION.measures if name in measures],
        "tables": sorted(tables),
    }


def explored_claim(claim):
    """Which measures a claim is of, or of all of which tables, and what shows them."""
    read = set(claim.reads)
    figures = [name_in_paper(n) for n in CONFIGURATION.figures if read & set(FIGURES[n].reads)]
    return {
        "measures": list(claim.estimators),
        "tables": [] if claim.estimators else list(claim.reads),
        "view": "layer" if claim.checkpoints == "last" and not claim.reads else "step",
        "figures": figures,
    }


rule draw_explorer:
    """Put all results into one page that needs no server and no network."""
    input:
        estimates="<results>/tables/estimates.csv",
        verdicts=expand(
            "<results>/tables/verdicts/{model}.csv",
            model=filter(is_judged, CONFIGURATION.models),
        ),
        further=[path for kind in KINDS if kind != VERDICTS for path in tables_in_the_run(kind)],
        claims=expand("<results>/claims/{paper}.csv", paper=CONFIGURATION.claims),
    output:
        report(
            EXPLORER,
            caption="../report/explorer.rst",
            category="Explorer",
            labels={"result": NAMES_OF_RESULTS["explorer"]},
        ),
    log:
        "<logs>/explorer.log",
    benchmark:
        "<benchmarks>/explorer.tsv"
    localrule: True
    conda:
        "../../envs/explorer.yaml"
    params:
        code=science("draw_explorer"),
        page=digest_of_page(),
        description=explorer_description,
    message:
        "Drawing {output}"
    script:
        "../scripts/draw_explorer.py"


rule explorer:
    """The explorer."""
    input:
        EXPLORER,
