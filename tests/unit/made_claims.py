"""A claim that tests change."""

CLAIM = {
    "sentence": "Blocks are linear.",
    "where": "abstract",
    "statistic": "mean_over_layers",
    "estimators": ["linearity"],
    "models": "decoders",
    "rule": {"supported": {"in": "all", "holds": {"at_least": 0.95}},
             "contradicted": {"in": "any", "holds": {"below": 0.9}}},
}  # fmt: skip
