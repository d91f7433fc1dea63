"""The tables that figures and readers use, from small files per checkpoint.

REQUIRED INPUTS: the tidy tables of all checkpoints, the measures of their matrices, and their massive tokens.
OUTPUTS:
    <results>/tables/{table}/{model}.csv  everything of one model: measurements (one row per batch), estimates (one
                                          row per value, with its interval), changes (between checkpoints) and
                                          jackknife (the values without groups of windows)
    <results>/tables/{kind}/{model}.csv   weights, last_weights and weight_points: the measures of the matrices of a
                                          model, at every checkpoint or at the last; massive: the massive tokens and
                                          their share of the variance of hidden states
    <results>/tables/{table}.csv          measurements, estimates, changes, weights and massive of all models
STEPS: gather_model, gather_weights and gather_tables.
"""

from shape_of_learning.metrics.measure_entry import FAMILIES, find_first_layer
from shape_of_learning.metrics.series import TablesJob

# Measurements in memory have another folder than measurements of a dump: otherwise Snakemake would take the files of
# one rule for outputs of the other rule, even if their protocols differ.
MEASUREMENTS = "measurements" if SETTINGS.embeddings.dump else "measurements_in_memory"


def list_measurement_files(model):
    """List the measurements of all checkpoints: files per family and layer with a dump, else a folder."""
    estimators = RUN.list_estimators_by_checkpoint(model)
    folders = {revision: f"<results>/{MEASUREMENTS}/{model}/{revision}" for revision in estimators}
    if not SETTINGS.embeddings.dump:
        return [folder for revision, folder in folders.items() if estimators[revision]]
    return [
        f"{folder}/{family}/layer_{layer}.csv"
        for revision, folder in folders.items()
        for family in FAMILIES
        if RUN.list_measures(model, revision, family)
        for layer in range(find_first_layer(family), MODELS[model].shape.layers + 1)
    ]


def list_matrix_files(kind, model):
    """List the files of the checkpoints in a table of weights or massive tokens."""
    return [
        CHECKPOINT_TABLE_FILES[CHECKPOINT_TABLES[kind]].format(
            model=model, revision=checkpoint.name
        )
        for checkpoint in RUN.list_table_checkpoints(kind, model)
    ]


def make_weights_job(kind, model):
    """Make the job that gathers the files of :func:`list_matrix_files`, with the checkpoint of each file."""
    role = MODELS[model].shape.role
    return TablesJob(
        CHECKPOINT_TABLES[kind],
        checkpoints=tuple(
            (model, role, checkpoint.name, checkpoint.step, checkpoint.tokens)
            for checkpoint in RUN.list_table_checkpoints(kind, model)
        ),
    )


def list_model_tables(table):
    """List the tables of single models that become one table."""
    if table == "weights":
        return list_table_files(RUN.list_weight_tables())
    if table == "massive":
        return expand(
            "<results>/tables/massive/{model}.csv", model=RUN.list_table_models("massive")
        )
    models = dict.fromkeys(model for model, _ in RUN.measurement_scope)
    return [f"<results>/tables/{table}/{model}.csv" for model in models]


def make_tables_job(table):
    """Make the job with the models and estimators of a table; only estimates also have those that figures add."""
    if table in ("weights", "massive"):
        return TablesJob(table)
    series = tuple(RUN.measurement_scope)
    if table != "estimates":
        series = tuple(pair for pair in series if pair[1] in RUN.estimators)
    return TablesJob(table, series)


rule gather_model:
    """Gather all estimators over the checkpoints of one model, with intervals and changes."""
    input:
        ask_plan(list_measurement_files, "model"),
    output:
        **{
            table: f"<results>/tables/{table}/{{model}}.csv"
            for table in (*GATHERED_TABLES, "jackknife")
        },
    log:
        "<logs>/tables/{model}.log",
    benchmark:
        "<benchmarks>/tables/{model}.tsv"
    priority: 3
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        code=lambda wildcards: digest_code("gather_model"),
        job=ask_job(lambda model: RUN.make_model_tables_job(model, MEASUREMENTS), "model"),
    script:
        "../scripts/gather_model.py"


rule gather_weights:
    """Gather the measures of the matrices of one model, or its massive tokens, over its checkpoints."""
    input:
        ask_plan(list_matrix_files, "kind", "model"),
    output:
        "<results>/tables/{kind}/{model}.csv",
    log:
        "<logs>/tables/{kind}/{model}.log",
    benchmark:
        "<benchmarks>/tables/{kind}/{model}.tsv"
    wildcard_constraints:
        kind=match_any(CHECKPOINT_TABLES),
    priority: 3
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        code=lambda wildcards: digest_code("gather_tables"),
        job=ask_job(make_weights_job, "kind", "model"),
    script:
        "../scripts/gather_tables.py"


rule gather_tables:
    """Gather the tables of all models into one tidy table."""
    input:
        ask_plan(list_model_tables, "table"),
    output:
        list_in_report("<results>/tables/{table}.csv", "All values", "all_values"),
    log:
        "<logs>/tables/{table}.log",
    benchmark:
        "<benchmarks>/tables/{table}.tsv"
    wildcard_constraints:
        table=match_any((*GATHERED_TABLES, "weights", "massive")),
    priority: 3
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        code=lambda wildcards: digest_code("gather_tables"),
        job=ask_job(make_tables_job, "table"),
    script:
        "../scripts/gather_tables.py"
