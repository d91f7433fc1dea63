"""What the rules of the checkpoints ask of a model."""

CLEAN_TEXT = f"<results>/corpus/{setting('corpus', 'source')}/text.txt"
MODELS_BY_SOURCE = {
    source: [name for name, model in MODELS.items() if model.source == source]
    for source in ("hub", "path", "pretraining")
}


def hub_arguments(wildcards):
    """What fetch_checkpoint.py is told of a checkpoint."""
    model = MODELS[wildcards.model]
    entry = model.checkpoint(wildcards.revision)
    arguments = {
        "repository": entry.repository,
        "revision": entry.revision,
        "subfolder": entry.subfolder,
        "tokenizer-repository": model.tokenizer,
        "layers": model.layers,
        "hidden-size": model.hidden_size,
        "last-hidden-size": model.last_hidden_size,
        "role": model.role,
    }
    return [f"--{name}={value}" for name, value in arguments.items() if value != ""]


def pretraining_arguments(wildcards):
    """The recipe that pretrain_model.py follows."""
    model = MODELS[wildcards.model]
    recipe = {"layers": model.layers, "hidden_size": model.hidden_size, **model.pretraining}
    return [f"--{name.replace('_', '-')}={value}" for name, value in recipe.items()]


def pretraining_threads(wildcards):
    return MODELS[wildcards.model].pretraining["threads"]
