"""Everything that is measured of a checkpoint, in one job that writes no hidden states (`embeddings.dump: false`).

REQUIRED INPUTS: the cleaned text and a checkpoint.
OUTPUTS:
    <results>/within_the_pass/measurements/{model}/{revision}/layer_{layer}/{estimator}.csv   the tables of a dump
    <results>/within_the_pass/losses/{model}/{revision}.csv
STEPS: measure_checkpoint takes the place of dump_embeddings and of all rules of metrics.smk. It brings all windows
    through the model side by side, layer by layer, and measures each layer while the next one is computed.
"""


rule measure_checkpoint:
    """Run the sampled windows through one checkpoint and measure all layers with all estimators."""
    input:
        checkpoint=checkpoint_inputs,
        text=CLEAN_TEXT,
    output:
        measurements=directory("<results>/within_the_pass/measurements/{model}/{revision}"),
        loss="<results>/within_the_pass/losses/{model}/{revision}.csv",
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
        science=science("measure_checkpoint"),
        estimators=str(ESTIMATORS),
        batch_vectors=setting("measurement", "batch_vectors"),
    message:
        "Measuring {wildcards.model} at {wildcards.revision}"
    shell:
        # Each layer is measured by one thread, which must not start others.
        "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1; "
        + SAMPLE_COMMAND
        + " --batch-vectors {params.batch_vectors} --output {output.measurements:q}"
        " --loss {output.loss:q} --log {log:q}"
