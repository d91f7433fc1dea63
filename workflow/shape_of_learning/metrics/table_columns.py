"""What the tables of estimates and changes hold, for those who read them; imports nothing."""

GROUPS = 16  # of windows, each of which is left out in turn
ESTIMATE_COLUMNS = (
    *("model", "role", "revision", "step", "tokens", "layer", "depth", "estimator", "selection"),
    *("value", "standard_error", "low", "high"),
    *("batch_sd", "n", "n_unique", "near_duplicates", "windows"),
)
# Of one model and estimator: what intervals of whatever is made of its values come from.
WITHOUT_COLUMNS = tuple(f"without_{group}" for group in range(GROUPS))
LEFT_OUT_TABLE_COLUMNS = (
    *("model", "revision", "step", "tokens", "layer", "estimator", "selection"),
    *("value", "n", "near_duplicates", *WITHOUT_COLUMNS),
)
CHANGE_COLUMNS = (
    *("model", "estimator", "selection", "layer", "from_revision", "to_revision"),
    *("difference", "standard_error", "low", "high", "smallest_visible"),
)
CLAIM_COLUMNS = (
    *("claim", "sentence", "where", "statistic", "estimate", "low", "high", "smallest_visible"),
    *("verdict", "because", "models", "revisions", "n", "selections", "hashes"),
)
AVERAGED_LAYERS = {"block_outputs": 1, "all_layers": 0}  # the first layer that counts
# What is measured of a model itself; what the last of them holds is no embedding.
FINAL_NORM = "final_norm"
MATRICES = ("input", "output", "tied", FINAL_NORM)
