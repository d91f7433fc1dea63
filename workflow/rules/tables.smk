"""From small files per checkpoint and estimator to the tables that figures and readers use.

REQUIRED INPUTS: the measurements of each checkpoint, and its values with groups of windows left out.
OUTPUTS:
    <results>/tables/{which}/{model}/{estimator}/{table}.csv   one model and estimator, of every_checkpoint or
                                                               last_checkpoint; also left_out, what intervals
                                                               come from
    <results>/tables/{table}.csv     everything: measurements (one row per batch), estimates (one row per value,
                                     with its interval) and changes (between checkpoints)
    <results>/tables/{kind}/{model}.csv   weights, last_weights and weight_points: what is measured of a model's own
                                          matrices, at every checkpoint or the last one
    <results>/tables/weights.csv     the former of all models, one row per matrix, checkpoint and estimator
    <results>/tables/protocol.yaml   the configuration that it was measured with
STEPS: gather_checkpoints, gather_tables and write_protocol.
"""


rule gather_checkpoints:
    """Gather one estimator over the checkpoints of one model, with intervals and changes."""
    input:
        checkpoint_measurements,
    output:
        expand(
            "<results>/tables/{{which}}/{{model}}/{{estimator}}/{table}.csv",
            table=(*GATHERED, "left_out"),
        ),
    log:
        "<logs>/tables/{which}/{model}/{estimator}.log",
    benchmark:
        "<benchmarks>/tables/{which}/{model}/{estimator}.tsv"
    wildcard_constraints:
        which="every_checkpoint|last_checkpoint",
        model=any_of(MODELS),
        estimator=any_of(MEASURES),
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        science=science("gather_checkpoints"),
        # The script is given the folder: many names make a long command line.
        results=subpath(input[0], ancestor=4),
        curve=measured_curve,
    shell:
        'python "$SCRIPTS/gather_checkpoints.py" --curve {params.curve:q} --results {params.results:q}'
        " --output {output:q} --log {log:q}"


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
        science=science("gather_weights"),
        folder=lambda wildcards: WEIGHT_TABLES[wildcards.kind],
        checkpoints=gathered_checkpoints,
    shell:
        'python "$SCRIPTS/gather_weights.py" --kind {params.folder:q} --checkpoints {params.checkpoints:q}'
        " --tables {input:q} --output {output:q} --log {log:q}"


rule gather_tables:
    """Gather the tables of all models and estimators into one tidy table."""
    input:
        tables=tables_of_all,
    output:
        table=report(
            "<results>/tables/{table}.csv",
            caption="../report/all_values.rst",
            category="All values",
            labels=lambda wildcards: {"result": NAMES_OF_RESULTS[f"tables/{wildcards.table}"]},
        ),
        digest="<results>/tables/{table}.csv.sha256",
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
        science=science("gather_tables"),
    message:
        "Gathering all {wildcards.table}"
    shell:
        'python "$SCRIPTS/gather_tables.py" --kind {wildcards.table:q} --tables {input.tables:q}'
        " --output {output.table:q} --log {log:q}"


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
        science=science("write_protocol"),
        settings=json.dumps(without_plumbing(CONFIGURATION.settings)),
    message:
        "Writing the protocol"
    shell:
        'python "$SCRIPTS/write_protocol.py" --settings {params.settings:q} --output {output:q} --log {log:q}'
