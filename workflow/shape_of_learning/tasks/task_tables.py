"""The tables on the texts of a task: their names and columns."""

CHECKPOINT = ("model", "revision", "step", "sample")
# The columns of each after those of the checkpoint.
TABLES = {
    "finetuning_layers": ("layer", "estimator", "n", "value"),
    "finetuning_spectra": ("layer", "n", "median", "trace", "place", "eigenvalue"),
    "finetuning_structure": ("layer", "quantity", "clusters", "n", "value"),
    "finetuning_probes": (
        *("layer", "adjustment", "clusters", "directions", "fitted_on", "n", "zero_vectors"),
        *("log_partition_isotropy", "average_cosine", "metric", "score"),
    ),
}
