"""From small files per checkpoint to the tables that figures and readers use.

REQUIRED INPUTS: the tidy tables of each checkpoint, and what was measured of its matrices.
OUTPUTS:
    <results>/tables/{table}/{model}.csv  everything of one model: measurements (one row per batch), estimates (one
                                          row per value, with its interval), changes (between checkpoints) and
                                          left_out (what intervals come from)
    <results>/tables/{kind}/{model}.csv   weights, last_weights and weight_points: what is measured of a model's own
                                          matrices, at every checkpoint or the last one
    <results>/tables/{table}.csv          measurements, estimates, changes and weights of all models
    <results>/tables/protocol.yaml        the configuration that it was measured with
STEPS: gather_model, gather_weights, gather_tables and write_protocol.
"""


rule gather_model:
    """Gather all estimators over the checkpoints of one model, with intervals and changes."""
    input:
        measurements_of_model,
    output:
        **{table: f"<results>/tables/{table}/{{model}}.csv" for table in (*GATHERED, "left_out")},
    log:
        "<logs>/tables/{model}.log",
    benchmark:
        "<benchmarks>/tables/{model}.tsv"
    wildcard_constraints:
        model=any_of(MODELS),
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        code=science("gather_model"),
        model=measured_model,
        curves=measured_curves,
    script:
        "../scripts/gather_model.py"


rule gather_weights:
    """Gather what was measured of the matrices of one model over its checkpoints."""
    input:
        gathered_weights,
    output:
        "<results>/tables/{kind}/{model}.csv",
    log:
        "<logs>/tables/{kind}/{model}.log",
    benchmark:
        "<benchmarks>/tables/{kind}/{model}.tsv"
    wildcard_constraints:
        kind=any_of(WEIGHT_TABLES),
        model=any_of(MODELS),
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        code=science("gather_weights"),
        kind=lambda wildcards: WEIGHT_TABLES[wildcards.kind],
        checkpoints=gathered_checkpoints,
    script:
        "../scripts/gather_weights.py"


rule gather_tables:
    """Gather the tables of all models into one tidy table."""
    input:
        tables_of_all,
    output:
        report(
            "<results>/tables/{table}.csv",
            caption="../report/all_values.rst",
            category="All values",
            labels=lambda wildcards: {"result": NAMES_OF_RESULTS[f"tables/{wildcards.table}"]},
        ),
    log:
        "<logs>/tables/{table}.log",
    benchmark:
        "<benchmarks>/tables/{table}.tsv"
    wildcard_constraints:
        table=any_of((*GATHERED, "weights")),
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        code=science("gather_tables"),
        curves=curves_in_table,
    message:
        "Gathering all {wildcards.table}"
    script:
        "../scripts/gather_tables.py"


rule write_protocol:
    """Keep the configuration beside the numbers that it led to."""
    output:
        report(
            "<results>/tables/protocol.yaml",
            caption="../report/protocol.rst",
            category="Provenance",
            labels={"result": "Protocol: the configuration of the run"},
        ),
    log:
        "<logs>/tables/protocol.log",
    benchmark:
        "<benchmarks>/tables/protocol.tsv"
    localrule: True
    conda:
        "../../envs/corpus.yaml"
    params:
        code=science("write_protocol"),
        settings=settings_without_secrets,
    message:
        "Writing the protocol"
    script:
        "../scripts/write_protocol.py"
