"""Checkpoints: where they are, which commits and files they stand for, and whether they are what their names say."""

from shape_of_learning.checkpoints.atlas import find as find
