"""What happens to a decoder's predictions when blocks are dropped, or replaced by affine maps.

REQUIRED INPUTS: the cleaned text and the last checkpoint of a decoder.
OUTPUTS:
    <results>/tables/edits/{model}.csv        perplexity with changed blocks, one row per order, kind and number
    <results>/tables/fit_errors/{model}.csv   one row per block: how well an affine map fits it, token by token
STEPS: edit_blocks, which loads the model once.
"""

from types import SimpleNamespace

from shape_of_learning.block_editing.editing_settings import check_blocks
from shape_of_learning.plan import editing_resources


def edited(function):
    """What a function says of the checkpoint that is edited: a model's last one that is what it should be."""

    def of_the_last(wildcards):
        name = wildcards.model
        return function(SimpleNamespace(model=name, revision=last_checkpoint(name).name))

    return of_the_last


def block_editing(wildcards):
    """Section `block_editing` as JSON, if the model has so many blocks."""
    editing, shape = CONFIGURATION.settings["block_editing"], MODELS[wildcards.model].shape
    model = f"model `{wildcards.model}`"
    at_the_door(check_blocks, editing["most_blocks"], shape.role, shape.layers, model)
    return json.dumps(editing)


def editing_memory(wildcards, attempt):
    editing, work = CONFIGURATION.settings["block_editing"], work_of(wildcards.model)
    return needs.asked_mb(editing_resources.editing_memory_mb(work, editing), attempt)


def editing_minutes(wildcards, attempt):
    editing, work = CONFIGURATION.settings["block_editing"], work_of(wildcards.model)
    minutes = editing_resources.editing_minutes(work, editing, on_gpu=is_on_gpu("edit_blocks"))
    return needs.asked_minutes(minutes, attempt)


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
