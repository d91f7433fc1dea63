"""Checkpoints of a fine-tuning on the texts of its task.

REQUIRED INPUTS: a task of rules/tasks.smk and the checkpoints of a fine-tuning.
OUTPUTS:
    <results>/tables/finetuning_layers/{model}.csv      isotropy of each layer, with the tokens of the held-out texts
    <results>/tables/finetuning_spectra/{model}.csv     the largest eigenvalues of each layer, their median and sum
    <results>/tables/finetuning_structure/{model}.csv   clusters, token types and frequency bands
    <results>/tables/finetuning_probes/{model}.csv      what linear probes read after each adjustment of the space
STEPS: measure_on_task, one job per model.
"""

from shape_of_learning.tasks.task_tables import TABLES as TABLES_ON_TASKS


def task_measured_on(wildcards):
    """The task that a model is fine-tuned on: its table, and what describes that."""
    source = MODELS[wildcards.model].source
    if not isinstance(source, FinetuningSource):
        fail(
            f"model `{wildcards.model}` has no `finetuning` in its entry, so there is no task to measure it on; "
            "name other models in the keys `figures.finetuning_...`"
        )
    return [f"<results>/tasks/{source.recipe['task']}.{suffix}" for suffix in ("csv", "json")]


def fine_tuned_inputs(wildcards):
    """All that the checkpoints of a model wait for."""
    source = MODELS[wildcards.model].source
    return [*source.receipts, *map(ancient, source.ever_old)]


def fine_tuned_checkpoints(wildcards):
    """Name, step, folder and receipt of each measured checkpoint, as JSON."""
    source = MODELS[wildcards.model].source
    return json.dumps(
        [
            (c.name, c.step, source.folder(c.name, PLACES), source.receipt(c.name, PLACES))
            for c in checkpoints(wildcards.model)
        ]
    )


def protocol_of_texts(wildcards):
    """How texts are run through the model; windows are none."""
    return SamplingProtocol(
        windows=0,
        window_characters=0,
        seed=CONFIGURATION.settings["seed"],
        precision=forward_precision(wildcards),
        last_layer=setting("forward", "last_layer").replace("both", "after_final_norm"),
    ).to_json()


rule measure_on_task:
    """Measure all checkpoints of a fine-tuning on the texts of its task, each loaded once."""
    input:
        task=task_measured_on,
        checkpoints=fine_tuned_inputs,
    output:
        expand("<results>/tables/{table}/{{model}}.csv", table=TABLES_ON_TASKS),
    log:
        "<logs>/tables/finetuning/{model}.log",
    benchmark:
        "<benchmarks>/tables/finetuning/{model}.tsv"
    wildcard_constraints:
        model=any_of(MODELS),
    conda:
        "../../../envs/models.yaml"
    threads: forward_threads
    resources:
        mem_mb=checkpoint_memory,
        runtime=checkpoint_minutes,
        gpu=forward_gpus,
        nodes=1,
    params:
        science=science("measure_on_task"),
        checkpoints=fine_tuned_checkpoints,
        protocol=protocol_of_texts,
        shape=model_shape,
    message:
        "Measuring {wildcards.model} on the texts of its task"
    shell:
        "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1; "
        'python "$SCRIPTS/measure_on_task.py" --model {wildcards.model:q} --checkpoints {params.checkpoints:q}'
        " --task {input.task[0]:q} --protocol {params.protocol:q} --shape {params.shape:q} --threads {threads:q}"
        " --output {output:q} --log {log:q}"
