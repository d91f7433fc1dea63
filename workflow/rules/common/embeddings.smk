"""What the rule of the embeddings asks of a model."""

# What a local checkpoint consists of; a change of any of these files is a change of the model.
CHECKPOINT_SUFFIXES = (".json", ".safetensors", ".bin", ".txt", ".model")


def checkpoint_inputs(wildcards):
    """The folder or files that a checkpoint's job waits for."""
    model = MODELS[wildcards.model]
    if model.source == "hub":
        return fetched(f"<resources>/checkpoints/{wildcards.model}/{wildcards.revision}")
    if model.source == "pretraining":
        return f"<results>/pretrained/{wildcards.model}"
    files = (file for file in Path(model.path).iterdir() if file.is_file())
    return sorted(str(file) for file in files if file.suffix in CHECKPOINT_SUFFIXES)


def checkpoint_folder(wildcards, input):
    """The checkpoint's folder itself."""
    model = MODELS[wildcards.model]
    if model.source == "path":
        return model.path
    if model.source == "pretraining":
        return f"{input.checkpoint}/{wildcards.revision}"
    return fetched_folder(input.checkpoint)


def dump_library():
    """Library modules of the dump: in 16 bits also those that check it, lest their edits rerun all dumps."""
    checks = {"float32": (), "float16": ("neighbours", "intrinsic_dimension")}
    return modules_used(SCRIPTS / "dump_embeddings.py", *checks[setting("embeddings", "dtype")])


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
