"""From one small file per layer and estimator to the tables that figures and readers use.

REQUIRED INPUTS: the measurements of each layer.
OUTPUTS:
    <results>/tables/{selection}/{model}/{estimator}.csv   one model and estimator, all layers
    <results>/tables/measurements.csv                      everything
    <results>/tables/protocol.yaml                         the configuration that it was measured with
STEPS: gather_layers, gather_measurements and write_protocol.
"""


rule gather_layers:
    """Gather one estimator over the layers and checkpoints of one model."""
    input:
        layer_measurements,
    output:
        "<results>/tables/{selection}/{model}/{estimator}.csv",
    log:
        "<logs>/tables/{selection}/{model}/{estimator}.log",
    benchmark:
        "<benchmarks>/tables/{selection}/{model}/{estimator}.tsv"
    wildcard_constraints:
        selection="every_checkpoint|last_checkpoint",
        model=any_of(MODELS),
        estimator=any_of(ESTIMATORS),
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        science=science("gather_layers"),
        # The script is given the folder: thousands of names would not fit into one command line.
        folder=subpath(input[0], ancestor=3 if setting("embeddings", "dump") else 1),
        layers=model_layers,
        role=model_role,
        checkpoints=checkpoint_arguments,
    shell:
        'python "$SCRIPTS/gather_layers.py" --folder {params.folder:q} --model {wildcards.model}'
        " --role {params.role} --layers {params.layers} --estimator {wildcards.estimator}"
        " {params.checkpoints} --output {output:q} --log {log:q}"


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
        settings=json.dumps(CONFIGURATION.settings),
    message:
        "Writing the protocol"
    shell:
        'python "$SCRIPTS/write_protocol.py" --settings {params.settings:q} --output {output:q} --log {log:q}'
