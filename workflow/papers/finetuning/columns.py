"""The columns of the tables of a fine-tuning's checkpoints on the texts of its task."""

CHECKPOINT = ("model", "revision", "step", "sample")
# By the names of the tables.
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
