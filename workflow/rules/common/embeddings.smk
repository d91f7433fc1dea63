"""What the rules that run a checkpoint on sampled windows ask of it and of the configuration."""

from functools import partial


def checkpoint_inputs(wildcards):
    """What a checkpoint's job waits for; a local folder is there."""
    source = MODELS[wildcards.model].source
    return source.inputs(wildcards.revision, PLACES)


def weights(wildcards):
    """What decides a checkpoint's weights, wherever they lie."""
    source = MODELS[wildcards.model].source
    return at_the_door(source.weights, wildcards.revision, partial(pinned_bytes, wildcards))


def receipt_options(wildcards):
    """The option that says what the files of a checkpoint were as they came; none for a folder of the user's."""
    receipt = MODELS[wildcards.model].source.receipt(wildcards.revision, PLACES)
    return [] if receipt is None else ["--receipt", receipt]


def forward_precision(wildcards):
    return MODELS[wildcards.model].precision or setting("forward", "precision")


def sampling_protocol(wildcards):
    """How the windows are drawn and run through the model."""
    return json.dumps(sampling(wildcards))


def sampling(wildcards):
    """The same, as plain values."""
    return {
        **CONFIGURATION.settings["sampling"],
        "seed": CONFIGURATION.settings["seed"],
        "precision": forward_precision(wildcards),
        "last_layer": setting("forward", "last_layer"),
    }


def sample_of_checkpoint(wildcards):
    """What both rules that run a checkpoint tell their scripts of it."""
    model = MODELS[wildcards.model]
    return {
        "receipt": model.source.receipt(wildcards.revision, PLACES),
        "protocol": sampling(wildcards),
        "shape": dict(vars(model.shape)),
    }


def windows_at_once(wildcards):
    """Windows that go through the model together; 0 to choose by free memory."""
    size = setting("forward", "batch_size")
    return 0 if size == "auto" else size


def unless_kept(path):
    """Mark an output as temporary unless the configuration keeps embeddings."""
    return path if setting("embeddings", "keep") else temp(path)


# What no number depends on, so that to change it makes nothing anew.
SAMPLE_RESOURCES = {
    "checkpoint": folder_on_this_machine,
    "windows_at_once": windows_at_once,
    "gpu": forward_gpus,
    "nodes": 1,  # all of its GPUs on one
}
# Of rules that are told of it on a command line.
SAMPLE_PARAMETERS = {
    "checkpoint": checkpoint_folder,
    "receipt": receipt_options,
    "weights": weights,
    "protocol": sampling_protocol,
    "shape": model_shape,
}
