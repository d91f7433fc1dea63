"""Predictions of a decoder whose blocks are dropped, or replaced by affine maps.

REQUIRED INPUTS: the cleaned text and the last checkpoint of a decoder.
OUTPUTS:
    <results>/tables/edits/{model}.csv        perplexity with changed blocks, one row per order, kind and number
    <results>/tables/fit_errors/{model}.csv   one row per block: quantiles of the errors of its affine map over tokens
STEPS: edit_blocks, which loads the model once.
"""

from dataclasses import replace

from papers.linear.job import Distillation, Editing, EditJob
from papers.linear.resources import estimate_editing
from papers.linear.settings import BlockEditing


def ask_last_checkpoint(function):
    """Return a function for a rule, which calls another function with a model and its last good checkpoint."""
    return ask_plan(lambda model: function(model, RUN.find_last_checkpoint(model).name), "model")


def make_edit_job(model):
    """Make the job of the last checkpoint of a decoder, which must have `most_blocks` blocks or more."""
    section = SETTINGS.find_section(BlockEditing)
    shape = MODELS[model].shape
    most_blocks = section.most_blocks
    if shape.role != "decoder":
        raise InputError(
            f"model `{model}` is an {shape.role}, but only the blocks of decoders, which predict the next token, "
            "can be changed; remove it from the figures that draw changed blocks"
        )
    if most_blocks > shape.layers:
        raise InputError(
            f"configuration key `block_editing.most_blocks` is {most_blocks}, but model `{model}` has {shape.layers} "
            "blocks; lower it"
        )
    revision = RUN.find_last_checkpoint(model).name
    sampling = replace(make_sampling_protocol(model), windows=0, last_layer="after_final_norm")
    distillation = Distillation(
        steps=section.distillation_steps,
        windows=section.distillation_windows,
        learning_rate=section.learning_rate,
    )
    editing = Editing(
        fitting_windows=section.fitting_windows,
        evaluation_windows=section.evaluation_windows,
        most_blocks=most_blocks,
        orders=tuple(section.orders),
        kinds=tuple(section.kinds),
        distillation=distillation,
    )
    return EditJob(RUN.describe_weights(model, revision), sampling, editing)


def find_edited_weights(wildcards, input):
    """Find the folder of the checkpoint that is edited."""
    revision = RUN.find_last_checkpoint(wildcards.model).name
    return find_weights_folder(wildcards.model, revision, input.get("checkpoint", []))


rule edit_blocks:
    """Drop, replace and distil blocks of a decoder, and measure its perplexity on the held-out end each time."""
    input:
        **CLEAN_CORPUS,
        checkpoint=ask_last_checkpoint(list_weights_input),
    output:
        edits="<results>/tables/edits/{model}.csv",
        errors="<results>/tables/fit_errors/{model}.csv",
    log:
        "<logs>/tables/edits/{model}.log",
    benchmark:
        "<benchmarks>/tables/edits/{model}.tsv"
    conda:
        "../../../envs/models.yaml"
    threads: count_forward_threads
    resources:
        **request_resources(estimate_editing),
        gpu=1,
        checkpoint=find_edited_weights,
        tokenizer=lambda wildcards, input: find_tokenizer_folder(
            wildcards.model, find_edited_weights(wildcards, input)
        ),
    params:
        code=lambda wildcards: digest_code("papers.linear.edit_blocks"),
        job=ask_job(make_edit_job, "model"),
    script:
        "edit_blocks.py"
