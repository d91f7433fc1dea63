"""Everything that is measured of a checkpoint, in one job that writes no hidden states (`embeddings.dump: false`).

REQUIRED INPUTS: the cleaned text and a checkpoint.
OUTPUTS: the tables of a dump, in the folder <results>/measurements/{model}/{revision}; and what dump_embeddings
    writes beside hidden states.
STEPS: measure_checkpoint takes the place of dump_embeddings and measure. It keeps the hidden states of all layers
    in memory until they are measured.
"""


rule measure_checkpoint:
    """Run the sampled windows through one checkpoint and measure all layers with all estimators wanted of it."""
    input:
        **CLEAN_CORPUS,
        checkpoint=checkpoint_inputs,
    output:
        **WEIGHT_FILES,
        measurements=directory("<results>/measurements/{model}/{revision}"),
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
        **SAMPLE_RESOURCES,
        mem_mb=checkpoint_memory,
        runtime=checkpoint_minutes,
    params:
        code=science_of_checkpoint,
        weights=weights,
        sample=sample_of_checkpoint,
        measuring=measuring_of_checkpoint,
        matrices=measured_matrices,
    message:
        "Measuring {wildcards.model} at {wildcards.revision}"
    script:
        "../scripts/measure_checkpoint.py"
