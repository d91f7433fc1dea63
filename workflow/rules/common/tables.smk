"""Which measurements belong to a table."""

from shape_of_learning.errors import without_secrets

# Per batch; per value, with its interval; per pair of checkpoints.
GATHERED = ("measurements", "estimates", "changes")


def measurements_of_model(wildcards):
    """What is measured of each checkpoint: with a dump a file per family and layer, without one a folder."""
    model = wildcards.model
    folders = {each: f"<results>/measurements/{model}/{each}" for each in estimators_at(model)}
    if not setting("embeddings", "dump"):
        return [folder for each, folder in folders.items() if estimators_at(model)[each]]
    return [
        f"{folder}/{family}/layer_{layer}.csv"
        for revision, folder in folders.items()
        for family in FAMILIES
        if measures_at(model, revision, family)
        for layer in range(family == "linearity", MODELS[model].shape.layers + 1)
    ]


def measured_model(wildcards):
    """What gather_model.py is told of a model and its checkpoints."""
    shape = MODELS[wildcards.model].shape
    return {
        "name": wildcards.model,
        "role": shape.role,
        "layers": shape.layers,
        "checkpoints": [(c.name, c.step, c.tokens) for c in checkpoints(wildcards.model)],
        "average_over": setting("figures", "average_over"),
    }


def measured_curves(wildcards):
    """Its estimators, each with the checkpoints at which it is measured."""
    at = estimators_at(wildcards.model)
    names = [name for model, name in measured_in_the_run() if model == wildcards.model]
    return [
        {
            "estimator": name,
            "family": MEASURES[name].family,
            "interval": MEASURES[name].interval,
            "revisions": [revision for revision, estimators in at.items() if name in estimators],
        }
        for name in names
    ]


def tables_of_all(wildcards):
    """The tables of all models that are put together."""
    if wildcards.table == "weights":
        return tables_of_weights()
    models = dict.fromkeys(model for model, _ in measured_in_the_run())
    return [f"<results>/tables/{wildcards.table}/{model}.csv" for model in models]


def curves_in_table(wildcards):
    """Models and estimators of the configuration; of estimates, also what only figures draw."""
    if wildcards.table == "weights":
        return None
    every = wildcards.table == "estimates"
    return [each for each in measured_in_the_run() if every or each[1] in CONFIGURATION.estimators]


def settings_without_secrets(wildcards):
    """The configuration, without passwords and tokens in its addresses."""
    return json.loads(without_secrets(json.dumps(CONFIGURATION.settings)))
