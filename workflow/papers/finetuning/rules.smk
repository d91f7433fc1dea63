"""Checkpoints of a fine-tuning on the texts of its task.

REQUIRED INPUTS: a task of rules/tasks.smk and the checkpoints of a fine-tuning.
OUTPUTS:
    <results>/tables/finetuning_layers/{model}.csv      isotropy of each layer, with the tokens of the held-out texts
    <results>/tables/finetuning_spectra/{model}.csv     the largest eigenvalues of each layer, their median and sum
    <results>/tables/finetuning_structure/{model}.csv   clusters, token types and frequency bands
    <results>/tables/finetuning_probes/{model}.csv      what linear probes read after each adjustment of the space
STEPS: measure_on_task, one job per model.
"""


include: "common.smk"


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
        mem_mb=task_memory,
        runtime=task_minutes,
        gpu=forward_gpus,
        nodes=1,
        windows_at_once=windows_at_once,
        folders=fine_tuned_folders,
    params:
        code=science("measure_on_task"),
        checkpoints=fine_tuned_checkpoints,
        protocol=protocol_of_texts,
        shape=model_shape_fields,
    message:
        "Measuring {wildcards.model} on the texts of its task"
    script:
        "../../scripts/measure_on_task.py"
