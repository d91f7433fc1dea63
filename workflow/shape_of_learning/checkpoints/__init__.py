"""Checkpoints that can be trusted: which files, which commit, and whether they are what their names say."""
