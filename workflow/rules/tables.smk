"""From one small file per checkpoint and estimator to the tables that figures and readers use.

REQUIRED INPUTS: the measurements of each checkpoint.
OUTPUTS:
    <results>/tables/{which}/{model}/{estimator}.csv   one model and estimator, of every_checkpoint or last_checkpoint
    <results>/tables/measurements.csv                  everything
    <results>/tables/protocol.yaml                     the configuration that it was measured with
STEPS: gather_checkpoints, gather_measurements and write_protocol.
"""


rule gather_checkpoints:
    """Gather one estimator over the checkpoints of one model."""
    input:
        checkpoint_measurements,
    output:
        "<results>/tables/{which}/{model}/{estimator}.csv",
    log:
        "<logs>/tables/{which}/{model}/{estimator}.log",
    benchmark:
        "<benchmarks>/tables/{which}/{model}/{estimator}.tsv"
    wildcard_constraints:
        which="every_checkpoint|last_checkpoint",
        model=any_of(MODELS),
        estimator=any_of(CONFIGURATION.measures),
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        science=science("gather_checkpoints"),
        # The script is given the folder: many names make a long command line.
        folder=subpath(input[0], ancestor=2),
        layers=model_layers,
        role=model_role,
        checkpoints=gathered_checkpoints,
    shell:
        'python "$SCRIPTS/gather_checkpoints.py" --folder {params.folder:q} --model {wildcards.model:q}'
        " --role {params.role:q} --layers {params.layers:q} --estimator {wildcards.estimator:q}"
        " --checkpoints {params.checkpoints:q} --output {output:q} --log {log:q}"


rule gather_measurements:
    """Gather all models and estimators into one tidy table."""
    input:
        measurements=expand(
            "<results>/tables/every_checkpoint/{model}/{estimator}.csv",
            model=MODELS,
            estimator=CONFIGURATION.estimators,
        ),
    output:
        report("<results>/tables/measurements.csv", category="Tables"),
    log:
        "<logs>/tables/measurements.log",
    benchmark:
        "<benchmarks>/tables/measurements.tsv"
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        science=science("gather_measurements"),
    message:
        "Gathering all measurements"
    shell:
        'python "$SCRIPTS/gather_measurements.py" --measurements {input.measurements:q} --output {output:q} --log {log:q}'


rule write_protocol:
    """Keep the configuration beside the numbers that it led to."""
    output:
        "<results>/tables/protocol.yaml",
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
