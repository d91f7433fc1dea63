"""Weights, from the Hub or from a local pretraining.

REQUIRED INPUTS: the model list, config/models/*.yaml; for a pretraining the cleaned text.
OUTPUTS:
    config/locks/{model}.yaml                     commit and hashes of each revision, for later runs
    <results>/checkpoints/{model}.csv             what the Hub lists, and a verdict on each revision
    <resources>/checkpoints/{model}/{revision}/   weights, tokenizer, configuration and checkpoint.json
    <results>/checkpoints/{model}/{revision}.json a copy of the latter, which stands for it where it is kept
    <results>/pretrained/{model}/step{N}/         the same, one folder per saved step
    <results>/pretrained/{model}.json             digests of them, which stand for them
STEPS: revisions are resolved, and the bad ones left out, while the run is planned; check_checkpoints once per
model, then fetch_checkpoint for each good revision; or pretrain_model once per model. judge_checkpoints, when
they have been measured.
"""


rule check_checkpoints:
    """Judge the revisions of a model, and make sure that the Hub still has them.

    It runs once. While a job runs again, Snakemake does not look for other reasons to run what comes after
    it, and fetches would either follow it all or be passed over; so the script is no input, and the curve
    is no parameter. `curve_of` keeps the table up to date.
    """
    output:
        report("<results>/checkpoints/{model}.csv", category="Checkpoints"),
    log:
        "<logs>/checkpoints/{model}.log",
    benchmark:
        "<benchmarks>/checkpoints/{model}.tsv"
    wildcard_constraints:
        model=any_of(MODELS_BY_SOURCE["hub"]),
    localrule: runs_beside_snakemake("check_checkpoints")
    conda:
        "../../envs/checkpoints.yaml"
    params:
        science=science("check_checkpoints"),
        lock=lock_file,
    message:
        "Checking the revisions of {wildcards.model}"
    shell:
        'python "$SCRIPTS/check_checkpoints.py" --model {wildcards.model} --lock {params.lock:q}'
        " --output {output:q} --log {log:q}"


rule fetch_checkpoint:
    """Download one revision at the commit that its lock pins."""
    input:
        # The revision's own commit is a parameter: news of another one does not fetch it again.
        verdicts=ancient("<results>/checkpoints/{model}.csv"),
    output:
        download(
            "<resources>/checkpoints/{model}/{revision}",
            receipt="<results>/checkpoints/{model}/{revision}.json",
        ),
    log:
        "<logs>/checkpoints/{model}/{revision}.log",
    benchmark:
        "<benchmarks>/checkpoints/{model}/{revision}.tsv"
    wildcard_constraints:
        model=any_of(MODELS_BY_SOURCE["hub"]),
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
        science=science("fetch_checkpoint"),
        arguments=hub_arguments,
        folder=downloaded_folder,
        receipt=receipt_option,
    message:
        "Fetching {wildcards.model} at {wildcards.revision}"
    shell:
        'python "$SCRIPTS/fetch_checkpoint.py" --model {wildcards.model} {params.arguments:q}'
        " --output {params.folder:q} {params.receipt:q} --log {log:q}"


rule pretrain_model:
    """Train a small model on the cleaned text and save it at log-spaced steps.

    Its threads are part of the recipe, since they decide how sums are rounded.
    """
    input:
        **CLEAN_CORPUS,
    output:
        steps=directory("<results>/pretrained/{model}"),
        receipt="<results>/pretrained/{model}.json",
    log:
        "<logs>/pretrained/{model}.log",
    benchmark:
        "<benchmarks>/pretrained/{model}.tsv"
    wildcard_constraints:
        model=any_of(MODELS_BY_SOURCE["pretraining"]),
    conda:
        "../../envs/models.yaml"
    threads: pretraining_threads
    resources:
        mem_mb=pretraining_memory,
        runtime=pretraining_minutes,
    params:
        science=science("pretrain_model"),
        recipe=pretraining_arguments,
        seed=CONFIGURATION.settings["seed"],
    message:
        "Pretraining {wildcards.model}"
    shell:
        'python "$SCRIPTS/pretrain_model.py" --text {input.text:q} --model {wildcards.model} {params.recipe:q}'
        " --seed {params.seed} --output {output.steps:q} --receipt {output.receipt:q} --log {log:q}"


rule judge_checkpoints:
    """Compare the loss of each checkpoint with its neighbours', beside what the gate says."""
    input:
        losses=checkpoint_losses,
    output:
        report("<results>/tables/verdicts/{model}.csv", category="Checkpoints"),
    log:
        "<logs>/tables/verdicts/{model}.log",
    benchmark:
        "<benchmarks>/tables/verdicts/{model}.tsv"
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        science=science("judge_checkpoints"),
        folder=losses_folder,
        checkpoints=judged_checkpoints,
        policy=CONFIGURATION.settings["bad_checkpoints"],
    message:
        "Judging the checkpoints of {wildcards.model}"
    shell:
        'python "$SCRIPTS/judge_checkpoints.py" --model {wildcards.model} --losses {params.folder:q} --checkpoints {params.checkpoints:q}'
        " --policy {params.policy} --output {output:q} --log {log:q}"
