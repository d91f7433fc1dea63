"""Which measurements belong to a table."""

# Per batch; per value, with its interval; per pair of checkpoints.
GATHERED = ("measurements", "estimates", "changes")
SELECTION = Selection.from_json(ROWS["selection"])


def selected_checkpoints(wildcards):
    """All checkpoints of a model, or just its last good one."""
    if wildcards.which == "last_checkpoint":
        return [last_checkpoint(wildcards.model)]
    return checkpoints(wildcards.model)


def checkpoint_measurements(wildcards):
    """What one estimator says of each checkpoint, with all windows and without groups of them.

    Without a dump one job measures all estimators, and with one all of pairs; then all of them are asked for: of a
    job one of whose files is missing Snakemake would not notice that its settings are others.
    """
    folders = [
        f"{wildcards.model}/{checkpoint.name}" for checkpoint in selected_checkpoints(wildcards)
    ]
    beside, of_weights = CHOSEN_MEASURES, WEIGHTS_BESIDE
    if setting("embeddings", "dump"):
        beside, of_weights = PAIRS if wildcards.estimator in PAIRS else [], {}
    return [
        *(f"<results>/measurements/{each}/{wildcards.estimator}.csv" for each in folders),
        *(f"<results>/left_out/{each}/{wildcards.estimator}.csv" for each in folders),
        *(
            f"<results>/measurements/{each}/{other}.csv"
            for each in folders
            for other in beside
            if other != wildcards.estimator
        ),
        *(f"<results>/{table}/{each}.csv" for each in folders for table in of_weights),
    ]


def measured_curve(wildcards):
    """What gather_checkpoints.py is told of a model, its checkpoints and the estimator, as JSON."""
    shape, measure = MODELS[wildcards.model].shape, MEASURES[wildcards.estimator]
    return json.dumps(
        {
            "model": wildcards.model,
            "role": shape.role,
            "estimator": wildcards.estimator,
            "selection": SELECTION.with_rows(measure.rows).name,
            "layers": shape.layers,
            "checkpoints": [(c.name, c.step, c.tokens) for c in selected_checkpoints(wildcards)],
            "average_over": setting("figures", "average_over"),
            "interval": measure.interval,
            "first_layer": measure.first_layer,
        }
    )


def is_measured_whole(model):
    """Whether all estimators of the configuration are measured at every checkpoint of a model."""
    return model not in setting("measurement", "for_figures_only")


def tables_of_all(wildcards):
    """The estimators of the configuration at every checkpoint; of estimates, also what only figures draw."""
    if wildcards.table == "weights":
        return tables_of_weights()
    of_all = measured_in_the_run() if wildcards.table == "estimates" else measured_whole()
    return [
        f"<results>/tables/{which}/{model}/{estimator}/{wildcards.table}.csv"
        for (model, estimator), which in of_all.items()
    ]


def measured_whole():
    """Models and estimators of the configuration, which are measured at every checkpoint."""
    return {
        (model, estimator): "every_checkpoint"
        for model in filter(is_measured_whole, CONFIGURATION.models)
        for estimator in CONFIGURATION.estimators
        if estimator in MEASURES
    }


@cache
def measured_in_the_run():
    """These, and beyond them what figures draw, each with the checkpoints at which it is measured."""
    measured = measured_whole()
    for name, models in CONFIGURATION.figures.items():
        which = checkpoints_of_figure(FIGURES[name])
        for model in models:
            for estimator in estimated(FIGURES[name]):
                # Every checkpoint, if one figure draws them all, is also the last one.
                if measured.get((model, estimator)) != "every_checkpoint":
                    measured[model, estimator] = which
    return measured
