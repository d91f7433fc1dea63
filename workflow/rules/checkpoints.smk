"""Weights, from the Hub or from a local pretraining.

REQUIRED INPUTS: the model list, config/models/*.yaml; for a pretraining the cleaned text.
OUTPUTS:
    <resources>/checkpoints/{model}/{revision}/   weights, tokenizer, configuration and checkpoint.json
    <results>/pretrained/{model}/step{N}/         the same, one folder per saved step
STEPS: fetch_checkpoint for each revision, or pretrain_model once per model.
"""


rule fetch_checkpoint:
    """Download one revision, pinned to the commit that it resolves to."""
    input:
        script=script("fetch_checkpoint"),
        library=library("fetch_checkpoint"),
    output:
        directory("<resources>/checkpoints/{model}/{revision}"),
    log:
        "<logs>/checkpoints/{model}/{revision}.log",
    benchmark:
        "<benchmarks>/checkpoints/{model}/{revision}.tsv"
    wildcard_constraints:
        model=any_of(MODELS_BY_SOURCE["hub"]),
    localrule: True
    conda:
        "../../envs/checkpoints.yaml"
    params:
        arguments=hub_arguments,
    message:
        "Fetching {wildcards.model} at {wildcards.revision}"
    shell:
        "python {input.script:q} --model {wildcards.model} {params.arguments:q}"
        " --output {output:q} --log {log:q}"


rule pretrain_model:
    """Train a small model on the cleaned text and save it at log-spaced steps.

    Its threads are part of the recipe, since they decide how sums are rounded.
    """
    input:
        text=CLEAN_TEXT,
        script=script("pretrain_model"),
        library=library("pretrain_model"),
    output:
        directory("<results>/pretrained/{model}"),
    log:
        "<logs>/pretrained/{model}.log",
    benchmark:
        "<benchmarks>/pretrained/{model}.tsv"
    wildcard_constraints:
        model=any_of(MODELS_BY_SOURCE["pretraining"]),
    conda:
        "../../envs/models.yaml"
    threads: pretraining_threads
    params:
        recipe=pretraining_arguments,
        seed=CONFIGURATION.settings["seed"],
    message:
        "Pretraining {wildcards.model}"
    shell:
        "python {input.script:q} --text {input.text:q} --model {wildcards.model} {params.recipe:q}"
        " --seed {params.seed} --output {output:q} --log {log:q}"
