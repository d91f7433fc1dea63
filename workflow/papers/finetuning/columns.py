"""The columns of the tables that describe the checkpoints of a fine-tuning on the texts of its task."""

ELONGATED = 10  # an elongated direction has more than this many times the layer's median eigenvalue at the first step
CHECKPOINT = ("model", "revision", "step", "sample")
# Name of a table -> its columns.
TASK_COLUMNS = {
    "finetuning_layers": (*CHECKPOINT, "layer", "estimator", "n", "value"),
    "finetuning_spectra": (*CHECKPOINT, "layer", "n", "median", "trace", "place", "eigenvalue"),
    "finetuning_structure": (*CHECKPOINT, "layer", "quantity", "clusters", "n", "value"),
    "finetuning_probes": (
        *CHECKPOINT,
        "layer",
        "adjustment",
        "clusters",
        "directions",
        "fitted_on",
        "n",
        "zero_vectors",
        "log_partition_isotropy",
        "average_cosine",
        "metric",
        "examples",
        "score",
        "chance",
    ),
}
