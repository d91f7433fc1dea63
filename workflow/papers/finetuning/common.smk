"""What the rules of this paper ask of the configuration."""

from shape_of_learning.tasks.task_tables import TABLES as TABLES_ON_TASKS


def task_measured_on(wildcards):
    """The task that a model is fine-tuned on: its table, and what describes that."""
    source = MODELS[wildcards.model].source
    if source.kind != "finetuning":
        fail(
            f"model `{wildcards.model}` has no `finetuning` in its entry, so there is no task to measure it on; "
            "name other models in the keys `figures.finetuning_...`"
        )
    return [f"<results>/tasks/{source.recipe['task']}.{suffix}" for suffix in ("csv", "json")]


def fine_tuned_inputs(wildcards):
    """All that the checkpoints of a model wait for."""
    source = MODELS[wildcards.model].source
    return source.inputs(checkpoints(wildcards.model)[-1].name, PLACES)


def fine_tuned_checkpoints(wildcards):
    """Name, step and receipt of each measured checkpoint."""
    source = MODELS[wildcards.model].source
    return [(c.name, c.step, source.receipt(c.name, PLACES)) for c in checkpoints(wildcards.model)]


def fine_tuned_folders(wildcards):
    """The folders of these, one a line."""
    source = MODELS[wildcards.model].source
    return "\n".join(source.folder(c.name, PLACES) for c in checkpoints(wildcards.model))


def protocol_of_texts(wildcards):
    """How texts are run through the model; windows are none."""
    last_layer = setting("forward", "last_layer").replace("both", "after_final_norm")
    none = {"windows": 0, "window_characters": 0}
    return {**sampling(wildcards), **none, "last_layer": last_layer}


def task_memory(wildcards, threads, attempt):
    work, examples = work_of(wildcards.model), task_examples(wildcards)
    return needs.asked_mb(task_needs.task_memory_mb(work, examples, threads), attempt)


def task_minutes(wildcards, threads, attempt):
    """Minutes of all checkpoints of a model, one after another."""
    work, examples = work_of(wildcards.model), task_examples(wildcards)
    on_gpu = is_on_gpu("measure_on_task")
    minutes = task_needs.task_minutes(work, examples, threads=threads, on_gpu=on_gpu)
    return needs.asked_minutes(len(checkpoints(wildcards.model)) * minutes, attempt)
