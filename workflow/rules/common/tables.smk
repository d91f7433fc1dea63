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
    tables = expand(
        f"<results>/tables/every_checkpoint/{{model}}/{{estimator}}/{wildcards.table}.csv",
        model=filter(is_measured_whole, CONFIGURATION.models),
        estimator=[name for name in CONFIGURATION.estimators if name in MEASURES],
    )
    return tables + (drawn_besides() if wildcards.table == "estimates" else [])


def drawn_besides():
    """Tables of estimates that figures read beyond those."""
    drawn = {}
    for name, models in CONFIGURATION.figures.items():
        which = checkpoints_of_figure(FIGURES[name])
        for model in models:
            whole = CONFIGURATION.estimators if is_measured_whole(model) else ()
            for estimator in (e for e in estimated(FIGURES[name]) if e not in whole):
                # Every checkpoint, if one figure draws them all, is also the last one.
                if drawn.get((model, estimator)) != "every_checkpoint":
                    drawn[model, estimator] = which
    return [
        f"<results>/tables/{which}/{model}/{estimator}/estimates.csv"
        for (model, estimator), which in drawn.items()
    ]
