"""What claims are judged by: what the run measures anyway."""

from shape_of_learning.plan.claim_list import STATISTICS

TITLES_OF_PAPERS = {paper.name: paper.title for paper in PAPERS}
NAMES_OF_RESULTS |= {
    f"claims/{name}": f"Verdicts on {title}" for name, title in TITLES_OF_PAPERS.items()
}
all_claims = expand(
    "<results>/claims/{paper}.{suffix}", paper=CONFIGURATION.claims, suffix=("csv", "md")
)


def claims_of_paper(wildcards):
    """All claims of a paper, as JSON."""
    return json.dumps([vars(claim) for claim in CONFIGURATION.claims[wildcards.paper].values()])


def named_by_claims(paper, key):
    """Names that claims of a paper have under a key, each once."""
    return list(
        dict.fromkeys(n for c in CONFIGURATION.claims[paper].values() for n in getattr(c, key))
    )


def claimed_values(wildcards):
    """What the run measures of their estimators, with left-out values."""
    estimators = named_by_claims(wildcards.paper, "estimators")
    return [
        f"<results>/tables/{which}/{model}/{estimator}/left_out.csv"
        for (model, estimator), which in measured_in_the_run().items()
        if estimator in estimators
    ]


def claimed_tables(wildcards):
    """Further tables that the run makes and claims read."""
    kinds = named_by_claims(wildcards.paper, "reads")
    estimators = named_by_claims(wildcards.paper, "estimators")
    models = {model for model, estimator in measured_in_the_run() if estimator in estimators}
    if "weights" in kinds:
        models.update(weight_models("weights"))
    judged = [name for name in CONFIGURATION.models if name in models and is_judged(name)]
    return [
        *(path for kind in kinds for path in tables_in_the_run(kind)),
        *expand("<results>/tables/verdicts/{model}.csv", model=judged),
    ]


def named_by_kind(tables):
    """Tables as scripts are told of them: each with the name of its kind, that of its folder."""
    kinds = {"last_weights": "weights"}
    folders = (Path(path).parent.name for path in tables)
    return [f"{kinds.get(kind, kind)}={path}" for kind, path in zip(folders, tables, strict=True)]


def is_judged(model):
    """Whether the run has all checkpoints of a model, and so a verdict on each."""
    drawn = (FIGURES[name] for name, models in CONFIGURATION.figures.items() if model in models)
    return is_measured_whole(model) or any(figure.needs_training_steps for figure in drawn)


def tables_in_the_run(kind):
    """Tables of one kind that figures or tables of the run read."""
    if kind == "weights":
        return tables_of_weights()
    read = [models for name, models in CONFIGURATION.figures.items() if kind in FIGURES[name].reads]
    read += [models for name, models in CONFIGURATION.tables.items() if kind in TABLES[name].reads]
    models = [name for name in MODELS if any(name in models for models in read)]
    return expand(f"<results>/tables/{kind}/{{model}}.csv", model=models)


def suspect_above(wildcards):
    """The share of near-duplicates up to which the conditions of an estimator hold, as JSON."""
    limits = {name: measure.suspect_above for name, measure in MEASURES.items()}
    return json.dumps({name: limit for name, limit in limits.items() if limit is not None})


def models_of_claims(wildcards):
    """What judge_claims.py is told of the models of the run, as JSON."""
    return json.dumps([evidence_model(name) for name in CONFIGURATION.models])


def evidence_model(name):
    """What claims ask of a model besides its numbers."""
    model = MODELS[name]
    source, recipe = model.source, model.recipe
    facts = {"kind": "pretrained"}
    if model.kind == "finetuning":
        facts = {"kind": "fine_tuning", "origin": source.origin.name, "treatment": recipe["task"]}
    elif "twin_of" in recipe:
        treatment = f"{recipe['regulariser']} {recipe['strength']:g}"
        facts = {"kind": "twin", "origin": recipe["twin_of"], "treatment": treatment}
    return {
        "name": name,
        "role": model.shape.role,
        "layers": model.shape.layers,
        "warmup_steps": source.warmup_steps,
        **facts,
    }
