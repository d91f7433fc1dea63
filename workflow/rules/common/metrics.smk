"""What the rules that measure ask of the configuration."""

from shape_of_learning.metrics.measure_entry import by_rows
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.plan.measures import science_of_measure

# Folders and large files count as ever old, since a copy of the checkout may set their times anew. What a dump was
# computed from says whether it is another, and so do digests beside distances and spectra.
DUMP = {
    "embeddings": ancient("<results>/embeddings/{model}/{revision}"),
    "alphabet": CLEAN_CORPUS["alphabet"],
    "weights": trained_weights,
}
# Where what an estimator is taken of lies, by its kind: one file per layer, but for hidden states.
MEASURED_FOLDERS = {
    "neighbours": "<results>/neighbours/{model}/{revision}",
    "spectrum": "<results>/spectra/{model}/{revision}",
}
# What is written of each model, not of each layer, is in no table of estimates.
MEASURES = {name: each for name, each in CONFIGURATION.measures.items() if each.of != "weights"}
# In an order that is not that of the configuration, where another one is no other measurement.
CHOSEN_MEASURES = sorted(MEASURES)
PAIRS = [name for name in CHOSEN_MEASURES if MEASURES[name].of == "pair"]
PAIR_SELECTIONS = len(by_rows(MEASURES[name] for name in PAIRS))
TOKEN_SWITCHES = ("special_tokens", "first_token", "token_types")
ROWS = {
    "selection": Selection(
        **{key: setting("measurement", key) for key in TOKEN_SWITCHES},
        seed=CONFIGURATION.settings["seed"],
    ).to_json(),
    "batch_vectors": setting("measurement", "batch_vectors"),
}
# Of all jobs that read a dump, and of those that read what these have kept.
MEASUREMENT = {
    "weights": weights,
    "sample": sampling_protocol,
    "forward": science("dump_embeddings"),
    **ROWS,
}


def what_is_measured(wildcards):
    """The folder or the files that an estimator reads."""
    kind = MEASURES[wildcards.estimator].of
    if kind not in MEASURED_FOLDERS:
        return DUMP["embeddings"]
    folder = MEASURED_FOLDERS[kind].format(model=wildcards.model, revision=wildcards.revision)
    layers = range(MODELS[wildcards.model].shape.layers + 1)
    return [ancient(f"{folder}/layer_{layer}.h5") for layer in layers]


def receipts_of_what_is_measured(wildcards):
    """Small files that say whether those are others which an estimator reads."""
    files = what_is_measured(wildcards)
    if isinstance(files, list):
        return [f"{file}.sha256" for file in files]
    return [DUMP["alphabet"], *trained_weights(wildcards)]


def measured_folder(wildcards, input):
    """The folder of what an estimator reads."""
    is_dump = MEASURES[wildcards.estimator].of not in MEASURED_FOLDERS
    return input.measured if is_dump else str(Path(input.measured[0]).parent)


def measure_settings(wildcards):
    """All that an estimator's values depend on, as JSON; what figures call it is no reason to measure again."""
    return MEASURES[wildcards.estimator].without_words().to_json()


def pair_settings(wildcards):
    """The same of all measures of pairs, which one job takes."""
    return json.dumps([MEASURES[name].without_words().to_json() for name in PAIRS])


@cache
def science_of(estimator):
    return science_of_measure(MEASURES[estimator])


def science_of_estimator(wildcards):
    """Digest of what the estimator that the wildcard names is computed by."""
    return science_of(wildcards.estimator)


def model_layers(wildcards):
    return MODELS[wildcards.model].shape.layers
