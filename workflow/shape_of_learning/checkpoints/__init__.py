"""Weights from the Hub: which files, which commit, and whether they are what the model list says."""
