"""What happens to a decoder's predictions when blocks are dropped, or replaced by affine maps.

REQUIRED INPUTS: the cleaned text and the last checkpoint of a decoder.
OUTPUTS:
    <results>/tables/edits/{model}.csv        perplexity with changed blocks, one row per order, kind and number
    <results>/tables/fit_errors/{model}.csv   one row per block: how well an affine map fits it, token by token
STEPS: edit_blocks, which loads the model once.
"""


include: "common.smk"


rule edit_blocks:
    """Drop, replace and distil blocks of a decoder, and measure its perplexity on the held-out end each time."""
    input:
        **CLEAN_CORPUS,
        checkpoint=edited(checkpoint_inputs),
    output:
        edits="<results>/tables/edits/{model}.csv",
        errors="<results>/tables/fit_errors/{model}.csv",
    log:
        "<logs>/tables/edits/{model}.log",
    benchmark:
        "<benchmarks>/tables/edits/{model}.tsv"
    wildcard_constraints:
        model=any_of(MODELS),
    conda:
        "../../../envs/models.yaml"
    threads: forward_threads
    resources:
        mem_mb=editing_memory,
        runtime=editing_minutes,
        gpu=1,
    params:
        **{key: edited(function) for key, function in SAMPLE_PARAMETERS.items()},
        revision=edited(lambda checkpoint: checkpoint.revision),
        editing=block_editing,
        science=science("edit_blocks"),
    message:
        "Changing blocks of {wildcards.model}"
    shell:
        # Maps are fitted by one thread, which must not start others.
        "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1; "
        'python "$SCRIPTS/edit_blocks.py" --checkpoint {params.checkpoint:q} {params.receipt:q} --text {input.text:q}'
        " --model {wildcards.model:q} --revision {params.revision:q}"
        " --protocol {params.protocol:q} --shape {params.shape:q} --threads {threads:q}"
        " --editing {params.editing:q} --output {output.edits:q} {output.errors:q} --log {log:q}"
