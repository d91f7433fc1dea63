"""What the rules of this paper ask of the configuration."""

from shape_of_learning.tasks.task_tables import TABLES as TABLES_ON_TASKS


def task_measured_on(wildcards):
    """The task that a model is fine-tuned on: its table, and what describes that."""
    source = MODELS[wildcards.model]
    if source.kind != "finetuning":
        fail(
            f"model `{wildcards.model}` has no `finetuning` in its entry, so there is no task to measure it on; "
            "name other models in the keys `figures.finetuning_...`"
        )
    return [f"<results>/tasks/{source.recipe['task']}.{suffix}" for suffix in ("csv", "json")]


def fine_tuned_inputs(wildcards):
    """All that the checkpoints of a model wait for."""
    return weights_input(wildcards.model, "")


def fine_tuned_checkpoints(wildcards):
    """Name, step, folder and receipt of each measured checkpoint, as JSON."""
    folder = own_path(f"<results>/finetuned/{wildcards.model}")
    return json.dumps(
        [(c.name, c.step, f"{folder}/{c.name}", None) for c in checkpoints(wildcards.model)]
    )


def protocol_of_texts(wildcards):
    """How texts are run through the model; windows are none."""
    protocol = {
        "windows": 0,
        "window_characters": 0,
        "seed": CONFIGURATION.settings["seed"],
        "precision": sampling(wildcards.model)["precision"],
        "last_layer": setting("forward", "last_layer").replace("both", "after_final_norm"),
    }
    return json.dumps(protocol)


def memory_on_task(work, threads):
    return needs.checkpoint_memory(work.on_task(), threads)


def minutes_on_task(work, threads):
    return needs.checkpoint_minutes(work.on_task(), threads)
