"""Which measurements belong to a table."""


def selected_checkpoints(wildcards):
    """All checkpoints of a model, or just its last good one."""
    if wildcards.selection == "last_checkpoint":
        return [last_checkpoint(wildcards.model)]
    return checkpoints(wildcards.model)


def layer_measurements(wildcards):
    """The tables of all layers, or the folders that hold them where one job makes all."""
    model, name = wildcards.model, wildcards.estimator
    folders = [f"{MEASURED}/measurements/{model}/{c.name}" for c in selected_checkpoints(wildcards)]
    if not setting("embeddings", "dump"):
        return folders
    layers = range(MODELS[model].layers + 1)
    return [f"{folder}/layer_{layer}/{name}.csv" for folder in folders for layer in layers]


def checkpoint_arguments(wildcards):
    """What gather_layers.py is told of each checkpoint: revision, step, tokens."""

    def text(number):
        return "''" if number is None else str(number)

    return [
        f"--checkpoint {checkpoint.name} {text(checkpoint.step)} {text(checkpoint.tokens)}"
        for checkpoint in selected_checkpoints(wildcards)
    ]


def model_layers(wildcards):
    return MODELS[wildcards.model].layers
