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
        mem_mb=memory_of_editing,
        runtime=minutes_of_editing,
        gpu=1,
        checkpoint=edited(folder_on_this_machine),
        window_batch_size=editing_batch_size,
    params:
        code=science("edit_blocks"),
        revision=edited(lambda checkpoint: checkpoint.revision),
        receipt=edited(receipt_path),
        weights=edited(weights),
        shape=model_shape_fields,
        sampling=editing_sampling,
        editing=block_editing,
    message:
        "Changing blocks of {wildcards.model}"
    script:
        "../../scripts/edit_blocks.py"
