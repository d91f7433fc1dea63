"""What the rules of this paper ask of the configuration."""

from types import SimpleNamespace

from shape_of_learning.block_editing.editing_settings import check_blocks
from shape_of_learning.plan import editing_resources


def edited(function):
    """What a function says of the checkpoint that is edited: a model's last one that is what it should be."""

    def of_the_last(wildcards):
        name = wildcards.model
        return function(SimpleNamespace(model=name, revision=last_checkpoint(name).name))

    return of_the_last


def block_editing(wildcards):
    """Section `block_editing` as JSON, if the model has so many blocks."""
    editing, shape = CONFIGURATION.settings["block_editing"], MODELS[wildcards.model].shape
    model = f"model `{wildcards.model}`"
    at_the_door(check_blocks, editing["most_blocks"], shape.role, shape.layers, model)
    return json.dumps(editing)


def editing_memory(wildcards, attempt):
    editing, work = CONFIGURATION.settings["block_editing"], work_of(wildcards.model)
    return needs.asked_mb(editing_resources.editing_memory_mb(work, editing), attempt)


def editing_minutes(wildcards, attempt):
    editing, work = CONFIGURATION.settings["block_editing"], work_of(wildcards.model)
    minutes = editing_resources.editing_minutes(work, editing, on_gpu=is_on_gpu("edit_blocks"))
    return needs.asked_minutes(minutes, attempt)
