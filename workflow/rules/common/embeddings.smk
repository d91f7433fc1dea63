"""What the rules that run a checkpoint on sampled windows ask of it and of the configuration."""

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


def hidden_state_widths(wildcards):
    model = MODELS[wildcards.model]
    return [model.hidden_size] * model.layers + [model.last_hidden_size]


def model_role(wildcards):
    return MODELS[wildcards.model].role


def forward_precision(wildcards):
    return MODELS[wildcards.model].precision or setting("forward", "precision")


def unless_kept(path):
    """Mark an output as temporary unless the configuration keeps embeddings."""
    return path if setting("embeddings", "keep") else temp(path)


# Of both rules that run it: the one that dumps hidden states and the one that measures them at once.
SAMPLE_PARAMETERS = {
    "checkpoint": checkpoint_folder,
    "role": model_role,
    "widths": hidden_state_widths,
    "precision": forward_precision,
    "last_layer": setting("forward", "last_layer"),
    "batch_size": setting("forward", "batch_size"),
    "dtype": setting("embeddings", "dtype"),
    "windows": setting("sampling", "windows"),
    "window_characters": setting("sampling", "window_characters"),
    "special_tokens": setting("sampling", "special_tokens"),
    "first_token": setting("sampling", "first_token"),
    "seed": CONFIGURATION.settings["seed"],
}
SAMPLE_COMMAND = (
    'python "$SCRIPTS/{rule}.py" --checkpoint {params.checkpoint:q} --text {input.text:q}'
    " --model {wildcards.model} --revision {wildcards.revision} --role {params.role} --widths {params.widths}"
    " --windows {params.windows} --window-characters {params.window_characters}"
    " --special-tokens {params.special_tokens} --first-token {params.first_token}"
    " --precision {params.precision} --last-layer {params.last_layer}"
    " --batch-size {params.batch_size} --dtype {params.dtype} --seed {params.seed} --threads {threads}"
)
