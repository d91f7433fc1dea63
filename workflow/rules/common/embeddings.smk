"""What the rules that run a checkpoint on sampled windows ask of it and of the configuration."""

from shape_of_learning.checkpoints.checkpoint_files import checkpoint_files
from shape_of_learning.checkpoints.checkpoint_record import RECORD
from shape_of_learning.storage.fingerprints import fingerprint
from shape_of_learning.script_arguments.protocol import SamplingProtocol
from shape_of_learning.script_arguments.settings import LOCAL


def checkpoint_inputs(wildcards):
    """What a checkpoint's job waits for; a local folder is there."""
    model = MODELS[wildcards.model]
    if model.source == "hub":
        path = f"{wildcards.model}/{wildcards.revision}"
        is_kept = CONFIGURATION.settings["keep_checkpoints"]
        return f"<results>/checkpoints/{path}.json" if is_kept else f"{downloads()}/{path}"
    if model.source == "pretraining":
        return [*weight_receipts(wildcards), ancient(f"<results>/pretrained/{wildcards.model}")]
    return []


def weight_receipts(wildcards):
    """Small files that say what weights are, where no parameter does."""
    is_pretrained = MODELS[wildcards.model].source == "pretraining"
    return [f"<results>/pretrained/{wildcards.model}.json"] if is_pretrained else []


@cache
def local_weights(name, revision):
    """Names and fingerprints of the files of a local checkpoint."""
    folder = next(each.path for each in MODELS[name].checkpoints if each.name == revision)
    try:
        files = checkpoint_files(Path(folder))
        return " ".join(f"{file.name} {fingerprint(file)}" for file in files)
    except OSError as error:
        fail(f"model `{name}`: {error}; correct `path` in its entry")


def weights(wildcards):
    """What decides a checkpoint's weights, wherever they lie."""
    source = MODELS[wildcards.model].source
    if source == "hub":
        return pinned_bytes(wildcards)
    return local_weights(wildcards.model, wildcards.revision) if source == "path" else ""


def checkpoint_folder(wildcards):
    """The checkpoint's folder itself; that of a local one is no part of what is computed from it."""
    model = MODELS[wildcards.model]
    if model.source == "path":
        return f"{LOCAL}{wildcards.model}/{wildcards.revision}"
    if model.source == "pretraining":
        return own_path(f"<results>/pretrained/{wildcards.model}/{wildcards.revision}")
    return downloaded_folder(wildcards)


def receipt_options(wildcards):
    """The option that says what the files of a checkpoint were as they came; none for a folder of the user's."""
    source, name = MODELS[wildcards.model].source, wildcards.model
    if source == "path":
        return []
    if source == "pretraining":
        return ["--receipt", own_path(f"<results>/pretrained/{name}.json")]
    if CONFIGURATION.settings["keep_checkpoints"]:
        return ["--receipt", own_path(f"<results>/checkpoints/{name}/{wildcards.revision}.json")]
    return ["--receipt", f"{downloaded_folder(wildcards)}/{RECORD}"]


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
