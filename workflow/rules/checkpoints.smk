"""Weights, from the Hub, from a local pretraining or from a fine-tuning.

REQUIRED INPUTS: the model list, config/models/*.yaml; for a pretraining the cleaned text; for a
fine-tuning another checkpoint and the examples of a task.
OUTPUTS:
    config/locks/{model}.yaml                     commit and hashes of each revision, for later runs
    <results>/checkpoints/{model}.csv             what the lock lists, and a verdict on each revision
    <resources>/checkpoints/{model}/{revision}/   weights, tokenizer, configuration and checkpoint.json; where they are
                                                  not kept, <resources>/unkept_checkpoints/, or that@{run}
    <results>/pretrained/{model}/step{N}/         the same, one folder per saved step
    <results>/finetuned/{model}/step{N}/          likewise of a fine-tuning; 16 steps are an epoch
    <results>/tables/training/{model}.csv         held-out losses and scores of the steps of both
STEPS: what no lock says is asked while the run is planned, and the bad revisions left out; locks are written as it
starts. fetch_checkpoint for each good revision, or pretrain_model or finetune_model once per model; judge_checkpoints when they have
been measured.
"""


rule resolve:
    """Pin the revisions of all models of the configuration, without any other work."""
    input:
        all_pins,


rule check_checkpoints:
    """Say of each revision of a model what its lock lists, and the verdict on it."""
    output:
        report(
            "<results>/checkpoints/{model}.csv",
            caption="../report/checkpoints.rst",
            category="Checkpoints",
            labels={"model": "{model}", "as": "listed by the Hub"},
        ),
    log:
        "<logs>/checkpoints/{model}.log",
    benchmark:
        "<benchmarks>/checkpoints/{model}.tsv"
    wildcard_constraints:
        model=any_of(models_from("repository")),
    localrule: True
    conda:
        "../../envs/checkpoints.yaml"
    params:
        code=science("check_checkpoints"),
        rows=integrity_rows,
    message:
        "Listing the revisions of {wildcards.model}"
    script:
        "../scripts/check_checkpoints.py"


rule fetch_checkpoint:
    """Download one revision at the commit that its lock pins.

    The lock is no input: news of another revision does not fetch this one again. Nor is the code, since the
    pinned hashes admit no other bytes.
    """
    output:
        download(),
    log:
        "<logs>/checkpoints/{model}/{revision}.log",
    benchmark:
        "<benchmarks>/checkpoints/{model}/{revision}.tsv"
    wildcard_constraints:
        model=any_of(models_from("repository")),
    localrule: runs_beside_snakemake("fetch_checkpoint")
    conda:
        "../../envs/checkpoints.yaml"
    # As many as the forward pass: downloads of one core each would leave it waiting for all cores, and fill
    # the disk meanwhile.
    threads: forward_threads
    resources:
        downloads=1,
        runtime=download_minutes,
    params:
        pinned=pinned_revision,
        tokenizer=pinned_tokenizer,
        shape=entry_shape,
    message:
        "Fetching {wildcards.model} at {wildcards.revision}"
    script:
        "../scripts/fetch_checkpoint.py"


rule pretrain_model:
    """Train a small model on the cleaned text and save it at log-spaced steps.

    Its threads are part of the recipe, since they decide how sums are rounded.
    """
    input:
        **CLEAN_CORPUS,
    output:
        steps=directory("<results>/pretrained/{model}"),
        table="<results>/tables/training/{model}.csv",
    log:
        "<logs>/pretrained/{model}.log",
    benchmark:
        "<benchmarks>/pretrained/{model}.tsv"
    wildcard_constraints:
        model=any_of(pretrained_on("cpu")),
    conda:
        "../../envs/models.yaml"
    threads: training_threads
    resources:
        mem_mb=pretraining_memory,
        runtime=pretraining_minutes,
    params:
        code=science("pretrain_model"),
        recipe=pretraining_recipe,
    message:
        "Pretraining {wildcards.model}"
    script:
        "../scripts/pretrain_model.py"


# A rule of its own, since a profile sends rules, not models, to a partition.
use rule pretrain_model as pretrain_model_on_gpu with:
    wildcard_constraints:
        model=any_of(pretrained_on("cuda")),
    resources:
        mem_mb=pretraining_memory,
        runtime=pretraining_minutes,
        gpu=1,


rule finetune_model:
    """Train a checkpoint further on a task and save it at log-spaced steps.

    Its threads are part of the recipe, since they decide how sums are rounded. Where the checkpoint lies is no
    parameter; what is in it is.
    """
    input:
        checkpoint=origin_inputs,
        task=task_table,
        description=task_description,
    output:
        steps=directory("<results>/finetuned/{model}"),
        table="<results>/tables/training/{model}.csv",
    log:
        "<logs>/finetuned/{model}.log",
    benchmark:
        "<benchmarks>/finetuned/{model}.tsv"
    wildcard_constraints:
        model=any_of(models_from("finetuning")),
    conda:
        "../../envs/models.yaml"
    threads: training_threads
    resources:
        mem_mb=finetuning_memory,
        runtime=finetuning_minutes,
        checkpoint=origin_folder,
    params:
        code=science("finetune_model"),
        receipt=origin_receipt,
        weights=origin_weights,
        origin=origin_names,
        role=lambda wildcards: MODELS[wildcards.model].shape.role,
        recipe=finetuning_recipe,
    message:
        "Fine-tuning {wildcards.model}"
    script:
        "../scripts/finetune_model.py"


rule judge_checkpoints:
    """Compare tensors and losses of the checkpoints of a model, beside what their files say."""
    input:
        losses=checkpoint_losses,
        tensors=checkpoint_tensors,
    output:
        report(
            "<results>/tables/verdicts/{model}.csv",
            caption="../report/verdicts.rst",
            category="Checkpoints",
            labels={"model": "{model}", "as": "measured"},
        ),
    log:
        "<logs>/tables/verdicts/{model}.log",
    benchmark:
        "<benchmarks>/tables/verdicts/{model}.tsv"
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        code=science("judge_checkpoints"),
        verdicts=judgement,
    message:
        "Judging the checkpoints of {wildcards.model}"
    script:
        "../scripts/judge_checkpoints.py"
