"""Checkpoints: their places, commits and files, and whether they are what their names say."""

from shape_of_learning.checkpoints.published_revisions import find, verdicts, where

__all__ = ["find", "verdicts", "where"]
