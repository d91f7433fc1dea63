"""Weights from the Hub, from a local pretraining or from a fine-tuning.

REQUIRED INPUTS: the model list, config/models/*.yaml; for a pretraining the cleaned text; for a
fine-tuning another checkpoint and the examples of a task.
OUTPUTS:
    config/locks/{model}.yaml                     commit and hashes of each revision, for later runs
    <results>/checkpoints/{model}.csv             the files that the lock lists, and a verdict on each revision
    <results>/downloads/{model}/{revision}/       weights, tokenizer, configuration and checkpoint.json; a download that
                                                  is kept lies in <resources>/checkpoints/, and this folder is a link
    <results>/pretrained/{model}/step{N}/         the same files of a pretraining, one folder per saved step
    <results>/finetuned/{model}/step{N}/          the same files of a fine-tuning; 16 steps are an epoch
    <results>/tables/training/{model}.csv         held-out losses and scores of the steps of a training
STEPS: the plan of a run asks the Hub for revisions and main branches that no lock holds. The start of the run writes the
locks. fetch_checkpoint runs for each good revision, and with `bad_checkpoints: flag` for each bad one that can be read;
pretrain_model or finetune_model runs once per model, and judge_checkpoints after all checkpoints have been measured.
"""


def name_download(model, revision):
    """Name the place of a download that is kept, by a digest of the pinned hashes, so that no other run changes it."""
    if not SETTINGS.keep_checkpoints:
        return ""
    return name_shared_place(
        "checkpoints", f"{model}/{revision}", RUN.identify_weights(model, revision)
    )


def find_origin_weights(wildcards, input):
    """Find the folder of the checkpoint with which a fine-tuning begins."""
    return find_weights_folder(*RUN.find_origin(wildcards.model), input.get("checkpoint", []))


def find_origin_tokenizer(wildcards, input):
    """Find the tokenizer of the checkpoint with which a fine-tuning begins."""
    model, _ = RUN.find_origin(wildcards.model)
    return find_tokenizer_folder(model, find_origin_weights(wildcards, input))


def list_checkpoint_files(pattern):
    """Return an input function that lists one file of each measured checkpoint of a model."""

    def list_files(model):
        checkpoints = RUN.list_checkpoints(model)
        return [pattern.format(model=model, revision=checkpoint.name) for checkpoint in checkpoints]

    return ask_plan(list_files, "model")


rule resolve:
    """Pin the revisions of all models of the configuration, and do nothing else."""
    input:
        ask_plan(RUN.resolve),


rule check_checkpoints:
    """List the revisions of a model with the files in its lock, and the verdicts on them."""
    output:
        list_in_report(
            "<results>/checkpoints/{model}.csv",
            "Checkpoints",
            "checkpoints",
            {"model": "{model}", "as": "listed by the Hub"},
        ),
    log:
        "<logs>/checkpoints/{model}.log",
    benchmark:
        "<benchmarks>/checkpoints/{model}.tsv"
    wildcard_constraints:
        model=match_any(RUN.list_models("repository")),
    localrule: True
    conda:
        "../../envs/checkpoints.yaml"
    params:
        code=lambda wildcards: digest_code("check_checkpoints"),
        job=ask_job(lambda model: RUN.resolve_checkpoints(model).make_listing_job(), "model"),
    script:
        "../scripts/check_checkpoints.py"


rule fetch_checkpoint:
    """Download one revision at the commit that its lock pins.

    The lock is no input, so that a change of another revision does not fetch this revision again. The code is no
    parameter, since the pinned hashes admit no other bytes.
    """
    output:
        mark_temporary(directory(f"{DOWNLOADS}/{{model}}/{{revision}}"), SETTINGS.keep_checkpoints),
    log:
        "<logs>/checkpoints/{model}/{revision}.log",
    benchmark:
        "<benchmarks>/checkpoints/{model}/{revision}.tsv"
    wildcard_constraints:
        model=match_any(RUN.list_models("repository")),
    localrule: True
    conda:
        "../../envs/checkpoints.yaml"
    # As many cores as a forward pass: many downloads of one core each would keep a forward pass waiting for its cores,
    # and would fill the disk meanwhile.
    threads: count_forward_threads
    resources:
        downloads=1,
        shared=ask_plan(name_download, "model", "revision"),
    params:
        job=ask_job(RUN.make_download_job, "model", "revision"),
    script:
        "../scripts/fetch_checkpoint.py"


rule pretrain_model:
    """Train a small model on the cleaned text and save it at log-spaced steps.

    The number of threads is part of the recipe, since the rounding of sums depends on it.
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
        model=match_any(RUN.list_models("pretraining")),
    priority: 10  # many jobs need the trained model
    conda:
        "../../envs/models.yaml"
    threads: lambda wildcards: MODELS[wildcards.model].recipe["threads"]
    resources:
        **request_resources(needs.estimate_training),
    params:
        code=lambda wildcards: digest_code("pretrain_model"),
        job=ask_job(RUN.make_pretraining_job, "model"),
    script:
        "../scripts/pretrain_model.py"


rule finetune_model:
    """Train a checkpoint further on a task and save it at log-spaced steps.

    The number of threads is part of the recipe, since the rounding of sums depends on it.
    """
    input:
        checkpoint=ask_plan(lambda model: list_weights_input(*RUN.find_origin(model)), "model"),
        task=lambda wildcards: f"<results>/tasks/{MODELS[wildcards.model].recipe['task']}.csv",
        description=lambda wildcards: f"<results>/tasks/{MODELS[wildcards.model].recipe['task']}.json",
    output:
        steps=mark_temporary(directory("<results>/finetuned/{model}"), SETTINGS.keep_checkpoints),
        table="<results>/tables/training/{model}.csv",
    log:
        "<logs>/finetuned/{model}.log",
    benchmark:
        "<benchmarks>/finetuned/{model}.tsv"
    wildcard_constraints:
        model=match_any(RUN.list_models("finetuning")),
    priority: 10  # many jobs need the trained model
    conda:
        "../../envs/models.yaml"
    threads: lambda wildcards: MODELS[wildcards.model].recipe["threads"]
    resources:
        **request_resources(needs.estimate_training),
        checkpoint=find_origin_weights,
        tokenizer=find_origin_tokenizer,
    params:
        code=lambda wildcards: digest_code("finetune_model"),
        job=ask_job(RUN.make_finetuning_job, "model"),
    script:
        "../scripts/finetune_model.py"


rule judge_checkpoints:
    """Judge the checkpoints of a model by their files, tensors and losses."""
    input:
        losses=list_checkpoint_files("<results>/losses/{model}/{revision}.csv"),
        tensors=list_checkpoint_files("<results>/checkpoints/{model}/{revision}.tensors.csv"),
    output:
        list_in_report(
            "<results>/tables/verdicts/{model}.csv",
            "Checkpoints",
            "verdicts",
            {"model": "{model}", "as": "measured"},
        ),
    log:
        "<logs>/tables/verdicts/{model}.log",
    benchmark:
        "<benchmarks>/tables/verdicts/{model}.tsv"
    priority: 3
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        code=lambda wildcards: digest_code("judge_checkpoints"),
        job=ask_job(RUN.make_checkpoint_judgement_job, "model"),
    script:
        "../scripts/judge_checkpoints.py"
