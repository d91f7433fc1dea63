"""Values per batch, of all layers of a checkpoint, for each estimator.

REQUIRED INPUTS: the embeddings of a checkpoint.
OUTPUTS:
    <results>/neighbours/{model}/{revision}/layer_{layer}.h5   nearest neighbours, kept, and their .sha256
    <results>/spectra/{model}/{revision}/layer_{layer}.h5      eigenvalues, where an estimator asks for them; likewise
    <results>/measurements/{model}/{revision}/{estimator}.csv  per batch
    <results>/left_out/{model}/{revision}/{estimator}.csv      per layer, with values without each group of windows
STEPS: find_neighbours and find_spectra read the hidden states once for all estimators; measure reads what its
estimator is taken of: the hidden states, nearest distances or spectra. measure_pairs takes all estimators of pairs
of hidden states, since they share sums. On a cluster, whatever of this is wanted of one checkpoint travels as one
group.
"""


rule find_neighbours:
    """Search nearest neighbours in shuffled batches of one size."""
    input:
        **DUMP,
    output:
        distances="<results>/neighbours/{model}/{revision}/layer_{layer}.h5",
        digest="<results>/neighbours/{model}/{revision}/layer_{layer}.h5.sha256",
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
        **MEASUREMENT,
        science=science("find_neighbours"),
        neighbours=setting("measurement", "neighbours"),
    shell:
        'python "$SCRIPTS/find_neighbours.py" --embeddings {input.embeddings:q}/layer_{wildcards.layer:q}.h5'
        " --model {wildcards.model:q} --selection {params.selection:q} --neighbours {params.neighbours:q}"
        " --batch-vectors {params.batch_vectors:q} --protocol {params.sample:q}"
        " --output {output.distances:q} --log {log:q}"


rule find_spectra:
    """Find the eigenvalues of the covariance of contiguous batches."""
    input:
        **DUMP,
    output:
        spectra="<results>/spectra/{model}/{revision}/layer_{layer}.h5",
        digest="<results>/spectra/{model}/{revision}/layer_{layer}.h5.sha256",
    log:
        "<logs>/spectra/{model}/{revision}/layer_{layer}.log",
    benchmark:
        "<benchmarks>/spectra/{model}/{revision}/layer_{layer}.tsv"
    group:
        checkpoint_group
    conda:
        "../../envs/metrics.yaml"
    resources:
        **if_counted(mem_mb=isotropy_memory, runtime=spectra_minutes),
    params:
        **MEASUREMENT,
        science=science("find_spectra"),
    shell:
        'python "$SCRIPTS/find_spectra.py" --embeddings {input.embeddings:q}/layer_{wildcards.layer:q}.h5'
        " --selection {params.selection:q} --batch-vectors {params.batch_vectors:q} --protocol {params.sample:q}"
        " --output {output.spectra:q} --log {log:q}"


rule measure:
    """Measure all layers of a checkpoint with one estimator."""
    input:
        measured=what_is_measured,
        receipts=receipts_of_what_is_measured,
    output:
        values="<results>/measurements/{model}/{revision}/{estimator}.csv",
        left_out="<results>/left_out/{model}/{revision}/{estimator}.csv",
    log:
        "<logs>/measurements/{model}/{revision}/{estimator}.log",
    benchmark:
        "<benchmarks>/measurements/{model}/{revision}/{estimator}.tsv"
    wildcard_constraints:
        estimator=any_of(set(CHOSEN_MEASURES) - set(PAIRS)),
    group:
        checkpoint_group
    conda:
        "../../envs/metrics.yaml"
    resources:
        **if_counted(mem_mb=measure_memory, runtime=measure_minutes),
    params:
        **MEASUREMENT,
        science=science_of_estimator,
        measure=measure_settings,
        folder=measured_folder,
        layers=model_layers,
    shell:
        'python "$SCRIPTS/measure.py" --folder {params.folder:q} --layers {params.layers:q}'
        " --measure {params.measure:q} --selection {params.selection:q} --batch-vectors {params.batch_vectors:q}"
        " --protocol {params.sample:q} --output {output.values:q} --left-out {output.left_out:q} --log {log:q}"


if PAIRS:

    rule measure_pairs:
        """Measure all blocks of a checkpoint with all estimators of pairs."""
        input:
            **DUMP,
        output:
            values=expand(
                "<results>/measurements/{{model}}/{{revision}}/{estimator}.csv",
                estimator=PAIRS,
            ),
            left_out=expand(
                "<results>/left_out/{{model}}/{{revision}}/{estimator}.csv",
                estimator=PAIRS,
            ),
        log:
            "<logs>/measurements/{model}/{revision}/pairs.log",
        benchmark:
            "<benchmarks>/measurements/{model}/{revision}/pairs.tsv"
        group:
            checkpoint_group
        conda:
            "../../envs/metrics.yaml"
        resources:
            **if_counted(mem_mb=pairs_memory, runtime=pairs_minutes),
        params:
            weights=weights,
            sample=sampling_protocol,
            forward=science("dump_embeddings"),
            selection=ROWS["selection"],
            science=[science_of(name) for name in PAIRS],
            measures=pair_settings,
            layers=model_layers,
        shell:
            'python "$SCRIPTS/measure_pairs.py" --folder {input.embeddings:q} --layers {params.layers:q}'
            " --measures {params.measures:q} --selection {params.selection:q} --protocol {params.sample:q}"
            " --output {output.values:q} --left-out {output.left_out:q} --log {log:q}"
