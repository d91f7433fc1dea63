"""What a model's own matrices say: its embeddings of the vocabulary at both ends, and its final norm.

REQUIRED INPUTS: the dump of a checkpoint, which has them in weights.h5.
OUTPUTS:
    <results>/weights/{model}/{revision}.csv         one value per matrix and estimator of weights
    <results>/weight_points/{model}/{revision}.csv   where entries of the vocabulary lie, of the checkpoints that a
                                                     figure shows so
STEPS: measure_weights, one job for each checkpoint that a figure reads.
"""


rule measure_weights:
    """Measure the matrices of one checkpoint, read by rows."""
    input:
        **DUMP,
    output:
        **WEIGHT_FILES,
    log:
        "<logs>/weights/{model}/{revision}.log",
    benchmark:
        "<benchmarks>/weights/{model}/{revision}.tsv"
    group:
        checkpoint_group
    conda:
        "../../envs/metrics.yaml"
    resources:
        **if_counted(mem_mb=weights_memory, runtime=weights_minutes),
    params:
        weights=weights,
        precision=forward_precision,
        forward=science("dump_embeddings", "embeddings.model_weights"),
        science=[science("measure_weights"), *WEIGHT_SCIENCE],
        measurement=weight_measurement,
    shell:
        'python "$SCRIPTS/measure_weights.py" --weights {input.embeddings:q}/weights.h5'
        " --measurement {params.measurement:q} --values {output.weights:q} --points {output.weight_points:q} --log {log:q}"
