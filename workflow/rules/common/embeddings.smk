"""What the rules that run a checkpoint on sampled windows ask of it and of the configuration."""

from shape_of_learning.script_arguments.protocol import SamplingProtocol

# What a local checkpoint consists of; a change of any of these files is a change of the model.
CHECKPOINT_SUFFIXES = (".json", ".safetensors", ".bin", ".txt", ".model")


def checkpoint_inputs(wildcards):
    """The folder or files that a checkpoint's job waits for."""
    model = MODELS[wildcards.model]
    if model.source == "hub":
        path = f"{wildcards.model}/{wildcards.revision}"
        is_kept = CONFIGURATION.settings["keep_checkpoints"]
        return (
            f"<results>/checkpoints/{path}.json" if is_kept else f"<resources>/checkpoints/{path}"
        )
    if model.source == "pretraining":
        folder = f"<results>/pretrained/{wildcards.model}"
        return [f"{folder}.json", ancient(folder)]
    files = (file for file in Path(model.path).iterdir() if file.is_file())
    return files_of_the_user(file for file in files if file.suffix in CHECKPOINT_SUFFIXES)


def checkpoint_folder(wildcards):
    """The checkpoint's folder itself."""
    model = MODELS[wildcards.model]
    if model.source == "path":
        return model.path
    if model.source == "pretraining":
        return own_path(f"<results>/pretrained/{wildcards.model}/{wildcards.revision}")
    return downloaded_folder(wildcards)


def sampling_protocol(wildcards):
    """How the windows are drawn and run through the model."""
    return SamplingProtocol(
        **CONFIGURATION.settings["sampling"],
        seed=CONFIGURATION.settings["seed"],
        precision=MODELS[wildcards.model].precision or setting("forward", "precision"),
        last_layer=setting("forward", "last_layer"),
    ).to_json()


def measurement_at_once(wildcards):
    """What measure_checkpoint.py measures of the hidden states, as JSON."""
    chosen = [measure.without_words().to_json() for measure in CONFIGURATION.measures.values()]
    neighbours = setting("measurement", "neighbours")
    return json.dumps({"measures": chosen, "neighbours": neighbours, **MEASUREMENT})


def unless_kept(path):
    """Mark an output as temporary unless the configuration keeps embeddings."""
    return path if setting("embeddings", "keep") else temp(path)


# Of both rules that run it: the one that dumps hidden states and the one that measures them at once.
SAMPLE_PARAMETERS = {
    "checkpoint": checkpoint_folder,
    "protocol": sampling_protocol,
    "shape": model_shape,
}
