"""Measures of the checkpoints of a fine-tuning on the texts of its task.

REQUIRED INPUTS: a task of rules/tasks.smk and the checkpoints of a fine-tuning.
OUTPUTS:
    <results>/tables/finetuning_layers/{model}.csv      isotropy of each layer, of the tokens of the held-out texts
    <results>/tables/finetuning_spectra/{model}.csv     the largest eigenvalues of each layer, the median and sum of all
    <results>/tables/finetuning_structure/{model}.csv   clusters, token types and frequency bands
    <results>/tables/finetuning_probes/{model}.csv      scores of linear probes after each adjustment of the space
STEPS: measure_on_task, one job per model.
"""

from dataclasses import replace

from papers.finetuning.columns import TASK_COLUMNS
from papers.finetuning.job import TaskJob
from papers.finetuning.resources import estimate_task


def list_task_files(model):
    """List the files of the task that a model is fine-tuned on: the table and its description."""
    if MODELS[model].origin is None:
        raise InputError(
            f"the entry of model `{model}` has no `finetuning`, so there is no task to measure it on; name other "
            "models in the keys `figures.finetuning_...`"
        )
    return expand(
        "<results>/tasks/{task}.{suffix}", suffix=("csv", "json"), task=MODELS[model].recipe["task"]
    )


def make_task_job(model):
    """Make the job of a fine-tuned model, whose sampling has no windows."""
    sampling = make_sampling_protocol(model)
    return TaskJob(
        model,
        tuple((checkpoint.name, checkpoint.step) for checkpoint in RUN.list_checkpoints(model)),
        MODELS[model].shape,
        replace(
            sampling,
            windows=0,
            window_characters=0,
            last_layer=sampling.last_layer.replace("both", "after_final_norm"),
        ),
    )


rule measure_on_task:
    """Load each checkpoint of a fine-tuning once, and measure it on the texts of its task."""
    input:
        task=ask_plan(list_task_files, "model"),
        checkpoints="<results>/finetuned/{model}",
    output:
        expand("<results>/tables/{table}/{{model}}.csv", table=TASK_COLUMNS),
    log:
        "<logs>/tables/finetuning/{model}.log",
    benchmark:
        "<benchmarks>/tables/finetuning/{model}.tsv"
    priority: 1  # like other jobs with a forward pass
    conda:
        "../../../envs/models.yaml"
    threads: count_forward_threads
    resources:
        **request_resources(estimate_task),
        gpu=1,
    params:
        code=lambda wildcards: digest_code("papers.finetuning.measure_on_task"),
        job=ask_job(make_task_job, "model"),
    script:
        "measure_on_task.py"
