"""What the rules of this paper ask of the configuration."""

from types import SimpleNamespace

from shape_of_learning.blocks.editing import check_blocks
from shape_of_learning.plan.editing_resources import editing_memory_mb, editing_minutes


def edited(function):
    """What a function says of the checkpoint that is edited: a model's last one that is what it should be."""

    def of_the_last(wildcards):
        name = wildcards.model
        return function(SimpleNamespace(model=name, revision=last_checkpoint(name).name))

    return of_the_last


def block_editing(wildcards):
    """Section `block_editing`, if the model has so many blocks."""
    editing, shape = CONFIGURATION.settings["block_editing"], MODELS[wildcards.model].shape
    at_the_door(check_blocks, editing["most_blocks"], shape, wildcards.model)
    return editing


def editing_sampling(wildcards):
    """Length and seed of the windows that blocks are changed on, and the precision of the model."""
    return {
        "window_characters": setting("sampling", "window_characters"),
        "seed": CONFIGURATION.settings["seed"],
        "precision": forward_precision(wildcards),
    }


def editing_batch_size(wildcards):
    """Windows that go through the model together; 0 for as many as memory allows."""
    size = setting("forward", "batch_size")
    return 0 if size == "auto" else size


def memory_of_editing(wildcards, attempt):
    editing, work = CONFIGURATION.settings["block_editing"], work_of(wildcards.model)
    return needs.asked_mb(editing_memory_mb(work, editing), attempt)


def minutes_of_editing(wildcards, attempt):
    editing, work = CONFIGURATION.settings["block_editing"], work_of(wildcards.model)
    minutes = editing_minutes(work, editing, on_gpu=is_on_gpu("edit_blocks"))
    return needs.asked_minutes(minutes, attempt)
