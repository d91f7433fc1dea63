"""One value per batch, for each layer and estimator.

REQUIRED INPUTS: the embeddings of a checkpoint.
OUTPUTS:
    <results>/neighbours/{model}/{revision}/layer_{layer}.h5
    <results>/measurements/{model}/{revision}/layer_{layer}/{estimator}.csv
STEPS: measure_isotropy reads the hidden states; find_neighbours reads them once for all estimators of
intrinsic dimension, and measure_intrinsic_dimension reads its small output. On a cluster, whatever of this is
wanted of one checkpoint travels as one group.
"""

ISOTROPY = [name for name, e in ESTIMATORS.items() if not e.needs_neighbours]
DIMENSION = [name for name, e in ESTIMATORS.items() if e.needs_neighbours]


rule measure_isotropy:
    """Measure anisotropy or average cosine on contiguous batches."""
    input:
        embeddings="<results>/embeddings/{model}/{revision}",
    output:
        "<results>/measurements/{model}/{revision}/layer_{layer}/{estimator}.csv",
    log:
        "<logs>/measurements/{model}/{revision}/layer_{layer}/{estimator}.log",
    benchmark:
        "<benchmarks>/measurements/{model}/{revision}/layer_{layer}/{estimator}.tsv"
    wildcard_constraints:
        estimator=any_of(ISOTROPY),
    group:
        checkpoint_group
    conda:
        "../../envs/metrics.yaml"
    resources:
        **if_counted(mem_mb=isotropy_memory, runtime=isotropy_minutes),
    params:
        science=science_of_estimator("measure_isotropy"),
        estimator=registry_entry,
        batch_vectors=setting("measurement", "batch_vectors"),
    shell:
        'python "$SCRIPTS/measure_isotropy.py" --embeddings {input.embeddings:q} --layer {wildcards.layer}'
        " --estimator {wildcards.estimator} --batch-vectors {params.batch_vectors}"
        " --output {output:q} --log {log:q}"


rule find_neighbours:
    """Search nearest neighbours in shuffled batches of one size."""
    input:
        embeddings="<results>/embeddings/{model}/{revision}",
    output:
        unless_kept("<results>/neighbours/{model}/{revision}/layer_{layer}.h5"),
    log:
        "<logs>/neighbours/{model}/{revision}/layer_{layer}.log",
    benchmark:
        "<benchmarks>/neighbours/{model}/{revision}/layer_{layer}.tsv"
    group:
        checkpoint_group
    conda:
        "../../envs/metrics.yaml"
    resources:
        **if_counted(mem_mb=neighbours_memory, runtime=neighbours_minutes),
    params:
        science=science("find_neighbours"),
        neighbours=NEIGHBOURS,
        batch_vectors=setting("measurement", "batch_vectors"),
        seed=CONFIGURATION.settings["seed"],
    shell:
        'python "$SCRIPTS/find_neighbours.py" --embeddings {input.embeddings:q} --model {wildcards.model}'
        " --revision {wildcards.revision} --layer {wildcards.layer}"
        " --neighbours {params.neighbours} --batch-vectors {params.batch_vectors}"
        " --seed {params.seed} --output {output:q} --log {log:q}"


rule measure_intrinsic_dimension:
    """Estimate the intrinsic dimension from the neighbour search."""
    input:
        neighbours="<results>/neighbours/{model}/{revision}/layer_{layer}.h5",
    output:
        "<results>/measurements/{model}/{revision}/layer_{layer}/{estimator}.csv",
    log:
        "<logs>/measurements/{model}/{revision}/layer_{layer}/{estimator}.log",
    benchmark:
        "<benchmarks>/measurements/{model}/{revision}/layer_{layer}/{estimator}.tsv"
    wildcard_constraints:
        estimator=any_of(DIMENSION),
    group:
        checkpoint_group
    conda:
        "../../envs/metrics.yaml"
    resources:
        **if_counted(mem_mb=dimension_memory, runtime=dimension_minutes),
    params:
        science=science_of_estimator("measure_intrinsic_dimension"),
        estimator=registry_entry,
    shell:
        'python "$SCRIPTS/measure_intrinsic_dimension.py" --neighbours {input.neighbours:q}'
        " --estimator {wildcards.estimator} --output {output:q} --log {log:q}"
