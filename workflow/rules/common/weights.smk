"""Which checkpoints' own matrices are measured: those of the figures that read them, and no others."""

# Tables of weights that figures read, tables/{kind}/{model}.csv, and the folder of what each is gathered from.
WEIGHT_TABLES = {
    "weights": "weights",
    "last_weights": "weights",
    "weight_points": "weight_points",
}
WEIGHT_MEASURES = sorted(n for n, m in CONFIGURATION.measures.items() if m.family == WEIGHTS)


@cache
def weight_models(kind):
    """The models that a table of weights is made of: those of figures that read it, or all if the key lists one."""
    if kind == "weights" and any(n in WEIGHT_MEASURES for n in CONFIGURATION.estimators):
        return list(MODELS)
    figures = [figure for figure in CONFIGURATION.figures if kind in FIGURES[figure].reads]
    read = {name for figure in figures for name in CONFIGURATION.figures[figure]}
    return [name for name in MODELS if name in read]


@cache
def weight_checkpoints(kind, name):
    """The checkpoints of a model that are in a table of weights."""
    if name not in weight_models(kind):
        return []
    if kind == "weights":
        return checkpoints(name)
    last = last_checkpoint(name)
    if kind == "last_weights":
        return [last]
    good = [c for c in checkpoints(name) if c.name not in curve(name).bad()] or [last]
    return list(dict.fromkeys([good[0], good[len(good) // 2], last]))


def measured_matrices(wildcards):
    """What is measured of the matrices of a checkpoint."""

    def is_in(*kinds):
        asked = [c for kind in kinds for c in weight_checkpoints(kind, wildcards.model)]
        return wildcards.revision in {checkpoint.name for checkpoint in asked}

    measures = WEIGHT_MEASURES if is_in("weights", "last_weights") else []
    return {
        "measures": [CONFIGURATION.measures[name].for_jobs() for name in measures],
        "points": is_in("weight_points"),
        "seed": CONFIGURATION.settings["seed"],
    }


# What is written of the matrices of a checkpoint; nothing where nobody reads it.
WEIGHT_FILES = {
    folder: f"<results>/{folder}/{{model}}/{{revision}}.csv"
    for folder in WEIGHT_TABLES.values()
    if any(map(weight_models, WEIGHT_TABLES))
}
WEIGHT_SCIENCE = science_of_measures(
    "gather_weights", [CONFIGURATION.measures[name] for name in WEIGHT_MEASURES]
)


def gathered_weights(wildcards):
    """The files of the checkpoints that are in a table of a model."""
    return expand(
        WEIGHT_FILES[WEIGHT_TABLES[wildcards.kind]],
        model=wildcards.model,
        revision=[c.name for c in weight_checkpoints(wildcards.kind, wildcards.model)],
    )


def gathered_checkpoints(wildcards):
    """Which checkpoints these are, in the columns of the table."""
    name, role = wildcards.model, MODELS[wildcards.model].shape.role
    asked = weight_checkpoints(wildcards.kind, name)
    return [(name, role, c.name, c.step, c.tokens) for c in asked]


def tables_of_weights():
    """The table of each model of which anything is measured, of all its checkpoints where a figure reads these."""
    return [
        f"<results>/tables/{'weights' if name in weight_models('weights') else 'last_weights'}/{name}.csv"
        for name in MODELS
        if name in {*weight_models("weights"), *weight_models("last_weights")}
    ]


def table_of_all_weights(wildcards):
    """The table of all models, if anything is measured of any."""
    return ["<results>/tables/weights.csv"] if tables_of_weights() else []
