"""What the rules that run a checkpoint on sampled windows ask of it and of the configuration."""

from functools import partial

from shape_of_learning.script_arguments.protocol import SamplingProtocol


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
    return SamplingProtocol(
        **CONFIGURATION.settings["sampling"],
        seed=CONFIGURATION.settings["seed"],
        precision=forward_precision(wildcards),
        last_layer=setting("forward", "last_layer"),
    ).to_json()


def measurement_at_once(wildcards):
    """What measure_checkpoint.py measures of the hidden states, as JSON."""
    chosen = [MEASURES[n].without_words().to_json() for n in CHOSEN_MEASURES]
    neighbours = setting("measurement", "neighbours")
    return json.dumps({"measures": chosen, "neighbours": neighbours, **ROWS})


def unless_kept(path):
    """Mark an output as temporary unless the configuration keeps embeddings."""
    return path if setting("embeddings", "keep") else temp(path)


# Of both rules that run it: the one that dumps hidden states and the one that measures them at once.
SAMPLE_PARAMETERS = {
    "checkpoint": checkpoint_folder,
    "receipt": receipt_options,
    "weights": weights,
    "protocol": sampling_protocol,
    "shape": model_shape,
}
