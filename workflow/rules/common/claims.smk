"""What claims are judged by: what the run measures anyway."""


TITLES_OF_PAPERS = {paper.name: paper.title for paper in PAPERS}
NAMES_OF_RESULTS |= {
    f"claims/{name}": f"Verdicts on {title}" for name, title in TITLES_OF_PAPERS.items()
}
all_claims = expand(
    "<results>/claims/{paper}.{suffix}", paper=CONFIGURATION.claims, suffix=("csv", "md")
)


def claims_of(paper):
    return CONFIGURATION.claims[paper].values()


def named_by_claims(paper, key):
    """Names that claims of a paper have under a key."""
    return {name for claim in claims_of(paper) for name in getattr(claim, key)}


def claimed_models(paper):
    """Models of which the run measures any estimator of the claims."""
    estimators = named_by_claims(paper, "estimators")
    measured = {model for model, estimator in measured_in_the_run() if estimator in estimators}
    return [name for name in CONFIGURATION.models if name in measured]


def claimed_values(wildcards):
    """What the run measures of them, with left-out values."""
    models = claimed_models(wildcards.paper)
    return expand("<results>/tables/left_out/{model}.csv", model=models)


def claimed_tables(wildcards):
    """Further tables that the run makes and claims read."""
    kinds = named_by_claims(wildcards.paper, "reads")
    models = set(claimed_models(wildcards.paper))
    if "weights" in kinds:
        models.update(weight_models("weights"))
    judged = [name for name in CONFIGURATION.models if name in models and is_judged(name)]
    return [
        *(path for kind in sorted(kinds) for path in tables_in_the_run(kind)),
        *expand("<results>/tables/verdicts/{model}.csv", model=judged),
    ]


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


def suspect_above(measures):
    """The share of near-duplicates up to which the conditions of an estimator hold."""
    limits = {name: measure.suspect_above for name, measure in measures.items()}
    return {name: limit for name, limit in limits.items() if limit is not None}


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
