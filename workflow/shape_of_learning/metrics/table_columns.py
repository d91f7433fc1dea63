"""What the tables hold, for those who write and read them; imports nothing."""

GROUPS = 16  # of windows, each of which is left out in turn
_CHECKPOINT = ("model", "role", "revision", "step", "tokens")
# Of one layer and family of measures: a row per batch, and one of the layer, whose `batch` is empty.
TIDY_COLUMNS = (
    *("estimator", "selection", "layer", "batch", "n", "n_unique", "near_duplicates"),
    *("windows", "value", *(f"without_{group}" for group in range(GROUPS))),
)
# Of a model, and of all.
MEASUREMENT_COLUMNS = (
    *_CHECKPOINT,
    *("layer", "depth", "estimator", "batch", "n", "n_unique", "value"),
)
ESTIMATE_COLUMNS = (
    *(*_CHECKPOINT, "layer", "depth", "estimator", "selection", "value", "standard_error"),
    *("low", "high", "batch_sd", "n", "n_unique", "near_duplicates", "windows", "layers"),
)
CHANGE_COLUMNS = (
    *("model", "estimator", "selection", "layer", "from_revision", "to_revision"),
    *("difference", "standard_error", "low", "high", "smallest_visible"),
)
# Of a model: what intervals of whatever is made of its values come from.
LEFT_OUT_COLUMNS = (*_CHECKPOINT, *TIDY_COLUMNS)
# Of the matrices of a model itself: of one checkpoint, and of a model or all.
MATRIX_COLUMNS = ("matrix", "estimator", "n", "d", "value")
POINT_COLUMNS = ("matrix", "centered", "entry", "x", "y")
WEIGHT_COLUMNS = (*_CHECKPOINT, *MATRIX_COLUMNS)
WEIGHT_POINT_COLUMNS = (*_CHECKPOINT, *POINT_COLUMNS)
CLAIM_COLUMNS = (
    *("claim", "sentence", "where", "statistic", "estimate", "low", "high", "smallest_visible"),
    *("verdict", "because", "models", "revisions", "n", "selections", "hashes"),
)
_TASK = ("model", "revision", "step", "sample")
# On the texts of a task, by the names of the tables.
TASK_COLUMNS = {
    "finetuning_layers": (*_TASK, "layer", "estimator", "n", "value"),
    "finetuning_spectra": (*_TASK, "layer", "n", "median", "trace", "place", "eigenvalue"),
    "finetuning_structure": (*_TASK, "layer", "quantity", "clusters", "n", "value"),
    "finetuning_probes": (
        *(*_TASK, "layer", "adjustment", "clusters", "directions", "fitted_on", "n"),
        *("zero_vectors", "log_partition_isotropy", "average_cosine", "metric", "score"),
    ),
}
AVERAGED_LAYERS = {"block_outputs": 1, "all_layers": 0}  # the first layer that counts
# What is measured of a model itself; what the last of them holds is no embedding.
FINAL_NORM = "final_norm"
MATRICES = ("input", "output", "tied", FINAL_NORM)
