"""Everything that is measured of a checkpoint, in one job that writes no hidden states (`embeddings.dump: false`).

REQUIRED INPUTS: the cleaned text and a checkpoint.
OUTPUTS:
    <results>/measurements/{model}/{revision}/{estimator}.csv   the tables of a dump
    <results>/left_out/{model}/{revision}/{estimator}.csv       likewise
    <results>/weights/{model}/{revision}.csv                    likewise, where figures read them
    <results>/weight_points/{model}/{revision}.csv              likewise
    <results>/losses/{model}/{revision}.csv
    <results>/checkpoints/{model}/{revision}.tensors.csv
STEPS: measure_checkpoint takes the place of dump_embeddings and of all rules of metrics.smk. It keeps the hidden
    states of all layers in memory until they are measured.
"""


rule measure_checkpoint:
    """Run the sampled windows through one checkpoint and measure all layers with all estimators."""
    input:
        **CLEAN_CORPUS,
        checkpoint=checkpoint_inputs,
    output:
        **WEIGHTS_BESIDE,
        measurements=expand(
            "<results>/measurements/{{model}}/{{revision}}/{estimator}.csv",
            estimator=CHOSEN_MEASURES,
        ),
        left_out=expand(
            "<results>/left_out/{{model}}/{{revision}}/{estimator}.csv",
            estimator=CHOSEN_MEASURES,
        ),
        loss="<results>/losses/{model}/{revision}.csv",
        tensors="<results>/checkpoints/{model}/{revision}.tensors.csv",
    log:
        "<logs>/measurements/{model}/{revision}.log",
    benchmark:
        "<benchmarks>/measurements/{model}/{revision}.tsv"
    wildcard_constraints:
        model=any_of(MODELS),
    conda:
        "../../envs/models.yaml"
    threads: forward_threads
    resources:
        mem_mb=checkpoint_memory,
        runtime=checkpoint_minutes,
        gpu=forward_gpus,
        # All of its GPUs on one.
        nodes=1,
    params:
        **SAMPLE_PARAMETERS,
        science=[science("measure_checkpoint"), *map(science_of, CHOSEN_MEASURES), *WEIGHT_SCIENCE],
        measurement=measurement_at_once,
        weights_beside=weights_beside,
    message:
        "Measuring {wildcards.model} at {wildcards.revision}"
    shell:
        # Each layer is measured by one thread, which must not start others.
        "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1; "
        'python "$SCRIPTS/measure_checkpoint.py" --checkpoint {params.checkpoint:q} {params.receipt:q} --text {input.text:q}'
        " --model {wildcards.model:q} --revision {wildcards.revision:q}"
        " --protocol {params.protocol:q} --shape {params.shape:q} --threads {threads:q}"
        " --measurement {params.measurement:q} --output {output.measurements:q}"
        " --left-out {output.left_out:q} --loss {output.loss:q} --tensors {output.tensors:q} {params.weights_beside:q} --log {log:q}"
