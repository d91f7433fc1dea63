"""What the explorer shows, and what it says of it."""

from shape_of_learning.explorer.further_tables import KINDS, VERDICTS
from shape_of_learning.explorer.page_parts import digest_of_page

EXPLORER = "<results>/explorer.html"


def explorer_verdicts(wildcards):
    """What is known of the checkpoints of models."""
    return expand(
        "<results>/tables/verdicts/{model}.csv",
        model=filter(is_judged, CONFIGURATION.models),
    )


def explorer_further(wildcards):
    """Other tables of the run, of which it shows curves."""
    return [path for kind in KINDS for path in tables_in_the_run(kind)]


def named_by_kind(tables):
    """Tables as the script is told of them: each with the name of its kind, that of its folder."""
    kinds = {"last_weights": "weights"}
    folders = (Path(path).parent.name for path in tables)
    return [f"{kinds.get(kind, kind)}={path}" for kind, path in zip(folders, tables, strict=True)]


def explorer_claims(wildcards):
    """The verdicts on the claims of the papers."""
    return expand("<results>/claims/{paper}.csv", paper=CONFIGURATION.claims)


def explorer_claimed():
    """By paper and claim: of which measures it is, or of all of which tables, and what shows them."""

    def figures(claim):
        read = set(claim.reads)
        return [name_in_paper(n) for n in CONFIGURATION.figures if read & set(FIGURES[n].reads)]

    return {
        paper: {
            name: {
                "measures": list(claim.estimators),
                "tables": [] if claim.estimators else list(claim.reads),
                "view": "layer" if claim.checkpoints == "last" and not claim.reads else "step",
                "figures": figures(claim),
            }
            for name, claim in claims.items()
        }
        for paper, claims in CONFIGURATION.claims.items()
    }


def explorer_papers():
    """What the papers of this run draw of what tables of estimates hold."""
    papers = []
    for paper in PAPERS:
        drawn = {
            name: CONFIGURATION.figures[name]
            for name in paper.figures
            if name in CONFIGURATION.figures
        }
        models = {model for figure in drawn.values() for model in figure}
        measures = {each for name in drawn for each in FIGURES[name].estimators}
        tables = {k for name in drawn for k in FIGURES[name].reads if not FIGURES[name].estimators}
        if any(FIGURES[name].needs_training_steps for name in drawn):
            tables.add(VERDICTS)  # they have the losses
        if drawn or paper.name in CONFIGURATION.claims:
            papers.append(
                {
                    "name": paper.name,
                    "title": paper.title,
                    "models": [name for name in CONFIGURATION.models if name in models],
                    "measures": [name for name in CONFIGURATION.measures if name in measures],
                    "tables": sorted(tables),
                }
            )
    return papers


def explorer_description(wildcards):
    """What the page says of models, measures and papers, as JSON."""
    keys = ("name", "label", "axis", "description", "suspect_above")
    models = [{"name": name, "label": MODELS[name].label} for name in CONFIGURATION.models]
    known = CONFIGURATION.measures.values()
    measures = [{key: getattr(each, key) for key in keys} for each in known]
    sampling = CONFIGURATION.settings["sampling"]
    notes = [
        f"{sampling['windows']} windows of {sampling['window_characters']} characters of "
        f"{setting('corpus', 'source')}. n is the mean number of vectors of a batch.",
    ]
    return json.dumps(
        {
            **{"models": models, "measures": measures, "papers": explorer_papers()},
            **{"claimed": explorer_claimed(), "notes": notes},
        }
    )
